"""The mark of a cluster: what plans depend on, at one moment, and what has changed since another.

Noise of a percent never counts, nor does an OSD that is down but still in: its data is where it
was, and guards keep moves away from it.

The gain for which an automatic plan is carried out.
"""
from __future__ import annotations

from statistics import median
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..execution.throttle import OsdTraffic, predicted_utilization
from ..gateway.cluster_summary import Fullness
from ..plan.model import PgChange, Plan
from ..plan.options import PlanOptions
from ..plan.usage import ShardCounts, bytes_beyond_share
from ..runtime.formatting import format_bytes, format_percent
from ..snapshot import immovable_reasons as reasons
from ..snapshot.model import Pool, Snapshot, pool_of
from ..snapshot.operator_weights import held_sentence

#: An OSD's utilization must differ by this much: more than twice the measurement noise of a full
#: OSD.
_UTILIZATION = 0.03
#: Where nothing is left to gain, an OSD has to differ from the others by this ratio of min_gain,
#: and by this multiple of the mean difference between two reports: that is noise.
_GAIN_RATIO, _LEAST_GAIN = 0.25, 0.001
_NOISE_RATIO = 6.0
#: Shards of a pool on an OSD that are placed otherwise, and of those there: their weights change
#: with each fit of sizes, by less.
_SHARD, _PLACED_RATIO = 0.25, 0.02
#: An OSD counts as newly above nearfull by this much: more than measurement noise.
_NEARFULL_MARGIN = 0.01


class ClusterMark(NamedTuple):
    """What a plan rests on, as plain values."""

    options: PlanOptions                     # that it is asked for with
    min_gain: float                          # a ratio, as the option
    excluded_pools: FrozenSet[int]           # that it leaves alone
    full_ratios: Tuple[float, float, float]  # full, backfillfull, nearfull
    osds: Mapping[int, Tuple[Any, ...]]      # in, reweight, destroyed, class, place in the tree
    pools: Mapping[int, Tuple[Any, ...]]     # pg_num, size, rule, why immovable
    drained_osds: FrozenSet[int]             # nothing may go to these
    placed: ShardCounts                      # by the up sets; empty where it does not matter
    down_osds: FrozenSet[int]
    utilization: Mapping[int, float]         # of OSDs that are up, once everything has arrived
    unknown_pgs: int                         # PGs of which nobody knows how much they hold
    held_pgs: int                            # PGs that stay until somebody lets them go
    fullness: Fullness
    noise: float                             # mean difference of utilizations between two reports

    @property
    def unsettled(self) -> Tuple[Any, ...]:
        """The part of the topology that may flap; what a command has said need not settle."""
        return self.osds, self.pools

    def is_same_request(self, options: PlanOptions) -> bool:
        """True where the options differ at most in the PGs that the monitor did not keep."""
        return self.options._replace(rejected_pgs=options.rejected_pgs) == options

    def touched(self, later: ClusterMark, changes: Sequence[PgChange]) -> List[PgChange]:
        """The changes whose own OSDs or pool are others later, by what may flap."""
        osds = {osd for osd in self.osds.keys() | later.osds.keys()
                if self.osds.get(osd) != later.osds.get(osd)}
        pools = {pool for pool in self.pools.keys() | later.pools.keys()
                 if self.pools.get(pool) != later.pools.get(pool)}
        return [change for change in changes if pool_of(change.pgid) in pools
                or not osds.isdisjoint(change.up_before + change.up_after)]


def mark_of(snapshot: Snapshot, options: PlanOptions, min_gain: float,
            excluded_pools: FrozenSet[int] = frozenset(), placed: ShardCounts = {},
            noise: float = 0.0) -> ClusterMark:
    """The mark of a snapshot for a plan with these options."""
    places = snapshot.crush.places()
    return ClusterMark(
        options, min_gain, excluded_pools,
        full_ratios=(snapshot.full_ratio, snapshot.backfillfull_ratio, snapshot.nearfull_ratio),
        osds={o.id: (o.is_in, o.reweight, o.destroyed, o.device_class, places.get(o.id))
              for o in snapshot.osds.values()},
        pools={pool.id: _pool(pool, snapshot) for pool in snapshot.pools.values()},
        drained_osds=snapshot.drained_osds, placed=placed,
        down_osds=frozenset(o.id for o in snapshot.osds.values() if o.is_in and not o.up),
        utilization={o.id: o.target_utilization or 0.0 for o in snapshot.osds.values()
                     if o.up and o.has_statistics and o.size_bytes > 0},
        unknown_pgs=sum(snapshot.skipped.get(why, 0) for why in reasons.UNKNOWN),
        held_pgs=sum(snapshot.skipped.get(why, 0) for why in reasons.LIFTED),
        fullness=Fullness(*(sum(o.is_in and o.exceeds(ratio) for o in snapshot.osds.values())
                            for ratio in (snapshot.nearfull_ratio, snapshot.backfillfull_ratio))),
        noise=noise)


def _pool(pool: Pool, snapshot: Snapshot) -> Tuple[Any, ...]:
    # pg_num changes step by step; that it is changing is enough to know until it is through
    changing = pool.immovable == reasons.PG_NUM_CHANGING
    return (0 if changing else pool.pg_num, pool.size, snapshot.crush.rules.get(pool.rule_id),
            pool.immovable)


def topology_change(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """The change that makes other placements legal than before, as a clause, or None. Pools that
    the plan of `then` leaves alone do not count."""
    if then.full_ratios != now.full_ratios:
        return "a full ratio has changed"
    for osd in sorted(then.osds.keys() | now.osds.keys()):
        old, new = then.osds.get(osd), now.osds.get(osd)
        if old is None or new is None:
            return f"osd.{osd} is {'new' if old is None else 'gone'}"
        if old[0] != new[0]:
            return f"osd.{osd} is {'in again' if new[0] else 'out'}"
        if old != new:
            what = "weight" if old[1] != new[1] else "place in the CRUSH map"
            return f"osd.{osd} has another {what}"
    for osd in sorted(then.drained_osds ^ now.drained_osds):
        return f"osd.{osd} is {'' if osd in now.drained_osds else 'no longer '}being drained"
    if any(then.pools.get(pool) != now.pools.get(pool)
           for pool in (then.pools.keys() | now.pools.keys()) - then.excluded_pools):
        return "the pools have changed"
    return None


def change_of(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """What has changed so that a plan which had nothing to gain could gain something at once, as a
    clause, or None."""
    if (then.options, then.min_gain) != (now.options, now.min_gain):
        return "the options have changed"
    if any(new > old for new, old in zip(now.fullness, then.fullness)) or _newly_nearfull(
            then, now.utilization, now.full_ratios[2]):
        return "another OSD is too full"   # no plan has tried to help it
    if then.excluded_pools != now.excluded_pools:
        return "other pools are left alone"
    return topology_change(then, now)


def data_change(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """What has become known of the data since, as a clause, or None."""
    back = sorted(then.down_osds & frozenset(now.osds) - now.down_osds)
    if back:
        return f"osd.{back[0]} is up again"
    # by half at least: deep scrubs tell it PG by PG, for weeks
    if now.unknown_pgs * 2 <= then.unknown_pgs and then.unknown_pgs:
        return f"{then.unknown_pgs - now.unknown_pgs} PGs have told how much they hold"
    if now.held_pgs * 2 <= then.held_pgs and then.held_pgs:
        return f"{then.held_pgs - now.held_pgs} PGs may be moved again"
    told = sorted(osd for osd in now.utilization if osd not in then.utilization
                  and osd in then.osds and then.osds[osd][0])
    return f"osd.{told[0]} has reported its statistics" if told else None


def drift(then: ClusterMark, now: ClusterMark) -> Optional[str]:
    """A change of what OSDs hold, at rest, by which a plan could gain min_gain that gained less
    before, as a clause, or None: by a part of min_gain otherwise than most of the class, or by all
    of it alike, as growth makes other moves worth their bytes."""
    if now.down_osds == then.down_osds and now.placed != then.placed and any(
            abs(shards - now.placed.get(pool, {}).get(osd, 0.0)) > max(
                _SHARD, _PLACED_RATIO * shards)
            for pool, placed in then.placed.items() for osd, shards in placed.items()):
        return "shards are placed otherwise"   # what leaves none of these moves bytes
    by_class: Dict[str, Dict[int, float]] = {}
    for osd in now.utilization.keys() & then.utilization.keys():
        by_class.setdefault(now.osds[osd][3], {})[osd] = (
            now.utilization[osd] - then.utilization[osd])
    apart = [(abs(change - middle), -osd) for changes in by_class.values()
             for middle in [median(changes.values())] for osd, change in changes.items()]
    worst, osd = max(apart, default=(0.0, 0))
    # what differs by more than noise of a full OSD counts, however much the others swing
    least = max(_GAIN_RATIO * max(then.min_gain, _LEAST_GAIN),
                min(_UTILIZATION, _NOISE_RATIO * now.noise))
    if worst > least:
        return _drift_clause(-osd, now.utilization, then)
    least = max(then.min_gain, _LEAST_GAIN, min(_UTILIZATION, _NOISE_RATIO * now.noise))
    for changes in by_class.values():
        middle = median(changes.values())
        if abs(middle) > least:
            return f"most OSDs are {'fuller' if middle > 0 else 'emptier'}"
    return None


def unplanned_change(then: ClusterMark, snapshot: Snapshot, traffic: OsdTraffic,
                     wanted: Sequence[PgChange], moved: Mapping[int, int]) -> Optional[str]:
    """A change of OSDs since the plan under way was made that it does not expect, as a clause, or
    None.

    `wanted`: what of the plan is still to go. `moved`: OSD → bytes that it has moved so far; what
    has left an OSD is deleted some time later, so that drift is measured on top of these.
    """
    predicted = {osd.id: predicted_utilization(snapshot, traffic.of(osd.id), osd.id)
                 - osd.leftover_bytes / max(1, osd.size_bytes)
                 for osd in snapshot.osds.values() if osd.up and osd.id in then.utilization}
    overfull = _newly_nearfull(then, predicted, snapshot.nearfull_ratio)
    for change in wanted if overfull else ():
        overfull -= frozenset(change.up_before) - frozenset(change.up_after)
    if overfull:
        return f"osd.{min(overfull)} is above nearfull now, and the plan does not help it"
    for osd, utilization in sorted(predicted.items()):
        own = moved.get(osd, 0) / max(1, snapshot.osds[osd].size_bytes)
        if snapshot.osds[osd].has_statistics and abs(
                utilization - then.utilization[osd]) > _UTILIZATION + own:
            return _drift_clause(osd, predicted, then)
    return None


def _newly_nearfull(then: ClusterMark, utilization: Mapping[int, float],
                    nearfull_ratio: float) -> FrozenSet[int]:
    """OSDs that were not above nearfull and are now, by more than noise, once everything in flight
    has arrived."""
    return frozenset(osd for osd, ratio in utilization.items()
                     if ratio > nearfull_ratio + _NEARFULL_MARGIN
                     and then.utilization.get(osd, ratio) <= nearfull_ratio)


def _drift_clause(osd: int, utilization: Mapping[int, float], then: ClusterMark) -> str:
    return (f"osd.{osd} is at {100.0 * utilization[osd]:.1f} % instead of"
            f" {100.0 * then.utilization[osd]:.1f} %")


#: A pool is small that holds less than this ratio of what the OSDs of its rule use.
_SMALL_RATIO = 0.01


def gain_reason(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """The gain for which a plan is carried out, as a clause for the history; None where it is too
    small. `min_gain` is a ratio (the option of that name)."""
    if not plan.changes:
        return None
    osds = snapshot.osds
    leaving: Dict[int, int] = {}   # OSD → bytes that leave it less those that come
    for move in plan.moves:
        leaving[move.source] = leaving.get(move.source, 0) + move.bytes
        leaving[move.target] = leaving.get(move.target, 0) - move.bytes
    drained = sorted({move.source for move in plan.moves
                      if move.source in osds and osds[move.source].drained})
    if drained:
        others = f" (and {len(drained) - 1} more)" if len(drained) > 1 else ""
        return f"osd.{drained[0]}{others} is being drained"
    for osd, relieved in sorted(leaving.items()):
        if relieved > 0 and osd in osds and (
                osds[osd].target_utilization or 0.0) > snapshot.nearfull_ratio:
            return f"osd.{osd} is above nearfull"
    for osd, excess in bytes_beyond_share(snapshot).items():
        if min(excess, leaving.get(osd, 0)) >= max(1.0, min_gain * osds[osd].capacity_bytes):
            return f"{held_sentence(osds[osd])} and has more"   # than operators' weights leave it
    for name, before in sorted(plan.before.classes.items()):
        after = plan.after.classes.get(name)
        if after is not None and before.max - after.max >= max(min_gain, 1e-9):
            return (f"the fullest OSD of class {name} can be brought from"
                    f" {format_percent(before.max)}% to {format_percent(after.max)}%")
    small = {pool.name for pool in snapshot.pools.values() if _is_small(pool, snapshot)}
    for name, was in sorted(plan.before.pools.items()):
        becomes = plan.after.pools.get(name)
        if becomes is not None and was.stored_bytes > 0 and name not in small:
            gained = becomes.free_bytes - was.free_bytes
            # of what the pool holds and could hold
            if gained >= max(min_gain * (was.stored_bytes + was.free_bytes), 1.0):
                return f"pool {name} can have {format_bytes(gained)} more"
    return None if min_gain > 0.0 else "there are moves that improve the placement"


def _is_small(pool: Pool, snapshot: Snapshot) -> bool:
    """True for a pool that holds too little to be worth a move, as `.mgr` does."""
    used = sum(snapshot.osds[osd].used_bytes for osd in (pool.rule.osds() if pool.rule else ())
               if osd in snapshot.osds)
    return pool.stored_bytes * pool.size / pool.data_shards < _SMALL_RATIO * used
