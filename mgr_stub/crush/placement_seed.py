"""The CRUSH input x of a PG."""

from __future__ import annotations

from typing import Any, Mapping

from .hashes import hash2

_HASHPSPOOL = 1


def stable_mod(value: int, count: int) -> int:
    """value modulo count, such that growing the count only splits, never shuffles."""
    mask = (1 << (count - 1).bit_length()) - 1
    return value & mask if value & mask < count else value & mask >> 1


def placement_seed(pool_id: int, seed: int, pgp_num: int, hashpspool: bool = True) -> int:
    """The CRUSH input of PG `pool_id.seed` (32 bits).

    PGs with the same x are on the same OSDs: after a split until pgp_num follows pg_num, and among
    pools without the flag hashpspool.
    """
    folded = stable_mod(seed, pgp_num)
    if hashpspool:
        return hash2(folded, pool_id & 0xFFFFFFFF)
    return (folded + pool_id) & 0xFFFFFFFF


def has_hashpspool(pool: Mapping[str, Any]) -> bool:
    """True if a pool of the osdmap dump has the flag, as every pool created since 2013."""
    if "flags" in pool:
        return bool(int(pool["flags"]) & _HASHPSPOOL)
    return "hashpspool" in str(pool.get("flags_names", "hashpspool")).split(",")
