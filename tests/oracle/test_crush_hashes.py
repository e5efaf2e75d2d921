"""The hashes and logarithms against those in Ceph's own library."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import struct
from pathlib import Path
from typing import Callable, Counter, Dict

import pytest

from mgr_stub.crush import hashes as log2, hashes

from .ceph_tools import run_tool

FUNCTIONS: Dict[str, Callable[..., int]] = {
    "crush_hash32_2": hashes.hash2, "crush_hash32_3": hashes.hash3}


def _library() -> Path:
    linked = run_tool("ldd", str(shutil.which("crushtool")))
    found = re.search(r"=> (\S*libceph-common\S*)", linked)
    if not found:
        pytest.fail("crushtool does not use libceph-common")
    return Path(found.group(1))


def test_hashes(tally: Counter[str]) -> None:
    library, rng = ctypes.CDLL(str(_library())), random.Random("hashes")
    for arguments, (name, ours) in enumerate(FUNCTIONS.items(), start=2):
        theirs = getattr(library, name)
        theirs.restype = ctypes.c_uint32
        for _ in range(2000):
            numbers = [rng.choice((rng.randrange(2 ** 32), rng.randrange(64), 2 ** 32 - 1))
                       for _ in range(arguments)]
            assert ours(*numbers) == theirs(0, *map(ctypes.c_uint32, numbers)), (name, numbers)
            tally["hashes"] += 1


def test_tables_of_the_logarithm() -> None:
    stored = _library().read_bytes()
    upper, lower = log2._upper_table(), log2._lower_table()
    pairs = [number for k, logarithm in enumerate(upper)
             for number in (-(-(1 << 55) // (128 + k)), logarithm)]
    assert struct.pack("<258q", *pairs) in stored
    assert struct.pack("<256q", *lower) in stored
