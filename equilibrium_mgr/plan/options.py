"""The options of a plan, and what they come to in a cluster.

Which OSDs may give shards, and which may get some, by names in the CRUSH hierarchy.
"""
from __future__ import annotations

import re
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.formatting import named


#: What a plan is made for, as operators name it; the first is the default.
AIMS = ("space", "even", "least-motion")

#: Kept free below backfillfull where no fill limit is set (a ratio): backfill stops above it.
FILL_MARGIN = 0.02

#: OSDs use max(backfillfull, nearfull) for backfillfull; this is nearfull's default (a ratio).
_LEAST_BACKFILLFULL = 0.85

#: Moves give an OSD at most this ratio of the PG shards from which on it withholds PGs, which stay
#: inactive even when it has room again.
HARD_SHARE = 0.8


class PgShardLimits(NamedTuple):
    """PG shards per OSD by Ceph's options; 0 for no limit."""

    mean: int = 0   # from which on Ceph refuses new pools
    most: int = 0   # that moves may give an OSD: HARD_SHARE of those from which on it withholds PGs


# Values of Plan.stop_reason.
MOVE_LIMIT = "the limit of moves is reached"
BYTE_LIMIT = "the limit of bytes is reached"


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
    repair: bool = False                  # PGs that break their CRUSH rule are mended, and no more
    rule_id: Optional[int] = None         # of a CRUSH rule that repaired PGs are to keep as well
    drain_only: bool = False              # shards leave drained OSDs, and nothing else
    least_gain: float = 0.0               # ratio; above 0 the plan follows drift, with few bytes
    sources: Optional[FrozenSet[int]] = None   # OSD ids that may give shards; None: all
    targets: Optional[FrozenSet[int]] = None   # OSD ids that may get shards; None: all
    #: what sources, targets, pools and classes leave, in words; empty: everything
    limited_to: str = ""

    def limit_passed(self, moves: int, moved_bytes: int) -> Optional[str]:
        """The limit that so much is beyond, as a plan's stop reason; None where it keeps both."""
        if self.max_moves is not None and moves > self.max_moves:
            return MOVE_LIMIT
        return BYTE_LIMIT if self.max_bytes is not None and moved_bytes > self.max_bytes else None


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


#: Most digits of an OSD's id; Python refuses to read thousands of digits.
_OSD_NAME = re.compile(r"(?:osd\.)?([0-9]{1,9})", re.ASCII)

#: Names of one kind that a sentence has.
_MOST_NAMES = 3

Names = Optional[FrozenSet[str]]   # None: no such filter


class OsdScope(NamedTuple):
    """OSD ids that may give and get shards; None: all of them. `unknown`: names of no OSD and no
    bucket, by the field that has them."""

    sources: Optional[FrozenSet[int]]
    targets: Optional[FrozenSet[int]]
    unknown: Tuple[Tuple[str, str], ...]


class OsdFilter(NamedTuple):
    """Names of OSDs (`osd.3` or `3`), hosts and other buckets that shards may leave, that they may
    go to, and that are spared: shards neither leave these nor come."""

    sources: Names = None
    targets: Names = None
    spared: Names = None

    def words(self, pools: Sequence[str], classes: Names = None) -> str:
        """The moves that are left, as in 'moves off osd.6 to rack2'; empty where all are. `pools`:
        names of those that alone are moved; none: all. `classes`: the same of device classes."""
        parts = [f"{word} {named([name[:40] for name in sorted(names)], _MOST_NAMES)}"
                 for word, names in (
                     ("of class", classes), ("of pool", frozenset(pools) or None),
                     ("off", self.sources), ("to", self.targets), ("that spare", self.spared))
                 if names is not None]
        return f"moves {' '.join(parts)}" if parts else ""

    def scope(self, crush: CrushHierarchy) -> OsdScope:
        """The OSDs that the names stand for now.

        A name that is unknown never allows more movement: of sources and targets the others count,
        and where it is not known what is to be spared everything is.
        """
        unknown: List[Tuple[str, str]] = []
        found: Dict[str, Optional[Set[int]]] = {}
        for field, names in zip(self._fields, self):
            osds: Set[int] = set()
            for name in sorted(names or ()):
                members = osds_named(name, crush)
                if members is None:
                    unknown.append((field, name))
                osds |= members or frozenset()
            found[field] = None if names is None else osds
        spared = found["spared"]
        if any(field == "spared" for field, _ in unknown):
            spared = set(crush.device_class)
        return OsdScope(_without(found["sources"], spared, crush),
                        _without(found["targets"], spared, crush), tuple(unknown))


def osds_named(name: str, crush: CrushHierarchy) -> Optional[FrozenSet[int]]:
    """The OSDs of a name: one, or those under a bucket; None where nothing has that name. A number
    is always the id of an OSD, whatever buckets are called."""
    osd = osd_id(name)
    if osd is not None:
        return frozenset((osd,)) if osd in crush.device_class else None
    for bucket in crush.buckets.values():
        if bucket.name == name:
            return frozenset(crush.subtree(bucket.id).weights)
    return None


def osd_id(name: str) -> Optional[int]:
    """The id in `3` or `osd.3`; None for any other name."""
    match = _OSD_NAME.fullmatch(name)
    return None if match is None else int(match.group(1))


def _without(chosen: Optional[Set[int]], spared: Optional[Set[int]],
             crush: CrushHierarchy) -> Optional[FrozenSet[int]]:
    if spared is None:
        return None if chosen is None else frozenset(chosen)
    return frozenset((set(crush.device_class) if chosen is None else chosen) - spared)
