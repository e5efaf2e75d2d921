"""Writes objects that can be compressed, under a release's own Python.

    python3 writer.py CEPH_CONF POOL PREFIX OBJECTS BYTES TIMES

Each object's bytes are one random text TIMES times over, so that it compresses to a part of it.
Copied into the cluster's folder and run there, hence self-contained.
"""

from __future__ import annotations

import os
import sys
from typing import Any, List

import rados

AT_ONCE = 16


def main() -> None:
    conf, pool, prefix, *numbers = sys.argv[1:]
    objects, size, times = (int(number) for number in numbers)
    cluster = rados.Rados(conffile=conf, name="client.admin")
    cluster.connect(timeout=30)
    door = cluster.open_ioctx(pool)
    waiting: List[Any] = []
    for number in range(objects):
        waiting.append(door.aio_write_full(
            f"{prefix}-{number}", os.urandom(-(-size // times)) * times))
        if len(waiting) >= AT_ONCE:
            waiting.pop(0).wait_for_complete()
    for one in waiting:
        one.wait_for_complete()


if __name__ == "__main__":
    main()
