"""Writes objects of bytes and of omap, under a release's own Python.

    python3 objects.py CEPH_CONF POOL PREFIX OBJECTS BYTES KEYS

KEYS keys of 1 kB each go into the omap of every object. Copied into the cluster's folder and run
there, hence self-contained.
"""

from __future__ import annotations

import os
import sys
from typing import Any, List

import rados

AT_ONCE = 8
KEY_BYTES = 1000


def main() -> None:
    conf, pool, prefix, *numbers = sys.argv[1:]
    objects, size, keys = (int(number) for number in numbers)
    cluster = rados.Rados(conffile=conf, name="client.admin")
    cluster.connect(timeout=30)
    door = cluster.open_ioctx(pool)
    names = tuple(f"key-{key}" for key in range(keys))
    waiting: List[Any] = []
    for number in range(objects):
        with rados.WriteOpCtx() as operation:
            if size:
                operation.write_full(os.urandom(size))
            if keys:
                door.set_omap(operation, names, tuple(os.urandom(KEY_BYTES) for _ in names))
            waiting.append(door.operate_aio_write_op(operation, f"{prefix}-{number}"))
        if len(waiting) >= AT_ONCE:
            waiting.pop(0).wait_for_complete()
    for one in waiting:
        one.wait_for_complete()


if __name__ == "__main__":
    main()
