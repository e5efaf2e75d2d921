"""A client that writes at a low rate, under a release's own Python, until it is ended.

    python3 writer.py CEPH_CONF WRITES_PER_SECOND POOL...

Writes the same objects of OBJECT_BYTES again and again, turn and turn about in the pools, so that
the pools hardly grow. One line of JSON a second: `{"writes": so far, "slowest": seconds}`, the
slowest of that second. A write that fails ends it with a traceback.
Copied into the cluster's folder and run there, hence self-contained.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import List

import rados

OBJECTS = 100
OBJECT_BYTES = 128 << 10


def main() -> None:
    conf, rate, *pools = sys.argv[1:]
    cluster = rados.Rados(conffile=conf, name="client.admin")
    cluster.connect(timeout=30)
    doors = [cluster.open_ioctx(pool) for pool in pools]
    began = said = time.monotonic()
    written = 0
    slowest: List[float] = []
    while True:
        started = time.monotonic()
        doors[written % len(doors)].write_full(
            f"written-{written // len(doors) % OBJECTS}", os.urandom(OBJECT_BYTES))
        written += 1
        now = time.monotonic()
        slowest.append(now - started)
        if now - said >= 1.0:
            print(json.dumps({"writes": written, "slowest": max(slowest)}), flush=True)
            said, slowest = now, []
        time.sleep(max(0.0, began + written / float(rate) - now))


if __name__ == "__main__":
    main()
