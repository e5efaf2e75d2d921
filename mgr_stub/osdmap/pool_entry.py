"""PG numbers of a pool, from its entry in the osdmap dump."""

from __future__ import annotations

from typing import Any, Dict


def pg_nums(pool: Dict[str, Any]) -> Dict[str, int]:
    """pg_num, pgp_num and their targets; those missing in old state files are filled in."""
    pg_num = int(pool["pg_num"])
    target = int(pool.get("pg_num_target") or pg_num)
    placement = int(pool.get("pg_placement_num") or pg_num)
    return {"pg_num": pg_num, "pg_num_target": target, "pg_placement_num": placement,
            "pg_num_pending": int(pool.get("pg_num_pending") or pg_num),
            "pg_placement_num_target": int(pool.get("pg_placement_num_target") or placement)}


def in_transition(pool: Dict[str, Any]) -> bool:
    """True if pg_num or pgp_num has not reached its target."""
    return len(set(pg_nums(pool).values())) > 1


def share_of(position: int, pg_num: int) -> int:
    """Relative share of a pool's objects that a PG has: 2 for a PG still to be split, else 1."""
    half = (1 << (pg_num - 1).bit_length()) >> 1
    return 2 if position < half and position + half >= pg_num else 1


def parent_of(position: int) -> int:
    """Position of the PG that a PG is split from and merged into."""
    return position & ~(1 << (position.bit_length() - 1)) if position else 0


def is_merging(pool: Dict[str, Any], position: int) -> bool:
    """True for a PG that is about to be merged into another, or to take one in."""
    counts = pg_nums(pool)
    sources = range(counts["pg_num_pending"], counts["pg_num"])
    return position >= counts["pg_num_pending"] or any(
        parent_of(source) == position for source in sources)
