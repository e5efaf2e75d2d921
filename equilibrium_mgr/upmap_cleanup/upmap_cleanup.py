"""Pairs of upmap items that a PG's up set does not need.

A monitor drops pairs whose source CRUSH does not choose, and those whose target is out, with every
change of the map. What it keeps for ever are pairs that change nothing: their target is in the set
anyway, as CRUSH has come to choose it, or another pair has moved their source or taken their
target. Each counts towards max_upmap_items, costs the monitors work with every map, and may begin
to move data when the map changes.

The plan that removes needless pairs of upmap items. Every up set stays as it is.
"""
from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from ..plan.model import CLEAN_UP, PgChange, Plan, Usage
from ..plan.options import AIMS
from ..snapshot import immovable_reasons as reasons
from ..snapshot.immovable_reasons import OF_MOTION, TRANSIENT
from ..snapshot.model import Pg, Snapshot, UpmapItems
from ..snapshot.upmap_items import apply_items, items_for


GONE = "its pool or PG is gone; the monitors drop it with the next change of the map"
#: What is told of a pair.
SAME = "source and target are one OSD"
NOT_CHOSEN = "CRUSH does not choose its source"
TARGET_GONE = "its target is out or gone"
TARGET_CHOSEN = "CRUSH chooses its target anyway"
TARGET_TAKEN = "another pair has its target"
SOURCE_MOVED = "another pair moves its source"
CHAINED = "one pair does what several do"
CANCELS = "it takes back another pair"

#: Of immovable PGs, those whose raw mapping is known all the same; behind the other reasons it may
#: be unknown.
_RAW_IS_KNOWN = frozenset((
    None, reasons.OSD_NOT_REPORTED, reasons.INCONSISTENT, reasons.STALE, reasons.OMAP_ON_SMALL_OSD,
    reasons.BREAKS_RULE, reasons.MONITOR_REJECTS, reasons.MONITOR_REJECTS_CRUSH))

Pair = Tuple[int, int]


class NeedlessPairs(NamedTuple):
    """One PG with more pairs than its up set needs."""

    pgid: str
    items: UpmapItems
    keeps: UpmapItems               # what is enough
    pairs: Tuple[Pair, ...]         # that are not needed as they are
    reasons: Tuple[str, ...]        # of each of these


class UpmapFindings(NamedTuple):
    """What the upmap items of a map come to."""

    pgs: int      # with upmap items
    pairs: int
    needless: List[NeedlessPairs]
    unknown: List[Tuple[str, str]]   # (pgid, why it cannot be told)

    @property
    def needless_pairs(self) -> int:
        """Pairs that could be fewer."""
        return sum(len(found.items) - len(found.keeps) for found in self.needless)


def find_needless(snapshot: Snapshot) -> UpmapFindings:
    """Looks at every PG that has upmap items."""
    needless: List[NeedlessPairs] = []
    unknown: List[Tuple[str, str]] = []
    for pgid, items in sorted(snapshot.upmap_items.items()):
        pg = snapshot.pgs.get(pgid)
        if pg is None:
            needless.append(NeedlessPairs(pgid, items, (), items, (GONE,) * len(items)))
        elif pg.immovable not in _RAW_IS_KNOWN:
            unknown.append((pgid, str(pg.immovable)))
        else:
            found = _needless(snapshot, pg, items)
            if found is not None:
                needless.append(found)
    return UpmapFindings(len(snapshot.upmap_items),
                         sum(map(len, snapshot.upmap_items.values())), needless, unknown)


def _needless(snapshot: Snapshot, pg: Pg, items: UpmapItems) -> Optional[NeedlessPairs]:
    told = _without_effect(pg, items, snapshot.is_out)
    effective = tuple(pair for number, pair in enumerate(items) if number not in told)
    try:   # the fewest pairs that lead to the up set as it is, in order
        keeps = min(effective, items_for(pg.raw, pg.up), key=len)
    except ValueError:   # shards exchange their OSDs by way of another one
        keeps = effective
    if len(keeps) >= len(items) or apply_items(pg.raw, keeps, snapshot.is_out) != pg.up:
        return None
    if len(keeps) < len(effective):   # chained: these pairs have an effect, and are too many
        for number, pair in enumerate(items):
            if number not in told and pair not in keeps:
                told[number] = CANCELS if (pair[1], pair[0]) in items else CHAINED
    numbers = sorted(told)
    return NeedlessPairs(pg.pgid, items, keeps, tuple(items[number] for number in numbers),
                         tuple(told[number] for number in numbers))


def _without_effect(pg: Pg, items: UpmapItems, is_out: Callable[[int], bool]) -> Dict[int, str]:
    """Number of a pair → why Ceph skips it (OSDMap::_apply_upmap)."""
    current, told = list(pg.raw), {}
    for number, (source, target) in enumerate(items):
        if source == target:
            told[number] = SAME
        elif target in current:
            told[number] = TARGET_CHOSEN if target in pg.raw else TARGET_TAKEN
        elif source not in current:
            told[number] = SOURCE_MOVED if source in pg.raw else NOT_CHOSEN
        elif is_out(target):
            told[number] = TARGET_GONE
        else:
            current[current.index(source)] = target
    return told


NotCleaned = List[Tuple[str, str]]   # (pgid, reason)


def cleanup_plan(snapshot: Snapshot) -> Tuple[Plan, NotCleaned, UpmapFindings]:
    """The plan; what has needless pairs and keeps them, with the reason; and all that was found."""
    found = find_needless(snapshot)
    changes: List[PgChange] = []
    not_cleaned: NotCleaned = list(found.unknown)
    for needless in found.needless:
        pg = snapshot.pgs.get(needless.pgid)
        reason = GONE if pg is None else _obstacle(snapshot, pg)
        if reason is not None or pg is None:
            not_cleaned.append((needless.pgid, str(reason)))
        else:
            changes.append(PgChange(pg.pgid, pg.raw, pg.up, pg.up, needless.keeps, 0,
                                    pg.shard_bytes, pg.objects))
    return Plan(epoch=snapshot.epoch, stop_reason="converged", moves=(), changes=tuple(changes),
                before=Usage({}, {}), after=Usage({}, {}), skipped={},
                min_compat_client=snapshot.min_compat_client, aim=AIMS[0], bounds={},
                kind=CLEAN_UP), not_cleaned, found


def _obstacle(snapshot: Snapshot, pg: Pg) -> Optional[str]:
    """Why the monitor may not keep fewer pairs as they are sent, or None: it judges the up set that
    they lead to, and takes all pairs away where that breaks the rule."""
    if pg.immovable is not None and pg.immovable not in OF_MOTION and (
            pg.immovable not in TRANSIENT):
        return pg.immovable
    rule = snapshot.pools[pg.pool].rule
    if rule is None:
        return "the pool's rule is not understood"
    broken = rule.violation(pg.up) or rule.upmap_rejection(pg.up)
    return f"its placement breaks its rule: {broken}" if broken else None
