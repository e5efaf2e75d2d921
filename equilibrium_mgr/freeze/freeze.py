"""The pin of one remapped PG: the up set nearest to its holders that upmap items can express.

A pinned shard is wanted where it is, so that it does not move. If not all shards of a PG can be
pinned, as many as the search finds are, and the others move as before. Upmap items cannot express
an exchange of OSDs between shards; one of these shards may go to another OSD so that the others
stay.

Shards are pinned only to OSDs of the acting set, because these certainly have the data, whatever
has happened since the PG was clean.

Also the plan that freezes a cluster: the pins of all PGs whose data is not where it is wanted.
"""
from __future__ import annotations

from collections import Counter
from itertools import combinations, islice, permutations
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD, PlacementBlock
from ..plan.model import FREEZE, PgChange, Plan
from ..plan.options import effective_fill_limit
from ..planner.planner import CONVERGED
from ..runtime.time_slice import piecewise
from ..snapshot import immovable_reasons as reasons, reason_codes as codes
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems, shard_changes
from ..snapshot.reason_codes import Why
from ..snapshot.upmap_items import items_for, keep_raw_positions


#: How many parts of a PG the search tries, the largest first: all parts of ten shards.
_MOST_TRIED = 1024
#: How many OSDs the search tries for a shard that leaves an exchange.
_MOST_OUTSIDE = 20
#: Reasons against moving a PG that are none against pinning it: its size does not matter, and a
#: pin is legal even if the present up set breaks the rule.
_NO_OBSTACLES = reasons.OF_RULE | frozenset((
    None, reasons.NO_STATISTICS, reasons.OSD_NOT_REPORTED, reasons.OMAP_UNMEASURED,
    reasons.INCONSISTENT, reasons.OMAP_ON_SMALL_OSD, reasons.NO_DATA_SHARDS))
#: Obstacles of an OSD that do not prevent pins of the shards that it holds.
_HOLDS_ALL_THE_SAME = (None, "without statistics")

Osds = Tuple[int, ...]


# Why shards cannot be pinned. None names an OSD or PG, so that equal reasons can be counted.
_EXCHANGE = Why("it would exchange OSDs with another shard of the PG, which upmap items cannot",
                codes.EXCHANGE)
_NO_HOLDER = Why("no OSD serves it from where it was: it is recovered", codes.DEGRADED)
_OUTSIDE = Why("the CRUSH rule does not take the OSD that holds it", codes.FAILURE_DOMAIN)
_BESIDE = Why("the CRUSH rule does not allow it there beside the other shards of the PG",
              codes.FAILURE_DOMAIN)
_REJECTED = Why("the monitor would reject upmap items that keep it there", codes.REJECTED)


class Pin(NamedTuple):
    """The pin of one PG."""

    up: Osds                  # the wanted up set; the present one if no shard can be pinned
    items: UpmapItems         # produce `up`; empty if no shard can be pinned
    shards: int               # pinned shards, which would move without the pin
    moving: int               # shards that go on moving
    obstacle: Optional[Why]   # the reason for that; None if no shard goes on moving


def pin_of(snapshot: Snapshot, pg: Pg, given: Dict[int, int]) -> Pin:
    """Returns the pin of a PG that is in flight.

    `given`: OSD → bytes of shards that left an exchange for it. This function adds to it.
    """
    pool = snapshot.pools[pg.pool]
    moving = len(snapshot.transfers(pg)[0])
    obstacle = _obstacle_of_pg(pg, pool)
    nothing = Pin(pg.up, (), 0, moving, obstacle)
    if obstacle is not None:
        return nothing
    search = _Search(snapshot, pg, pool, given)
    part = search.largest_part()
    up = search.up_set(part)
    shards = len(part)
    moving = max(moving, shards)
    if shards < moving:
        outside = search.broken_exchange(shards + 1)
        if outside is not None:
            up, shards = outside
    obstacle = search.obstacle or _NO_HOLDER
    if not shards:
        return nothing._replace(obstacle=obstacle)
    if shards >= moving:
        obstacle = None
    return Pin(up, items_for(pg.raw, up), shards, moving - shards, obstacle)


def _obstacle_of_pg(pg: Pg, pool: Pool) -> Optional[Why]:
    """Returns the reason why no shard of the PG can be pinned, or None."""
    if len(pg.up) != pool.size or NO_OSD in pg.up:
        return reasons.NO_OSD_FOR_SHARD
    if len(set(pg.raw)) < len(pg.raw):   # upmap items cannot tell the two shards apart
        return reasons.BREAKS_RULE
    for reason in (pool.immovable, pg.immovable):
        if reason not in _NO_OBSTACLES:
            return reason   # the pool's reason is the more exact one
    return None if pool.rule is not None else reasons.RULE_NOT_SUPPORTED


#: (position in the up set, the OSD that holds its shard)
Held = Tuple[int, int]
Part = Tuple[Held, ...]


class _Search:
    """Looks for the largest part of a PG that can be pinned.

    In erasure-coded pools a shard belongs to its position. In replicated pools only the set
    matters, and which block of the rule places an OSD. `obstacle`: the first reason against pinning
    a shard.
    """

    def __init__(self, snapshot: Snapshot, pg: Pg, pool: Pool, given: Dict[int, int]) -> None:
        assert pool.rule is not None
        self._given = given
        self._snapshot = snapshot
        self._pg = pg
        self._rule = pool.rule
        self._positional = pool.erasure
        self.obstacle: Optional[Why] = None

    def parts(self) -> Iterator[Part]:
        """Yields the parts that may be possible, the largest first."""
        pg = self._pg
        blocks = self._rule.blocks
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
        """Returns the present up set with this part on the OSDs that have its data.

        In a replicated pool the OSDs that CRUSH chose are at their raw positions.
        """
        wanted = list(self._pg.up)
        for position, osd in part:
            wanted[position] = osd
        if self._positional:
            return tuple(wanted)
        return keep_raw_positions(self._pg.raw, wanted, self._rule)

    def largest_part(self) -> Part:
        """Returns the largest part that can be pinned; empty if no part can."""
        for part in islice(self.parts(), _MOST_TRIED):
            obstacle = self._obstacle(self.up_set(part))
            if obstacle is None:
                return part
            self._note(obstacle)
        return ()

    def _obstacle(self, wanted: Osds) -> Optional[Why]:
        """Returns why the up set cannot be pinned, or None."""
        try:
            items_for(self._pg.raw, wanted)
        except ValueError:
            return _EXCHANGE
        if self._rule.violation(wanted):
            return _BESIDE
        return _REJECTED if self._rule.upmap_rejection(wanted) else None

    def _may_stay(self, osd: int, blocks: Sequence[PlacementBlock]) -> bool:
        """Returns True if a shard may be pinned to an OSD by one of these blocks of the rule.

        Notes the obstacle otherwise.
        """
        obstacle = self._obstacle_of_osd(osd)
        if obstacle is None and not any(osd in block.weights for block in blocks):
            obstacle = _OUTSIDE
        if obstacle is not None:
            self._note(obstacle)
        return obstacle is None

    def _obstacle_of_osd(self, osd: int) -> Optional[Why]:
        """Returns why no shard may be pinned to an OSD, or None."""
        known = self._snapshot.osds.get(osd)
        if known is None:
            return _NO_HOLDER
        # a pin does not end a drain: the drain moves the shard again, within its limits
        reason = known._replace(drained=False).unusable_reason()
        if reason not in _HOLDS_ALL_THE_SAME:
            return Why(f"the OSD that holds it is {reason}", codes.TARGET_UNAVAILABLE)
        return None

    def _note(self, obstacle: Why) -> None:
        self.obstacle = self.obstacle or obstacle

    def broken_exchange(self, least: int) -> Optional[Tuple[Osds, int]]:
        """Returns (an up set, the number of shards that it pins, at least `least`), or None.

        One of the shards that exchange their OSDs goes to another OSD. Returns None if no shard
        can do that, if something else than an exchange forbids to pin all shards, and in replicated
        pools.
        """
        free = self._free() if self._positional else []
        if len(free) <= least or self._obstacle(self.up_set(tuple(free))) != _EXCHANGE:
            return None
        for leaving in free:
            position = leaving[0]
            wanted = list(self.up_set(tuple([held for held in free if held != leaving])))
            for osd in self._outside(position):
                wanted[position] = osd
                if self._obstacle(tuple(wanted)) is None:
                    self._given[osd] = self._coming(osd) + self._bytes_at(position, osd)
                    return tuple(wanted), len(free) - 1
        return None

    def _free(self) -> List[Held]:
        """Returns the moving shards that may stay on their OSDs, each taken alone."""
        pg = self._pg
        free: List[Held] = []
        if len(pg.acting) == len(pg.up):
            for i, osd in enumerate(pg.acting):
                if osd != pg.up[i] and self._may_stay(osd, (self._rule.block_at(i),)):
                    free.append((i, osd))
        return free

    def _outside(self, position: int) -> List[int]:
        """Returns OSDs without a shard of the PG that may take one, the emptiest first."""
        pg = self._pg
        snapshot = self._snapshot
        known = {*pg.raw, *pg.up, *pg.acting, *pg.holders}
        limit = effective_fill_limit(0.0, snapshot.backfillfull_ratio)
        fit: List[Tuple[float, int]] = []
        for number in self._rule.block_at(position).weights:
            osd = snapshot.osds.get(number)
            if osd is None or number in known or osd.unusable_reason() is not None:
                continue
            used = osd.target_bytes + self._coming(number)
            has_room = used + self._bytes_at(position, number) <= limit * osd.size_bytes
            if has_room and not osd.reaches(snapshot.nearfull_ratio):
                fit.append((used / osd.size_bytes, number))
        return [osd for _, osd in sorted(fit)[:_MOST_OUTSIDE]]

    def _coming(self, osd: int) -> int:
        """Returns the bytes of shards that leave exchanges of other PGs for an OSD."""
        return self._given.get(osd, 0)

    def _bytes_at(self, position: int, osd: int) -> int:
        """Returns the bytes of the shard at a position if an OSD takes it."""
        osds = [-1] * len(self._pg.up)
        osds[position] = osd
        return self._snapshot.shard_bytes(self._pg, osd, osds)


#: Pins before it gives way again: about a millisecond.
_PGS_A_PIECE = 5


class Unpinned(NamedTuple):
    """Shards of one PG that move in spite of the plan."""

    pgid: str
    shards: int
    bytes: int      # of all these shards
    obstacle: Why


class Freeze(NamedTuple):
    """A plan that freezes the cluster, and the shards that still move."""

    plan: Plan
    remapped_pgs: int     # PGs in flight before the plan
    shards: int           # pinned shards
    bytes: int            # of the pinned shards
    copies: int           # object copies that Ceph counts as misplaced
    pinned_copies: int    # the part of `copies` that the plan pins
    unpinned: Tuple[Unpinned, ...]


def freeze(snapshot: Snapshot) -> Freeze:
    """Returns the plan that pins every PG in flight, as far as possible. The plan has no usage
    yet."""
    changes: List[PgChange] = []
    unpinned: List[Unpinned] = []
    skipped: Counter[str] = Counter()   # reason → shards that cannot be pinned because of it
    shards = pinned_bytes = copies = pinned_copies = 0
    remapped = snapshot.in_flight()
    given: Dict[int, int] = {}   # OSD → bytes of shards that leave an exchange for it
    for pg in piecewise(remapped.values(), _PGS_A_PIECE):
        up, items, count, moving, obstacle = pin_of(snapshot, pg, given)
        pgid = pg.pgid
        size = pg.shard_bytes
        objects = pg.objects
        leaving = shard_changes(pg.acting, pg.up, snapshot.is_positional(pg))[1]
        # a shard that no OSD serves is degraded, not misplaced
        copies += len([osd for osd in leaving if osd != NO_OSD]) * objects
        if count:
            shards += count
            pinned_bytes += count * size
            pinned_copies += count * objects
            changes.append(PgChange(pgid, pg.raw, pg.up, up, items, 0, size, objects))
        if obstacle is not None and moving:
            unpinned.append(Unpinned(pgid, moving, moving * size, obstacle))
            skipped[obstacle] += moving
    plan = Plan(epoch=snapshot.epoch, stop_reason=CONVERGED, moves=(),
                changes=tuple(changes), skipped=dict(sorted(skipped.items())), kind=FREEZE)
    return Freeze(plan, len(remapped), shards, pinned_bytes, copies, pinned_copies,
                  tuple(unpinned))
