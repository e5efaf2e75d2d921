"""Writes objects that can be compressed, under a release's own Python.

    python3 writer.py CEPH_CONF POOL PREFIX OBJECTS BYTES PART

Of each page of an object one part of PART is random and the rest is nothing, so that it compresses
to that part. 1 stands for objects that do not compress.
Copied into the cluster's folder and run there, hence self-contained.
"""

from __future__ import annotations

import os
import sys
from typing import Any, List

import rados

AT_ONCE = 16
PAGE = 4096


def main() -> None:
    conf, pool, prefix, *numbers = sys.argv[1:]
    objects, size, part = (int(number) for number in numbers)
    cluster = rados.Rados(conffile=conf, name="client.admin")
    cluster.connect(timeout=30)
    door = cluster.open_ioctx(pool)
    waiting: List[Any] = []
    for number in range(objects):
        waiting.append(door.aio_write_full(f"{prefix}-{number}", content(size, part)))
        if len(waiting) >= AT_ONCE:
            waiting.pop(0).wait_for_complete()
    for one in waiting:
        one.wait_for_complete()


def content(size: int, part: int) -> bytes:
    """Bytes of one object."""
    if part == 1:
        return os.urandom(size)
    rest = bytes(PAGE - PAGE // part)
    return b"".join(os.urandom(PAGE // part) + rest for _ in range(-(-size // PAGE)))[:size]


if __name__ == "__main__":
    main()
