"""Plans of kind `steer`: shards that Ceph copies anyway go where there is room.

After a failure Ceph rebuilds lost shards where CRUSH says, and the monitors drop the upmap items
that name the lost OSDs. After a change of CRUSH weights shards move where CRUSH says. Such a plan
holds shards where their data is if they may stay there, and chooses other OSDs for shards that have
no data at their target yet. It adds no copy.

A PG gets no other targets if one of its shards has begun to arrive: Ceph copies a shard from the
beginning if its target changes, and goes on if it stays. Its shards may still be held.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, islice, product
from typing import (
    Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..crush.placement import NO_OSD
from ..plan.fixed_bytes import without_fixed_bytes
from ..plan.model import STEER, Plan, certain_holders, has_begun, least_uncopied
from ..plan.options import PlanOptions, Steering
from ..runtime.time_slice import piecewise, told_to_end
from ..snapshot.in_flight import has_all_shards
from ..snapshot.model import (
    Pg, Pool, Snapshot, is_same_placement, pg_number, shard_changes, without_shares)
from ..snapshot.pg_states import ACTIVE, UNSTEERABLE, has_any
from ..snapshot.upmap_items import items_for, keep_raw_positions
from .bound.demand import movable_bytes
from .bound.lower_bound import UtilizationBounds, leveled_bounds, of_sizes
from .objective import STEERED
from .planner import CONVERGED, INTERRUPTED, PlannedChanges, multi_start_search

#: A PG is left alone if less than this ratio of the bytes of one of its shards is still to be
#: copied.
_HELD_RATIO = 0.5
#: Shards are held although their OSD becomes fuller than others by this ratio of its size.
_CROWDED_RATIO = 0.01
#: Up sets that are tried for one PG: about 30 ms. If its holders clash by a new rule, there are as
#: many as its shards have subsets.
_MOST_TRIED = 4000
#: The emptiest OSDs that are tried for each shard that is not held.
_MOST_TARGETS = 60
#: How the reason begins why a PG in a state that passes is left alone.
BY_STATE = "it is "
_PGS_A_PIECE = 100   # before it gives way again: about a millisecond

Osds = Tuple[int, ...]


class SteeredPg(NamedTuple):
    """Where the shards of one PG may be."""

    up: Osds                # with its shards held where their data is, as far as they may be
    free: FrozenSet[int]    # OSDs of `up` that have no data yet: other OSDs may take their place


class _Chosen(NamedTuple):
    """The up sets that were chosen for PGs in flight."""

    up: Dict[str, Osds]   # by pgid
    finished: bool        # False if the search was told to end
    bounds: UtilizationBounds


def steering_plan(snapshot: Snapshot, options: PlanOptions) -> Plan:
    """Returns a plan of kind STEER. `options.steering` says which shards it may touch."""
    if not options.respect_weights:
        snapshot = without_shares(snapshot)
    steering = options.steering
    assert steering is not None
    pgs, left_alone = _steered_pgs(snapshot, options, steering)
    chosen = _choose(snapshot, options, pgs)
    crowding = _crowding(snapshot, pgs, chosen.up, steering.held_up)
    for pgid in crowding:
        del pgs[pgid]
        left_alone[pgid] = "its OSDs would be fuller than by CRUSH alone"
    if crowding and chosen.finished:
        chosen = _choose(snapshot, options, pgs)
    skipped: Counter[str] = Counter()   # by shard
    for pgid, why in left_alone.items():
        skipped[why] += len(snapshot.transfers(snapshot.pgs[pgid])[0])
    changes = PlannedChanges(snapshot)
    for pgid in piecewise(_largest_first(snapshot, pgs), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        up = chosen.up[pgid]
        positional = snapshot.is_positional(pg)
        if not is_same_placement(pg.up, up, positional):
            gains, losses = shard_changes(pg.up, up, positional)
            changes.add(pg, up, list(zip(losses, gains)), copied=0)
        else:
            left_alone[pgid] = "no other OSDs are better"
    plan = changes.plan(CONVERGED if chosen.finished else INTERRUPTED, options, chosen.bounds)
    return plan._replace(kind=STEER, skipped=dict(sorted(skipped.items())),
                         left_alone=left_alone)


def steered_shards(plan: Plan, snapshot: Snapshot) -> Tuple[int, int]:
    """Returns (shards that come to other OSDs than before, shards that stay where their data is) of
    a plan of kind STEER. `snapshot`: before it."""
    held = 0
    for move in plan.moves:
        pg = snapshot.pgs.get(move.pgid)
        held += pg is not None and move.target in pg.holders
    return len(plan.moves) - held, held


def _choose(snapshot: Snapshot, options: PlanOptions, pgs: Mapping[str, SteeredPg]) -> _Chosen:
    """Chooses the up sets of PGs: a search finds better targets for their free shards."""
    up = {pgid: pg.up for pgid, pg in pgs.items()}
    free = {pgid: pg.free for pgid, pg in pgs.items() if pg.free}
    leveled = without_fixed_bytes(_with_up(snapshot, up))
    bounds = leveled_bounds(leveled, movable_bytes(leveled, frozenset()))
    finished = not told_to_end()
    if free:
        placement, _, finished = multi_start_search(
            leveled, options._replace(only=free, aim=STEERED), bounds)
        osds = placement.osd_ids
        for number, pg in piecewise(enumerate(placement.pgs), _PGS_A_PIECE):
            up[pg.pgid] = tuple([osds[i] for i in placement.up[number]])
    return _Chosen(up, finished, of_sizes(bounds, leveled, snapshot))


def _with_up(snapshot: Snapshot, ups: Mapping[str, Osds]) -> Snapshot:
    """Returns the snapshot as if these PGs were on their way to these up sets."""
    after = dict(snapshot.pgs)
    more: Counter[int] = Counter()   # OSD → bytes
    for pgid, up in piecewise(ups.items(), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        for osd in pg.up:
            more[osd] -= snapshot.shard_bytes(pg, osd, pg.up)
        for osd in up:
            more[osd] += snapshot.shard_bytes(pg, osd, up)
        after[pgid] = pg._replace(up=up)
    osds = dict(snapshot.osds)
    for number, count in more.items():
        osds[number] = osds[number]._replace(inbound_bytes=osds[number].inbound_bytes + count)
    return snapshot._replace(pgs=after, osds=osds)


def _largest_first(snapshot: Snapshot, pgids: Iterable[str]) -> List[str]:
    """Returns the pgids by the size of the PGs' shards, the largest first."""
    return sorted(pgids, key=lambda pgid: (-snapshot.pgs[pgid].shard_bytes, pgid))


def _crowding(snapshot: Snapshot, pgs: Mapping[str, SteeredPg], ups: Mapping[str, Osds],
              held_up: FrozenSet[str]) -> List[str]:
    """Returns the pgids of PGs with a held shard whose new OSDs become too full. `ups`: their up
    sets. `held_up`: as in Steering.

    An OSD is too full if all OSDs of its class are clearly emptier, now and after the moves that
    CRUSH alone makes. Enough PGs are returned to end that, those with the largest shards first. A
    rule that keeps PGs within two racks can cause it, because rebuilt shards go beside held ones.
    If these moves lower the maximum of a class, and balancing cannot go on, every held shard
    counts: OSDs that were added would stay empty beside full ones.
    """
    highest = snapshot.max_utilization_by_class()
    by_crush: Dict[str, float] = defaultdict(float)
    for number in snapshot.alive:
        osd = snapshot.osds[number]
        name = osd.device_class
        by_crush[name] = max(by_crush[name], osd.target_utilization or 0.0)
    excess: Dict[int, float] = {}   # OSD → bytes
    for number, osd in _with_up(snapshot, ups).osds.items():
        name = osd.device_class
        allowed = max(highest[name], by_crush[name]) + _CROWDED_RATIO
        if by_crush[name] < highest[name] and name in held_up:
            allowed = 0.0
        excess[number] = osd.target_bytes - allowed * osd.size_bytes
    found: List[str] = []
    for pgid in piecewise(_largest_first(snapshot, pgs), _PGS_A_PIECE):
        pg = snapshot.pgs[pgid]
        up = ups[pgid]
        if not set(pgs[pgid].up).difference(pg.up, pgs[pgid].free):
            continue   # none of its shards is held
        crowded = [target for target in set(up).difference(pg.up) if excess[target] > 0.0]
        if crowded:
            found.append(pgid)
        for target in crowded:
            excess[target] -= snapshot.shard_bytes(pg, target, up)
    return found


def _steered_pgs(snapshot: Snapshot, options: PlanOptions, steering: Steering
                 ) -> Tuple[Dict[str, SteeredPg], Dict[str, str]]:
    """Returns pgid → where the shards of PGs in flight may be; and pgid → why others are left
    alone."""
    found: Dict[str, SteeredPg] = {}
    left_alone: Dict[str, str] = {}
    moving = snapshot.in_flight()
    emptiest = _emptiest_first(snapshot, options)
    in_order = sorted(moving, key=lambda pgid: (moving[pgid].pool, pg_number(pgid)))
    for pgid in piecewise(in_order, 1):
        pg = moving[pgid]
        why: Optional[str] = "the time for a plan was over"
        if not told_to_end():
            why = obstacle(snapshot, options, steering, pg)
        if why is None:
            steerable = _SteerablePg(snapshot, pg, steering, emptiest)
            steered = steerable.steered()
            if steered is not None:
                found[pgid] = steered
                continue
            why = steerable.why_not()
        left_alone[pgid] = why
    return found, left_alone


def _emptiest_first(snapshot: Snapshot, options: PlanOptions) -> List[int]:
    """Returns the OSDs that shards may come to, the emptiest first."""
    usable: List[Tuple[float, int]] = []
    for osd in snapshot.osds.values():
        if osd.unusable_reason() is None and not osd.reaches(snapshot.nearfull_ratio):
            if options.targets is None or osd.id in options.targets:
                usable.append((osd.target_bytes / osd.size_bytes, osd.id))
    return [number for _, number in sorted(usable)]


def obstacle(snapshot: Snapshot, options: PlanOptions, steering: Steering,
             pg: Pg) -> Optional[str]:
    """Returns why a PG in flight keeps its targets, or None."""
    pool = snapshot.pools[pg.pool]
    if options.pool_ids is not None and pg.pool not in options.pool_ids:
        return "its pool is left out by the options"
    if pg.pgid in options.rejected_pgs:
        return "the monitor has rejected its upmap items"
    if pool.rule is None or pg.immovable is not None:
        return str(pg.immovable or pool.immovable)
    if pool.touched:
        return "pg_num of its pool is changing"   # steps of pg_num have perhaps moved it
    if len(pg.up) != pool.size or NO_OSD in pg.up or NO_OSD in pg.raw:
        return "a shard of it has no OSD"   # monitors drop all items of such a PG
    passing = state_obstacle(pg)
    if passing:
        return passing
    if pool.rule.refusal(pg.up):
        return f"its OSDs break CRUSH rule {snapshot.crush.rule_name(pool.rule_id)}"
    if has_all_shards(pg.holders, pool.size):
        if not steering.moved:
            return "hold_placement is off"
    elif not steering.rebuilt:
        return "steer_recovery is off"
    if pg.pgid not in steering.at_rest and not only_lacks_copies(pg, pool):
        return "it moved before the change"
    if least_uncopied(pg) < _HELD_RATIO:
        return "most of it has arrived"
    coming = snapshot.transfers(pg)[0]
    if pg.pgid in steering.returned:
        return "an OSD has come back that may have its data"
    classes = options.device_classes
    if classes and any(snapshot.osds[osd].device_class not in classes for osd in coming):
        return "its OSDs are of device classes that the options leave out"
    return None


def state_obstacle(pg: Pg) -> str:
    """Returns why the state of a PG, which passes, does not allow to steer its shards; empty if it
    does."""
    if ACTIVE in pg.state and not has_any(pg.state, UNSTEERABLE):
        return ""
    states = UNSTEERABLE.intersection(pg.state.split("+"))
    return f"{BY_STATE}{'+'.join(sorted(states)) or 'not active'}"


def only_lacks_copies(pg: Pg, pool: Pool) -> bool:
    """Returns True if the PG lacks shards, and all shards that come to its OSDs are rebuilt: none
    leaves another OSD."""
    return not has_all_shards(pg.holders, pool.size) and set(pg.holders) <= {*pg.up, NO_OSD}


class _SteerablePg:
    """One PG in flight, whose shards are held or get other targets."""

    def __init__(self, snapshot: Snapshot, pg: Pg, steering: Steering,
                 emptiest: Sequence[int]) -> None:
        pool = snapshot.pools[pg.pool]
        assert pool.rule is not None
        self._snapshot = snapshot
        self._pg = pg
        self._rule = pool.rule
        self._positional = pool.erasure
        self._emptiest = emptiest
        self._may_hold = pg.pgid in steering.at_rest
        self._holders = pg.holders
        if pg.doubtful_holders:   # an OSD was down before it was out; others may have lost data
            self._holders = certain_holders(pg, pool.erasure)
        self._tries_left = _MOST_TRIED

    def steered(self) -> Optional[SteeredPg]:
        """Returns where the shards may be: as many as possible are held. None: nowhere else."""
        pins = self._pins() if self._may_hold else []
        keeps_targets = has_begun(self._pg)
        for count in range(len(pins), int(keeps_targets) - 1, -1):
            for part in combinations(pins, count):
                if self._tries_left <= 0:
                    return None
                up = self._completed(dict(part), keeps_targets)
                if up is not None:
                    without_data = set(up).difference(self._pg.holders)
                    return SteeredPg(up, frozenset(() if keeps_targets else without_data))
        return None

    def why_not(self) -> str:
        """Returns why `steered` has found nothing."""
        pool = self._snapshot.pools[self._pg.pool]
        if has_begun(self._pg):
            return "its shards have begun to arrive"
        rule = self._snapshot.crush.rule_name(pool.rule_id)
        return f"CRUSH rule {rule} allows no other OSDs beside the shards that stay"

    def _pins(self) -> List[Tuple[int, int]]:
        """Returns (position of the up set, the OSD that holds its shard) of shards that may
        stay."""
        pg = self._pg
        if self._positional:
            pairs = [(i, held) for i, (held, now) in enumerate(zip(self._holders, pg.up))
                     if held not in (now, NO_OSD)]
            return [(i, held) for i, held in pairs if self._may_stay(i, held)]
        found: List[Tuple[int, int]] = []
        gains = [i for i, osd in enumerate(pg.up) if osd not in pg.holders]
        for held in self._holders:
            if held in pg.up or held == NO_OSD:
                continue
            position = next((i for i in gains if self._may_stay(i, held)), None)
            if position is not None:
                gains.remove(position)
                found.append((position, held))
        return found

    def _may_stay(self, position: int, number: int) -> bool:
        """Returns True if the shard at a position may stay on an OSD."""
        osd = self._snapshot.osds.get(number)
        if osd is None or osd.unusable_reason() is not None:
            return False
        if osd.exceeds(self._snapshot.backfillfull_ratio):
            return False
        return number in self._rule.block_at(position).weights

    def _completed(self, pins: Dict[int, int], keeps_targets: bool) -> Optional[Osds]:
        """Returns a legal up set with the shards of `pins` held, or None if there is none.

        The other shards stay where CRUSH wants them if that is legal. Otherwise those without data,
        two at most, go to the emptiest OSDs, unless the PG `keeps_targets`.
        """
        wanted = [pins.get(i, osd) for i, osd in enumerate(self._pg.up)]
        if self._is_legal(wanted):
            return tuple(wanted)
        if keeps_targets:
            return None
        holes = [i for i in self._coming() if i not in pins]
        if not 1 <= len(holes) <= 2 or self._do_clash(wanted, holes):
            return None
        for osds in islice(self._others(wanted, holes), max(0, self._tries_left)):
            for position, osd in zip(holes, osds):
                wanted[position] = osd
            if self._is_legal(wanted):
                return tuple(wanted)
        return None

    def _do_clash(self, wanted: Sequence[int], holes: Sequence[int]) -> bool:
        """Returns True if the OSDs of `wanted` outside the holes already break the rule."""
        self._tries_left -= 1
        kept = [NO_OSD if i in holes else osd for i, osd in enumerate(wanted)]
        return self._rule.conflict(kept) is not None

    def _coming(self) -> List[int]:
        """Returns the positions of the up set whose OSD has no data of its shard yet."""
        pg = self._pg
        if self._positional:
            return [i for i, (held, now) in enumerate(zip(pg.holders, pg.up)) if held != now]
        return [i for i, osd in enumerate(pg.up) if osd not in pg.holders]

    def _others(self, wanted: Sequence[int], holes: Sequence[int]) -> Iterator[Osds]:
        """Yields OSDs for the holes, the emptiest first."""
        choices: List[List[int]] = []
        taken = {osd for i, osd in enumerate(wanted) if i not in holes}
        taken.update(self._pg.holders)
        for position in holes:
            weights = self._rule.block_at(position).weights
            fit = (osd for osd in self._emptiest if osd in weights and osd not in taken)
            choices.append(list(islice(fit, _MOST_TARGETS)))
        for osds in product(*choices):
            if len(set(osds)) == len(osds):
                yield osds

    def _is_legal(self, wanted: Sequence[int]) -> bool:
        self._tries_left -= 1
        if len(set(wanted)) < len(wanted) or self._rule.refusal(wanted) is not None:
            return False
        raw = self._pg.raw
        if not self._positional:
            wanted = keep_raw_positions(raw, wanted, self._rule)
        try:
            items_for(raw, wanted)
        except ValueError:
            return False
        return True
