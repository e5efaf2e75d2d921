"""Validity of plans: fingerprints of the cluster at two moments, and the changes between them.

Noise of a percent never counts, nor does an OSD that is down but still in: its data is where it
was, and guards keep moves away from it.
"""
from __future__ import annotations

from statistics import median
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..execution.osd_traffic import OsdTraffic, predicted_utilization
from ..gateway.cluster_summary import Fullness
from ..plan.model import PgChange
from ..snapshot import immovable_reasons as reasons
from ..snapshot.model import Pool, Snapshot, pool_of

#: A pool must have grown or shrunk by this ratio of itself, by a typical shard at least, and by so
#: much that an OSD's utilization changes by min_gain; by _LEAST_GAIN where that is less.
_POOL_RATIO = 0.05
_LEAST_GAIN = 0.001
#: An OSD's utilization must differ by this much: more than twice the measurement noise of a full
#: OSD.
_UTILIZATION = 0.03
#: Of two reports of even noise an OSD differs from the others by no more than this multiple of the
#: mean difference.
_NOISE_RATIO = 6.0
#: Where nothing is left to gain, an OSD has to differ by this ratio of min_gain.
_GAIN_RATIO = 0.25
#: An OSD counts as newly above nearfull by this much: more than measurement noise.
_NEARFULL_MARGIN = 0.01


class ClusterFingerprint(NamedTuple):
    """The parts of a snapshot that a plan rests on, as plain values."""

    full_ratios: Tuple[float, ...]
    osds: Mapping[int, Tuple[Any, ...]]      # in, reweight, destroyed, class, place in the tree
    pools: Mapping[int, Tuple[Any, ...]]     # pg_num, size, rule, why immovable
    placed: Mapping[int, Mapping[int, float]]   # pool → OSD → shards by the up sets
    down_osds: FrozenSet[int]
    pool_bytes: Mapping[int, int]
    pg_bytes: Mapping[int, int]              # the mean of a pool
    pool_share: Mapping[int, float]          # of its bytes: utilization that they are on an OSD
    utilization: Mapping[int, float]         # of OSDs that are up, once everything has arrived
    excluded_pools: FrozenSet[int] = frozenset()       # pools that the plan leaves alone
    unknown_pgs: int = 0                         # PGs of which nobody knows how much they hold
    held_pgs: int = 0                            # PGs that stay until somebody lets them go
    fullness: Fullness = Fullness()
    drained_osds: FrozenSet[int] = frozenset()   # nothing may go to these

    @property
    def topology(self) -> Tuple[Any, ...]:
        """A value that is equal as long as the same placements are legal."""
        return self.full_ratios, self.osds, self.pools, self.drained_osds

    @property
    def unsettled(self) -> Tuple[Any, ...]:
        """The part of the topology that may flap; what a command has said need not settle."""
        return self.osds, self.pools

    def touched(self, later: ClusterFingerprint, changes: Sequence[PgChange]) -> List[PgChange]:
        """The changes whose own OSDs or pool are others later, by what may flap."""
        osds = {osd for osd in self.osds.keys() | later.osds.keys()
                if self.osds.get(osd) != later.osds.get(osd)}
        pools = {pool for pool in self.pools.keys() | later.pools.keys()
                 if self.pools.get(pool) != later.pools.get(pool)}
        return [change for change in changes if pool_of(change.pgid) in pools
                or not osds.isdisjoint(change.up_before + change.up_after)]


def fingerprint_of(snapshot: Snapshot, excluded_pools: FrozenSet[int] = frozenset(),
                   placed: Optional[Mapping[int, Mapping[int, float]]] = None
                   ) -> ClusterFingerprint:
    """`excluded_pools`: pools that the plan leaves alone. `placed`: the snapshot's shards."""
    pools, places = snapshot.pools.values(), snapshot.crush.places()
    return ClusterFingerprint(
        full_ratios=(snapshot.full_ratio, snapshot.backfillfull_ratio, snapshot.nearfull_ratio),
        osds={o.id: (o.is_in, o.reweight, o.destroyed, o.device_class, places.get(o.id))
              for o in snapshot.osds.values()},
        pools={pool.id: _pool(pool, snapshot) for pool in pools},
        placed=placed or {},
        down_osds=frozenset(o.id for o in snapshot.osds.values() if o.is_in and not o.up),
        pool_bytes={pool.id: pool.stored_bytes for pool in pools},
        pg_bytes={pool.id: pool.stored_bytes // max(1, pool.pg_num) for pool in pools},
        pool_share=_pool_shares(snapshot),
        utilization={o.id: o.target_utilization or 0.0 for o in snapshot.osds.values()
                     if o.up and o.has_statistics and o.size_bytes > 0},
        excluded_pools=excluded_pools,
        drained_osds=snapshot.drained_osds,
        unknown_pgs=sum(snapshot.skipped.get(why, 0) for why in reasons.UNKNOWN),
        held_pgs=sum(snapshot.skipped.get(why, 0) for why in reasons.LIFTED),
        fullness=Fullness(*(sum(o.is_in and o.exceeds(ratio) for o in snapshot.osds.values())
                            for ratio in (snapshot.nearfull_ratio, snapshot.backfillfull_ratio))))


def _pool_shares(snapshot: Snapshot) -> Dict[int, float]:
    """Pool → utilization of an OSD that one byte stored in the pool stands for, where its shards
    are spread evenly; pools whose rule is not understood are left out.

    Works from the rules alone: counting a million shards in every round would cost too much.
    """
    spread: Dict[Tuple[int, int, bool], Tuple[int, float]] = {}   # OSDs, their mean size
    shares: Dict[int, float] = {}
    for pool in snapshot.pools.values():
        if pool.rule is None or pool.pg_num <= 0:
            continue
        key = pool.rule_id, pool.size, pool.erasure
        if key not in spread:
            sizes = [snapshot.osds[osd].size_bytes for osd in set(pool.rule.osds())
                     if osd in snapshot.osds and snapshot.osds[osd].has_statistics]
            spread[key] = len(sizes), sum(sizes) / len(sizes) if sizes else 0.0
        osds, size_bytes = spread[key]
        if osds and size_bytes > 0.0:
            shards_an_osd = -(-pool.pg_num * pool.size // osds)   # a whole one at least
            shares[pool.id] = shards_an_osd / (pool.pg_num * pool.data_shards * size_bytes)
    return shares


def _pool(pool: Pool, snapshot: Snapshot) -> Tuple[Any, ...]:
    # pg_num changes step by step; that it is changing is enough to know until it is through
    changing = pool.immovable == reasons.PG_NUM_CHANGING
    return (0 if changing else pool.pg_num, pool.size, snapshot.crush.rules.get(pool.rule_id),
            pool.immovable)


def topology_change(then: ClusterFingerprint, now: ClusterFingerprint) -> Optional[str]:
    """The change that makes other placements legal than before, as a clause, or None."""
    if then.topology == now.topology:
        return None
    if (then.full_ratios, then.osds, then.drained_osds) == (
            now.full_ratios, now.osds, now.drained_osds) and _pools_but(
            then, then.excluded_pools) == _pools_but(now, then.excluded_pools):
        return None  # others have changed only
    if then.full_ratios != now.full_ratios:
        return "a full ratio has changed"
    for osd in sorted(set(then.osds) | set(now.osds)):
        if then.osds.get(osd) != now.osds.get(osd):
            return f"osd.{osd} {_osd_event(then.osds.get(osd), now.osds.get(osd))}"
    for osd in sorted(then.drained_osds ^ now.drained_osds):
        return f"osd.{osd} is {'' if osd in now.drained_osds else 'no longer '}being drained"
    return "the pools have changed"


def _pools_but(fingerprint: ClusterFingerprint,
               excluded: FrozenSet[int]) -> Dict[int, Tuple[Any, ...]]:
    return {pool: facts for pool, facts in fingerprint.pools.items() if pool not in excluded}


def _osd_event(then: Optional[Tuple[Any, ...]], now: Optional[Tuple[Any, ...]]) -> str:
    if then is None:
        return "is new"
    if now is None:
        return "is gone"
    if then[0] != now[0]:
        return "is in again" if now[0] else "is out"
    return "has another weight" if then[1] != now[1] else "has another place in the CRUSH map"


def data_change(then: ClusterFingerprint, now: ClusterFingerprint,
                min_gain: float) -> Optional[str]:
    """The data that has grown or shrunk by more than noise, as a clause, or None.

    A small pool may grow and shrink at will: what counts is by how much that changes the
    utilization of OSDs (`min_gain`, a ratio).
    """
    least = max(min_gain, _LEAST_GAIN)
    for pool, stored in sorted(now.pool_bytes.items()):
        before = then.pool_bytes.get(pool, 0)
        change = abs(stored - before)
        if change > max(_POOL_RATIO * before, then.pg_bytes.get(pool, 0)):
            if change * now.pool_share.get(pool, 0.0) >= least:
                return f"pool {pool} has {'grown' if stored > before else 'shrunk'}"
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


def newly_nearfull(then: ClusterFingerprint, predicted: Mapping[int, float],
                   nearfull_ratio: float) -> FrozenSet[int]:
    """OSDs that were not above nearfull and are now, by more than noise; `predicted`: OSD →
    utilization once everything in flight has arrived."""
    return frozenset(osd for osd, utilization in predicted.items()
                     if utilization > nearfull_ratio + _NEARFULL_MARGIN
                     and then.utilization.get(osd, utilization) <= nearfull_ratio)


def unplanned_change(then: ClusterFingerprint, snapshot: Snapshot, traffic: OsdTraffic,
                     wanted: Sequence[PgChange], moved: Mapping[int, int]) -> Optional[str]:
    """A change of OSDs since the plan under way was made that it does not expect, as a clause, or
    None.

    `wanted`: what of the plan is still to go. `moved`: OSD → bytes that it has moved so far; what
    has left an OSD is deleted some time later, so that drift is measured on top of these.
    """
    predicted = {osd.id: predicted_utilization(snapshot, traffic.of(osd.id), osd.id)
                 - osd.leftover_bytes / max(1, osd.size_bytes)
                 for osd in snapshot.osds.values() if osd.up and osd.id in then.utilization}
    overfull = newly_nearfull(then, predicted, snapshot.nearfull_ratio)
    for change in wanted if overfull else ():
        overfull -= frozenset(change.up_before) - frozenset(change.up_after)
    if overfull:
        return f"osd.{min(overfull)} is above nearfull now, and the plan does not help it"
    for osd, utilization in sorted(predicted.items()):
        own = moved.get(osd, 0) / max(1, snapshot.osds[osd].size_bytes)
        if snapshot.osds[osd].has_statistics and abs(
                utilization - then.utilization[osd]) > _UTILIZATION + own:
            return _drift_clause(osd, utilization, then.utilization[osd])
    return None


def rest_change(then: ClusterFingerprint, now: ClusterFingerprint, min_gain: float,
                noise: float) -> Optional[str]:
    """A change by which a plan could gain min_gain that gained less before, as a clause, or None.

    `noise`: the mean by which OSDs' utilization differs from one report to the next.
    """
    if then.placed and now.placed != then.placed and now.down_osds == then.down_osds:
        return "shards are placed otherwise"
    drift = _drift_by_class(then, now)
    worst = max(drift, key=lambda osd: (drift[osd], -osd), default=None)
    # what differs by more than noise of a full OSD counts, however much the others swing
    least = max(_GAIN_RATIO * max(min_gain, _LEAST_GAIN), min(_UTILIZATION, _NOISE_RATIO * noise))
    if worst is None or drift[worst] <= least:
        return None
    return _drift_clause(worst, now.utilization[worst], then.utilization[worst])


def _drift_by_class(then: ClusterFingerprint, now: ClusterFingerprint) -> Dict[int, float]:
    """OSD → by how much its utilization has changed otherwise than the median of its class."""
    drift = {osd: ratio - then.utilization[osd]
             for osd, ratio in now.utilization.items() if osd in then.utilization}
    by_class: Dict[str, List[float]] = {}
    for osd, change in drift.items():
        by_class.setdefault(now.osds[osd][3], []).append(change)
    middle = {name: median(changes) for name, changes in by_class.items()}
    return {osd: abs(change - middle[now.osds[osd][3]]) for osd, change in drift.items()}


def _drift_clause(osd: int, now: float, then: float) -> str:
    return f"osd.{osd} is at {100.0 * now:.1f} % instead of {100.0 * then:.1f} %"
