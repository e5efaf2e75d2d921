"""The pin of one remapped PG: the up set nearest to its holders that upmap items can express.

A pinned shard is wanted where it is, so that nothing has to move. Where not all of a PG's shards
can be pinned, as many as possible are, and the others move as they do now; but of those that would
only exchange OSDs among themselves, which upmap items cannot express, one may go to another OSD, so
that the others stay. Shards are pinned to OSDs of the acting set alone: that these have the
data is certain, whatever has happened since the PG was clean.

The plan that freezes a cluster: pins of all PGs whose data is not where it is wanted.
"""
from __future__ import annotations

from collections import Counter
from itertools import combinations, islice, permutations
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD, PlacementBlock
from ..plan.model import FREEZE, PgChange, Plan, Usage
from ..plan.options import AIMS, effective_fill_limit
from ..planner.planner import CONVERGED
from ..runtime.time_slice import piecewise
from ..snapshot import immovable_reasons as reasons, reason_codes as codes
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems, shard_changes
from ..snapshot.reason_codes import Why
from ..snapshot.upmap_items import items_for, keep_raw_positions


#: Parts of a PG that are looked at, the largest first: all parts of ten shards.
_MOST_TRIED = 1024
#: OSDs that are tried for a shard that leaves an exchange.
_MOST_OUTSIDE = 20
#: Reasons that keep a PG from being moved, and not from being pinned: its size does not matter, nor
#: does where it is wanted now break its rule, as pins lead to where that allows it.
_NO_OBSTACLES = reasons.OF_RULE | frozenset((
    None, reasons.NO_STATISTICS, reasons.OSD_NOT_REPORTED, reasons.OMAP_UNMEASURED,
    reasons.INCONSISTENT, reasons.OMAP_ON_SMALL_OSD, reasons.NO_DATA_SHARDS))
#: Obstacles of an OSD that do not keep it from being wanted for what it holds.
_HOLDS_ALL_THE_SAME = (None, "without statistics")

Osds = Tuple[int, ...]


# Why shards cannot be pinned; none names an OSD or PG, so that equal ones can be counted.
_EXCHANGE = Why("it would exchange OSDs with another shard of the PG, which upmap items cannot",
                codes.EXCHANGE)
_NO_HOLDER = Why("no OSD serves it from where it was: it is recovered", codes.DEGRADED)
_OUTSIDE = Why("the CRUSH rule does not take the OSD that holds it", codes.FAILURE_DOMAIN)
_BESIDE = Why("the CRUSH rule does not allow it there beside the other shards of the PG",
              codes.FAILURE_DOMAIN)
_REJECTED = Why("the monitor would reject upmap items that keep it there", codes.REJECTED)


class Pin(NamedTuple):
    """What can be pinned of one PG."""

    up: Osds                       # wanted: the present up set where nothing can be pinned
    items: UpmapItems              # that lead to it
    shards: int                    # pinned: they would move without it
    moving: int                    # shards that go on moving
    obstacle: Optional[Why]   # the reason for that; None where none does


def pin_of(snapshot: Snapshot, pg: Pg, given: Dict[int, int]) -> Pin:
    """The pin of a PG that is in flight. `given`: OSD → bytes of shards that left an exchange for
    it, to which this one's are added."""
    pool = snapshot.pools[pg.pool]
    moving = len(snapshot.transfers(pg)[0])
    obstacle = _obstacle_of_pg(pg, pool)
    if obstacle is not None:
        return Pin(pg.up, (), 0, moving, obstacle)
    search = _Search(snapshot, pg, pool, given)
    part = search.largest_part()
    up, shards = search.up_set(part), len(part)
    moving = max(moving, shards)
    if shards < moving:
        outside = search.broken_exchange(shards + 1)
        up, shards = (up, shards) if outside is None else outside
    if not shards:
        return Pin(pg.up, (), 0, moving, search.obstacle or _NO_HOLDER)
    return Pin(up, items_for(pg.raw, up), shards, moving - shards,
               (search.obstacle or _NO_HOLDER) if shards < moving else None)


def _obstacle_of_pg(pg: Pg, pool: Pool) -> Optional[Why]:
    """Returns the reason for which nothing of the PG can be pinned, or None."""
    if len(pg.up) != pool.size or NO_OSD in pg.up:
        return reasons.NO_OSD_FOR_SHARD
    if len(set(pg.raw)) < len(pg.raw):   # upmap items cannot tell which of the two they mean
        return reasons.BREAKS_RULE
    for reason in (pool.immovable, pg.immovable):
        if reason is not None and reason not in _NO_OBSTACLES:
            return reason   # a pool says what it is that is not understood of its rule
    return None if pool.rule is not None else reasons.RULE_NOT_SUPPORTED


#: (position in the up set, the OSD that holds its shard)
Held = Tuple[int, int]
Part = Tuple[Held, ...]


class _Search:
    """Looks for the largest part of a PG that can be pinned. In erasure-coded pools a shard belongs
    to its position; in replicated ones only the set counts, and which block of the rule places an
    OSD.

    `obstacle` is the first reason that has kept a shard from being pinned.
    """

    def __init__(self, snapshot: Snapshot, pg: Pg, pool: Pool, given: Dict[int, int]) -> None:
        assert pool.rule is not None
        self._given = given
        self._snapshot, self._pg, self._rule = snapshot, pg, pool.rule
        self._positional = pool.erasure
        self.obstacle: Optional[Why] = None

    def parts(self) -> Iterator[Part]:
        """Yields the parts that may be possible, the largest first."""
        pg, blocks = self._pg, self._rule.blocks
        if self._positional:
            held = self._free()
            for count in range(len(held), 0, -1):
                yield from combinations(held, count)
            return
        coming = [i for i, osd in enumerate(pg.up) if osd not in pg.acting]
        free = [osd for osd in pg.acting if osd not in pg.up and self._may_stay(osd, blocks)]
        ordered = permutations if len(blocks) > 1 else combinations   # which block has which OSD
        for count in range(min(len(free), len(coming)), 0, -1):
            for osds in combinations(free, count):
                for positions in ordered(coming, count):
                    yield tuple(zip(positions, osds))

    def up_set(self, part: Part) -> Osds:
        """The up set that has this part where its data is, the rest where it is wanted now; in a
        replicated pool OSDs that CRUSH chose at their raw positions."""
        wanted = list(self._pg.up)
        for position, osd in part:
            wanted[position] = osd
        return tuple(wanted) if self._positional else (
            keep_raw_positions(self._pg.raw, wanted, self._rule))

    def largest_part(self) -> Part:
        """The largest part that can be pinned; empty where none can."""
        return next((part for part in islice(self.parts(), _MOST_TRIED)
                     if self._is_possible(part)), ())

    def _is_possible(self, part: Part) -> bool:
        """True where upmap items can express the part and nobody rejects them; notes the obstacle
        otherwise."""
        obstacle = self._obstacle(self.up_set(part))
        return obstacle is None or self._note(obstacle)

    def _obstacle(self, wanted: Osds) -> Optional[Why]:
        try:
            items_for(self._pg.raw, wanted)
        except ValueError:
            return _EXCHANGE
        if self._rule.violation(wanted):
            return _BESIDE
        return _REJECTED if self._rule.upmap_rejection(wanted) else None

    def _may_stay(self, osd: int, blocks: Sequence[PlacementBlock]) -> bool:
        """True where an OSD may be wanted for what it holds, in one of these blocks of the rule;
        notes the obstacle otherwise."""
        known = self._snapshot.osds.get(osd)
        if known is None:
            return self._note(_NO_HOLDER)
        # a drain is not broken off by a pin: it has the shard leave again, within its limits
        reason = known._replace(drained=False).unusable_reason()
        if reason not in _HOLDS_ALL_THE_SAME:
            return self._note(Why(f"the OSD that holds it is {reason}", codes.TARGET_UNAVAILABLE))
        return any(osd in block.weights for block in blocks) or self._note(_OUTSIDE)

    def _note(self, obstacle: Why) -> bool:
        if self.obstacle is None:
            self.obstacle = obstacle
        return False

    def broken_exchange(self, least: int) -> Optional[Tuple[Osds, int]]:
        """(an up set, the shards that it pins, at least so many), where one of the shards that
        only exchange their OSDs goes to another; None where none can, or they do more."""
        free = self._free() if self._positional else []
        if len(free) <= least or self._obstacle(self.up_set(tuple(free))) != _EXCHANGE:
            return None
        for leaving in free:
            wanted = list(self.up_set(tuple(held for held in free if held != leaving)))
            for osd in self._outside(leaving[0]):
                wanted[leaving[0]] = osd
                if self._obstacle(tuple(wanted)) is None:
                    self._given[osd] = self._coming(osd) + self._bytes_at(leaving[0], osd)
                    return tuple(wanted), len(free) - 1
        return None

    def _free(self) -> List[Held]:
        """The shards that may stay where they are, as far as can be said of each by itself."""
        pg = self._pg
        if len(pg.acting) != len(pg.up):
            return []
        return [(i, osd) for i, osd in enumerate(pg.acting)
                if osd != pg.up[i] and self._may_stay(osd, (self._rule.block_at(i),))]

    def _outside(self, position: int) -> List[int]:
        """OSDs that may take a shard of the PG and have nothing to do with it, the emptiest
        first."""
        pg, snapshot = self._pg, self._snapshot
        known = {*pg.raw, *pg.up, *pg.acting, *pg.holders}
        limit = effective_fill_limit(0.0, snapshot.backfillfull_ratio)
        osds = [snapshot.osds[osd] for osd in self._rule.block_at(position).weights
                if osd not in known and osd in snapshot.osds]
        fit = [((osd.target_bytes + self._coming(osd.id)) / osd.size_bytes, osd.id) for osd in osds
               if osd.unusable_reason() is None and not osd.reaches(snapshot.nearfull_ratio)
               and osd.target_bytes + self._coming(osd.id) + self._bytes_at(position, osd.id)
               <= limit * osd.size_bytes]
        return [osd for _, osd in sorted(fit)[:_MOST_OUTSIDE]]

    def _coming(self, osd: int) -> int:
        """Bytes that have left other PGs' exchanges for an OSD."""
        return self._given.get(osd, 0)

    def _bytes_at(self, position: int, osd: int) -> int:
        """Bytes of the shard at a position if an OSD takes it."""
        pg = self._pg
        return self._snapshot.shard_bytes(
            pg, osd, tuple([osd if i == position else -1 for i in range(len(pg.up))]))


#: Pins found before it gives way again: about a millisecond.
_PGS_A_PIECE = 5


class Unpinned(NamedTuple):
    """Shards of one PG that move although the plan is carried out."""

    pgid: str
    shards: int
    bytes: int      # of all of them
    obstacle: Why


class Freeze(NamedTuple):
    """A plan that freezes, and what it leaves moving."""

    plan: Plan
    remapped_pgs: int     # that are in flight as the plan is made
    shards: int           # pinned
    bytes: int            # of these
    copies: int           # object copies that Ceph counts as misplaced
    pinned_copies: int    # of these, are pinned
    unpinned: Tuple[Unpinned, ...]


def freeze(snapshot: Snapshot) -> Freeze:
    """Pins every PG that is in flight, as far as it can be. The plan has no usage yet."""
    changes: List[PgChange] = []
    unpinned: List[Unpinned] = []
    skipped: Counter[str] = Counter()   # reason → shards that cannot be pinned for it
    shards = pinned_bytes = copies = pinned_copies = 0
    remapped = snapshot.in_flight()
    given: Dict[int, int] = {}   # OSD → bytes that leave an exchange for it
    for pg in piecewise(remapped.values(), _PGS_A_PIECE):
        pin = pin_of(snapshot, pg, given)
        # what is served where it is not wanted; what no OSD serves is degraded
        leaving = shard_changes(pg.acting, pg.up, snapshot.is_positional(pg))[1]
        copies += sum(osd != NO_OSD for osd in leaving) * pg.objects
        if pin.shards:
            shards += pin.shards
            pinned_bytes += pin.shards * pg.shard_bytes
            pinned_copies += pin.shards * pg.objects
            changes.append(PgChange(pg.pgid, pg.raw, pg.up, pin.up, pin.items, 0, pg.shard_bytes,
                                    pg.objects))
        if pin.obstacle is not None and pin.moving:
            unpinned.append(Unpinned(pg.pgid, pin.moving, pin.moving * pg.shard_bytes,
                                     pin.obstacle))
            skipped[pin.obstacle] += pin.moving
    plan = Plan(epoch=snapshot.epoch, stop_reason=CONVERGED, moves=(),
                changes=tuple(changes), before=Usage({}, {}), after=Usage({}, {}),
                skipped=dict(sorted(skipped.items())), aim=AIMS[0], bounds={}, kind=FREEZE)
    return Freeze(plan, len(remapped), shards, pinned_bytes, copies, pinned_copies,
                  tuple(unpinned))
