"""The cluster that both sides begin with: OSDs by host, pools of every kind with few objects."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

NONE = 0x7FFFFFFF

OSD_GIB: Dict[str, Tuple[float, ...]] = {
    "h0": (1.0, 1.5), "h1": (1.0, 1.0), "h2": (1.5, 1.0), "h3": (2.0, 1.0), "h4": (1.0,)}
"""Sizes in GiB and CRUSH weights; nine OSDs by host, numbered in this order."""

MOST_LOG_ENTRIES = 20
"""Of a PG's log while the pools are written whose logs shall not reach back."""

OBJECT_BYTES = 4096
"""Of every object that is written."""

MAX_BACKFILLS = 64
"""Of an OSD: no PG waits for another. Which of those that ask at one time gets a slot is a race."""

SPARES = (9,)
"""OSDs that run from the start and come into the CRUSH map later."""

RESIZED = ("trimmed", "whole")
"""Pools whose pg_num is changed."""

PROFILES: Dict[str, List[str]] = {
    "k2m1": ["k=2", "m=1", "crush-failure-domain=host"],
    "k3m2": ["k=3", "m=2", "crush-failure-domain=osd"]}


class PoolShape(NamedTuple):
    """A pool and its objects of 4 KiB; `trimmed`: its PGs' logs do not reach back."""

    name: str
    pgs: int
    size: int
    profile: str
    objects: int
    trimmed: bool = False
    optimized: bool = False


POOLS = (
    PoolShape("whole", 8, 3, "", 1400),
    PoolShape("small", 8, 3, "", 120),
    PoolShape("pair", 8, 2, "", 1400),
    PoolShape("ec", 8, 3, "k2m1", 1400),
    PoolShape("wide", 4, 5, "k3m2", 700),
    PoolShape("trimmed", 16, 3, "", 1600, trimmed=True),
    PoolShape("ec_trimmed", 8, 3, "k2m1", 800, trimmed=True))

OPTIMIZED = PoolShape("optimized", 8, 5, "k3m2", 400, optimized=True)
"""Ceph 20 alone has it."""


def pools_of(major: int) -> Tuple[PoolShape, ...]:
    """The pools of a release, those with whole logs first: they are written under other limits."""
    return (*POOLS[:-2], OPTIMIZED, *POOLS[-2:]) if major >= 20 else POOLS


def host_of(osd: int) -> str:
    """The host that an OSD is on, the spare one included."""
    number = 0
    for host, sizes in OSD_GIB.items():
        number += len(sizes)
        if osd < number:
            return host
    return "h9"


def pool_arguments(pool: PoolShape) -> Dict[str, Any]:
    """For `osd pool create`."""
    kind: Dict[str, Any] = {"pool_type": "replicated", "size": pool.size}
    if pool.profile:
        kind = {"pool_type": "erasure", "erasure_code_profile": pool.profile}
    return {"pool": pool.name, "pg_num": pool.pgs, "pgp_num": pool.pgs, **kind}
