"""The options of a plan, and what they come to in a cluster."""
from __future__ import annotations

from typing import FrozenSet, NamedTuple, Optional

#: What a plan is made for, as operators name it; the first is the default.
AIMS = ("space", "even", "least-motion")

#: Kept free below backfillfull where no fill limit is set (a ratio): backfill stops above it.
FILL_MARGIN = 0.02

#: OSDs use max(backfillfull, nearfull) for backfillfull; this is nearfull's default (a ratio).
_LEAST_BACKFILLFULL = 0.85

#: Ratio of the PG shards at which OSDs refuse more; an OSD above mon_max_pg_per_osd may get to it.
HARD_SHARE = 0.8


class PlanOptions(NamedTuple):
    """Options of one plan; None means unlimited."""

    pool_ids: Optional[FrozenSet[int]] = None
    device_classes: Optional[FrozenSet[str]] = None
    max_moves: Optional[int] = None       # shard moves
    max_bytes: Optional[int] = None
    rejected_pgs: FrozenSet[str] = frozenset()  # PGs that stay, as the monitor rejects their items
    fill_limit: float = 0.0               # ratio, at most backfillfull less FILL_MARGIN; 0: that
    aim: str = AIMS[0]
    respect_weights: bool = True          # OSDs with lowered weights are held to a share
    max_upmap_items: float = 0.0          # pairs per PG up to 1, else in all; 0: no limit
    max_pg_shards_per_osd: int = 0        # no target gets more; 0: no limit
    max_pg_shards_hard: int = 0           # at which OSDs refuse PGs; 0: not known
    repair: bool = False                  # PGs that break their CRUSH rule are mended, and no more
    drain_only: bool = False              # shards leave drained OSDs, and nothing else
    sources: Optional[FrozenSet[int]] = None   # OSD ids that may give shards; None: all
    targets: Optional[FrozenSet[int]] = None   # OSD ids that may get shards; None: all
    limited_to: str = ""   # what sources, targets and pools leave, in words; empty: everything
    cooling_pgs: FrozenSet[str] = frozenset()  # of rejected_pgs, those that wait for pg_cooldown


def effective_fill_limit(fill_limit: float, backfillfull_ratio: float) -> float:
    """The utilization beyond which no move of ours may fill an OSD, a ratio.

    Never above backfillfull less FILL_MARGIN, whatever is asked for: backfill stops at
    backfillfull. A backfillfull ratio that cannot be one (0, a percentage) is replaced by the
    lowest that OSDs fall back to, Ceph's default nearfull ratio.
    """
    if not 0.0 < backfillfull_ratio < 1.0:
        backfillfull_ratio = _LEAST_BACKFILLFULL
    most = max(0.0, backfillfull_ratio - FILL_MARGIN)
    return min(fill_limit, most) if fill_limit > 0.0 else most


def raised_nearfull_ratio(backfillfull_ratio: float) -> float:
    """A nearfull ratio that lets moves go that the present one holds up, to two decimals."""
    return round(min(0.98, backfillfull_ratio), 2)


def upmap_pairs_left(max_upmap_items: float, pgs: int, present: int) -> Optional[int]:
    """The pairs of upmap items that may be added to the `present` ones of a cluster with `pgs` PGs;
    None without a limit, below 0 where there are too many already."""
    if max_upmap_items <= 0.0:
        return None
    most = max_upmap_items * pgs if max_upmap_items <= 1.0 else max_upmap_items
    return int(most) - present
