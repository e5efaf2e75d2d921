"""A client that writes at a low rate, under a release's own Python, until it is ended.

    python3 writer.py CEPH_CONF WRITES_PER_SECOND END_FILE POOL...

Writes the same objects of OBJECT_BYTES again and again, turn and turn about in the pools, so that
the pools hardly grow. One line of JSON a second: `{"writes": so far, "slowest": seconds}`, the
slowest of that second. A write that fails ends it with a traceback. Once END_FILE exists, it reads
all its objects and prints `{"read": objects, "different": names}`: those that are not as they were
written last.
Copied into the cluster's folder and run there, hence self-contained.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Dict, List, Tuple

import rados

OBJECTS = 100
OBJECT_BYTES = 128 << 10


def main() -> None:
    conf, rate, end_file, *pools = sys.argv[1:]
    cluster = rados.Rados(conffile=conf, name="client.admin")
    cluster.connect(timeout=30)
    doors = {pool: cluster.open_ioctx(pool) for pool in pools}
    last: Dict[Tuple[str, str], bytes] = {}   # pool, object → what was written last
    began = said = time.monotonic()
    written = 0
    slowest: List[float] = []
    while not os.path.exists(end_file):
        started = time.monotonic()
        pool = pools[written % len(pools)]
        name = f"written-{written // len(pools) % OBJECTS}"
        content = os.urandom(OBJECT_BYTES)
        doors[pool].write_full(name, content)
        last[pool, name] = content
        written += 1
        now = time.monotonic()
        slowest.append(now - started)
        if now - said >= 1.0:
            print(json.dumps({"writes": written, "slowest": max(slowest)}), flush=True)
            said, slowest = now, []
        time.sleep(max(0.0, began + written / float(rate) - now))
    different = []
    for (pool, name), content in last.items():
        if doors[pool].read(name, 2 * OBJECT_BYTES) != content:
            different.append(f"{pool}/{name}")
    print(json.dumps({"read": len(last), "different": different}), flush=True)


if __name__ == "__main__":
    main()
