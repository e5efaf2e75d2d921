"""The options of a plan, and their effect in a cluster.

Which OSDs may give shards, and which may get some, by names in the CRUSH hierarchy.
"""
from __future__ import annotations

import re
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.formatting import named


#: The aims of a plan, as operators name them; the first is the default.
AIMS = ("space", "even", "least-motion")

#: Moves fill no OSD above backfillfull less this ratio, because backfill stops at backfillfull.
FILL_MARGIN = 0.02

#: OSDs use max(backfillfull, nearfull) for backfillfull; this is nearfull's default (a ratio).
_LEAST_BACKFILLFULL = 0.85

#: Moves give an OSD at most this ratio of the PG shards at which the OSD withholds PGs. Withheld
#: PGs stay inactive even when the OSD has fewer again.
HARD_SHARE = 0.8


class PgShardLimits(NamedTuple):
    """PG shards per OSD by Ceph's options; 0 for no limit."""

    mean: int = 0   # Ceph refuses new pools above it
    most: int = 0   # moves give an OSD no more: HARD_SHARE of its count for withholding PGs


# Values of Plan.stop_reason.
MOVE_LIMIT = "the limit of moves is reached"
BYTE_LIMIT = "the limit of bytes is reached"


class Steering(NamedTuple):
    """The shards that a plan of kind STEER may touch (planner/steering.py)."""

    rebuilt: bool = True   # those that no OSD holds, and others of the same PG
    moved: bool = True     # those of PGs that move and lack none
    at_rest: FrozenSet[str] = frozenset()   # pgids: only these may be held where their data is
    #: pgids: an OSD that they come to has come back, and may have their data
    returned: FrozenSet[str] = frozenset()
    #: device classes in which balancing cannot go on as soon as all is held and steered
    held_up: FrozenSet[str] = frozenset()


class PlanOptions(NamedTuple):
    """Options of one plan; None means unlimited."""

    pool_ids: Optional[FrozenSet[int]] = None
    device_classes: Optional[FrozenSet[str]] = None
    max_moves: Optional[int] = None       # shard moves
    max_bytes: Optional[int] = None
    rejected_pgs: FrozenSet[str] = frozenset()  # PGs that stay: the monitor rejects their items
    fill_limit: float = 0.0               # ratio, at most backfillfull less FILL_MARGIN; 0: that
    aim: str = AIMS[0]
    respect_weights: bool = True          # OSDs with lowered weights get a share of their size
    max_upmap_items: float = 0.0          # up to 1: pairs per PG, above: in all; 0: no limit
    max_pg_shards_per_osd: int = 0        # no target gets more; 0: no limit
    repair: bool = False                  # only repairs PGs that break their CRUSH rule
    rule_id: Optional[int] = None         # repaired PGs also keep this CRUSH rule
    drain_only: bool = False              # only moves shards off drained OSDs
    least_gain: float = 0.0               # ratio; above 0 the plan follows drift, with few bytes
    sources: Optional[FrozenSet[int]] = None   # OSD ids that may give shards; None: all
    targets: Optional[FrozenSet[int]] = None   # OSD ids that may get shards; None: all
    steering: Optional[Steering] = None   # only chooses targets of shards that move anyway
    #: pgid → the OSDs that its shards may leave; no other PG moves. None: all may
    only: Optional[Mapping[str, FrozenSet[int]]] = None
    #: the moves that sources, targets, pools and classes allow, in words; empty: all moves
    limited_to: str = ""
    levels_load: bool = False             # if fullness and room stay, also lowers the busiest OSDs

    def may_get(self, osd: int) -> bool:
        """Returns True if shards may come to an OSD."""
        return self.targets is None or osd in self.targets

    def may_give(self, osd: int, device_class: str) -> bool:
        """Returns True if shards may leave an OSD."""
        if self.device_classes is not None and device_class not in self.device_classes:
            return False
        return self.sources is None or osd in self.sources

    def limit_passed(self, moves: int, moved_bytes: int) -> Optional[str]:
        """Returns the limit that the moves or bytes exceed, as a plan's stop reason, or None."""
        if self.max_moves is not None and moves > self.max_moves:
            return MOVE_LIMIT
        if self.max_bytes is not None and moved_bytes > self.max_bytes:
            return BYTE_LIMIT
        return None


def effective_fill_limit(fill_limit: float, backfillfull_ratio: float) -> float:
    """Returns the highest utilization that our moves may give an OSD, a ratio.

    It is at most backfillfull less FILL_MARGIN, because backfill stops at backfillfull. An
    impossible backfillfull ratio (0, a percentage) is replaced by the lowest one that OSDs fall
    back to, Ceph's default nearfull ratio.
    """
    if not 0.0 < backfillfull_ratio < 1.0:
        backfillfull_ratio = _LEAST_BACKFILLFULL
    most = max(0.0, backfillfull_ratio - FILL_MARGIN)
    return min(fill_limit, most) if fill_limit > 0.0 else most


def raised_nearfull_ratio(backfillfull_ratio: float) -> float:
    """Returns a nearfull ratio that allows moves which the present one stops, to two decimals."""
    return round(min(0.98, backfillfull_ratio), 2)


def upmap_pairs_left(max_upmap_items: float, pgs: int, present: int) -> Optional[int]:
    """Returns the pairs of upmap items that may be added to the `present` ones of a cluster with
    `pgs` PGs; None without a limit, below 0 if there are too many already."""
    if max_upmap_items <= 0.0:
        return None
    most = max_upmap_items
    if max_upmap_items <= 1.0:
        most *= pgs
    return int(most) - present


#: An id has few digits here, because Python refuses to read thousands of digits.
_OSD_NAME = re.compile(r"(?:osd\.)?([0-9]{1,9})", re.ASCII)

#: A sentence has at most so many names of one kind.
_MOST_NAMES = 3

#: Words that stand in a sentence before names: of device classes, of pools, and of the three fields
#: of an OsdFilter.
_FILTER_WORDS = ("of class", "of pool", "off", "to", "that spare")

Names = Optional[FrozenSet[str]]   # None: no such filter


class OsdScope(NamedTuple):
    """OSD ids that may give and get shards; None: all of them. `unknown`: (field, name) of the
    names that are no OSD and no bucket."""

    sources: Optional[FrozenSet[int]]
    targets: Optional[FrozenSet[int]]
    unknown: Tuple[Tuple[str, str], ...]


class OsdFilter(NamedTuple):
    """Names of OSDs (`osd.3` or `3`), hosts and other buckets: shards may leave `sources`, may go
    to `targets`, and neither leave `spared` nor go there."""

    sources: Names = None
    targets: Names = None
    spared: Names = None

    def words(self, pools: Sequence[str], classes: Names = None) -> str:
        """Returns the moves that are allowed, as in 'moves off osd.6 to rack2'; empty if all are.

        `pools`: names of the only pools that move; empty: all. `classes`: the same of device
        classes.
        """
        filters: Tuple[Names, ...] = (classes, frozenset(pools) or None, *self)
        parts: List[str] = []
        for word, names in zip(_FILTER_WORDS, filters):
            if names is not None:
                short = [name[:40] for name in sorted(names)]
                parts.append(f"{word} {named(short, _MOST_NAMES)}")
        if not parts:
            return ""
        return f"moves {' '.join(parts)}"

    def scope(self, crush: CrushHierarchy) -> OsdScope:
        """Returns the OSDs that the names stand for now.

        An unknown name never allows more movement. Of sources and targets the other names count;
        if a name of `spared` is unknown, all OSDs are spared.
        """
        unknown: List[Tuple[str, str]] = []
        found: Dict[str, Optional[Set[int]]] = {}
        for field, names in zip(self._fields, self):
            osds: Set[int] = set()
            for name in sorted(names or ()):
                members = osds_named(name, crush)
                if members is None:
                    unknown.append((field, name))
                else:
                    osds |= members
            found[field] = None if names is None else osds
        spared = found["spared"]
        if "spared" in [field for field, _ in unknown]:
            spared = set(crush.device_class)
        return OsdScope(_without(found["sources"], spared, crush),
                        _without(found["targets"], spared, crush), tuple(unknown))


def osds_named(name: str, crush: CrushHierarchy) -> Optional[FrozenSet[int]]:
    """Returns the OSDs of a name: one OSD, or all under a bucket; None if nothing has that name. A
    number is always the id of an OSD, even if a bucket has that name."""
    osd = osd_id(name)
    if osd is not None:
        if osd not in crush.device_class:
            return None
        return frozenset((osd,))
    for bucket in crush.buckets.values():
        if bucket.name == name:
            return frozenset(crush.subtree(bucket.id).weights)
    return None


def osd_id(name: str) -> Optional[int]:
    """Returns the id in `3` or `osd.3`; None for any other name."""
    match = _OSD_NAME.fullmatch(name)
    if match is None:
        return None
    return int(match.group(1))


def _without(chosen: Optional[Set[int]], spared: Optional[Set[int]],
             crush: CrushHierarchy) -> Optional[FrozenSet[int]]:
    """Returns the chosen OSDs (None: all) without the spared ones."""
    if spared is None:
        return None if chosen is None else frozenset(chosen)
    if chosen is None:
        chosen = set(crush.device_class)
    return frozenset(chosen - spared)
