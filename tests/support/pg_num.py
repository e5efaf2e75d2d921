"""Which PGs the mgr's steps of pg_num and pgp_num touch, apart from how the module tells it."""
from __future__ import annotations

from typing import Any, Mapping

from mgr_stub.crush.hashes import stable_mod
from mgr_stub.osdmap.osd_map import parent_of, pg_nums


def is_to_be_touched(pool: Mapping[str, Any], ps: int) -> bool:
    """Whether a step will merge, split or place a PG again, or merge another into it."""
    now = pg_nums(dict(pool))
    last = min(now["pg_num_target"], now["pg_num_pending"])
    last_pgp = min(now["pg_num_target"], now["pg_placement_num_target"])
    merged = {parent_of(source) for source in range(last, now["pg_num"])}
    split = {stable_mod(child, now["pg_num"])
             for child in range(now["pg_num"], now["pg_num_target"])}
    return (ps >= last or ps in merged | split
            or stable_mod(ps, now["pg_placement_num"]) != stable_mod(ps, last_pgp))
