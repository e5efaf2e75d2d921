"""Makes a binary OSDMap of a compiled CRUSH map, with pools, reweights and missing OSDs."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import AbstractSet, Any, Dict, Sequence, Tuple

from ..ceph_tools import dump_osdmap, run_tool
from .binary_osdmap import OSD_EXISTS, OSD_UP, BinaryOSDMap, make_pool

# where pg_pool_t of --createsimple has pgp_num and flags, struct header included
_PGP_NUM, _FLAGS = 6 + 8, 6 + 52


@dataclass(frozen=True)
class CrushPool:
    """A pool to make; `kind` is 1 for replicated, 3 for erasure-coded, as its rule must be."""

    rule: int
    kind: int
    size: int
    pg_num: int
    pgp_num: int
    hashpspool: bool


def make_osdmap(pools: Sequence[CrushPool], crush: Path, reweights: Sequence[int],
                missing: AbstractSet[int], folder: Path) -> Path:
    """The map, pools numbered from 1; its dump is compared with what was asked for."""
    path, sample = folder / "osdmap", folder / "osdmap.sample"
    run_tool("osdmaptool", "--createsimple", 7, sample, "--clobber", "--with-default-pool",
             "--pg-bits", 5)
    template = BinaryOSDMap.read(sample).pools[1]
    run_tool("osdmaptool", "--createsimple", len(reweights), path, "--clobber")
    run_tool("osdmaptool", path, "--import-crush", crush)
    osdmap = BinaryOSDMap.read(path)
    osdmap.weights = list(reweights)
    osdmap.states = [0 if osd in missing else OSD_EXISTS | OSD_UP
                     for osd in range(len(reweights))]
    for pool_id, pool in enumerate(pools, start=1):
        osdmap.pools[pool_id] = _encoded(template, pool)
        osdmap.pool_names[pool_id] = f"pool{pool_id}"
    osdmap.pool_max = len(pools)
    osdmap.write(path)
    for pool, dumped in zip(pools, dump_osdmap(path)["pools"]):
        assert _as_dumped(dumped) == (pool.rule, pool.kind, pool.size, pool.pg_num, pool.pgp_num,
                                      pool.hashpspool)
    return path


def _encoded(template: bytes, pool: CrushPool) -> bytes:
    body = bytearray(make_pool(template, pool.kind, pool.size, pool.rule, pool.pg_num))
    struct.pack_into("<I", body, _PGP_NUM, pool.pgp_num)
    if not pool.hashpspool:
        body[_FLAGS] &= 0xFE
    return bytes(body)


def _as_dumped(dumped: Dict[str, Any]) -> Tuple[Any, ...]:
    return (dumped["crush_rule"], dumped["type"], dumped["size"], dumped["pg_num"],
            dumped["pg_placement_num"], bool(dumped["flags"] & 1))
