"""Guards: conditions of the cluster or of single pools under which nothing may be sent.

Distinguishes pools whose PGs are inactive for a moment, as while they peer, from others.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set, Union

from ..gateway.cluster_summary import ClusterSummary
from ..runtime.formatting import plural
from ..snapshot import pg_states, reason_codes as codes
from ..snapshot.model import Pg, Snapshot
from .outcomes import Verdict


_STOP_FLAGS = ("pauserd", "pausewr", "pause", "norebalance", "nobackfill", "norecover")

#: Ceph's releases in order, as far as they matter: upmap needs luminous clients.
_BEFORE_LUMINOUS = frozenset((
    "", "unknown", "argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant",
    "hammer", "infernalis", "jewel", "kraken"))
#: OSDs of these have no mClock profiles by default.
BEFORE_QUINCY = _BEFORE_LUMINOUS.union(("luminous", "mimic", "nautilus", "octopus", "pacific"))
CURE_MIN_COMPAT = "ceph osd set-require-min-compat-client luminous"
CURE_BUILTIN = "ceph balancer off"
NO_CONNECTION = "the mgr has no connection to a monitor"


def upmap_refused(min_compat_client: str) -> Optional[str]:
    """Returns why the monitor would refuse every upmap, with the command that helps, or None."""
    if min_compat_client not in _BEFORE_LUMINOUS:
        return None
    return (f"require_min_compat_client is '{min_compat_client or 'unset'}' and upmap needs"
            f" luminous or newer; run '{CURE_MIN_COMPAT}'")


def cluster_guard(osd_map: Union[Snapshot, ClusterSummary], have_mon_connection: bool,
                  builtin_balancer_active: bool, motionless: bool = False) -> Optional[Verdict]:
    """The first reason why nothing at all may be sent, or None. What is `motionless` moves no data,
    and needs no more than a monitor that keeps it."""
    if not have_mon_connection:
        return Verdict(codes.NO_MONITOR, NO_CONNECTION)
    if osd_map.flags is None or osd_map.min_compat_client is None:
        return Verdict(codes.NO_MONITOR, "no monitor tells which flags the osdmap has")
    refused = upmap_refused(osd_map.min_compat_client)
    if refused:
        return Verdict(codes.OLD_CLIENTS, refused)
    if motionless:
        return None
    flags = [flag for flag in _STOP_FLAGS if flag in osd_map.flags]
    if flags:
        return Verdict(codes.FLAG, f"the osdmap has the flag {flags[0]}",
                       # `ceph osd unset` takes pauserd and pausewr by the name that set them
                       {"flag": "pause" if flags[0].startswith("pause") else flags[0]})
    if builtin_balancer_active:
        return Verdict(codes.CONFLICT, "the built-in balancer is active")
    return None


#: A PG in one of these states is not inactive for lack of space alone.
_NOT_FOR_SPACE = frozenset((pg_states.ACTIVE, pg_states.STALE))


class PoolGuard(NamedTuple):
    """The reason for which none of a pool's PGs may be moved now."""

    reason: str
    inactive: bool   # PGs are inactive, and not all of these wait for space alone
    transient: bool = False   # it has only just begun, and most likely ends within seconds


def blocked_pools(snapshot: Snapshot,
                  transient: FrozenSet[int] = frozenset()) -> Dict[int, PoolGuard]:
    """Pool id → why it is blocked: by its own PGs, or by those of a pool that shares OSDs.

    `transient`: pools that have had inactive PGs for a moment only, as while they peer.
    """
    own: Dict[int, PoolGuard] = {}
    waiting = _inactive_for_space(snapshot)
    for pool_id, states in sorted(snapshot.pool_states.items()):
        pool = snapshot.pools.get(pool_id)
        if pool is not None and (states.inactive or states.degraded):
            inactive = states.inactive - states.unreported
            what = (f"{plural(inactive, 'PG')} inactive" if inactive
                    else f"{plural(states.unreported, 'PG')} not reported" if states.unreported
                    else f"{plural(states.degraded, 'PG')} degraded")
            own[pool_id] = PoolGuard(f"pool '{pool.name}' has {what}",
                                     states.inactive > waiting[pool_id],
                                     states.inactive > 0 and pool_id in transient)
    return _with_sharing(snapshot, own)


def _inactive_for_space(snapshot: Snapshot) -> Counter[int]:
    """Pool id → its inactive PGs that wait for nothing but space: only relief can end that."""
    if not any(states.inactive for states in snapshot.pool_states.values()):
        return Counter()
    full = full_osds(snapshot)
    return Counter(pg.pool for pg in snapshot.in_flight().values()
                   if not pg_states.has_any(pg.state, _NOT_FOR_SPACE)
                   and awaits_space(snapshot, pg, full))


def blocked_pool_reasons(snapshot: Snapshot) -> Dict[int, str]:
    """Pool id → why none of its PGs may be moved now."""
    return {pool_id: block.reason for pool_id, block in blocked_pools(snapshot).items()}


def full_osds(snapshot: Snapshot) -> FrozenSet[int]:
    """Returns the OSDs that need space now.

    An OSD needs space at or above backfillfull, if a backfill waits for it because it is too full,
    or if it passes backfillfull with the bytes that are still to come. A shard that leaves makes
    space only while Ceph copies its PG.
    """
    backfillfull = snapshot.backfillfull_ratio
    full: Set[int] = set()
    leaving: Dict[int, int] = {}   # OSD → bytes that Ceph is copying away from it
    for pg in snapshot.in_flight().values():
        if pg_states.BACKFILL_TOOFULL in pg.state:
            gains, _ = snapshot.transfers(pg)
            # of several targets one is too full: those with space for the shard are not it, and
            # of one without statistics nothing is known
            full.update([osd for osd in gains if osd in snapshot.osds and (
                len(gains) == 1 or not snapshot.osds[osd].has_statistics
                or snapshot.osds[osd].exceeds(
                    backfillfull, snapshot.shard_bytes(pg, osd, pg.up)))])
        elif pg_states.has_any(pg.state, pg_states.COPIED):
            for osd, size in snapshot.sized_transfers(pg)[1]:
                leaving[osd] = leaving.get(osd, 0) + size
    return frozenset(full.union(
        osd.id for osd in snapshot.osds.values()
        if osd.reaches(backfillfull, max(0, osd.inbound_bytes - leaving.get(osd.id, 0)))))


def awaits_space(snapshot: Snapshot, pg: Pg, full: FrozenSet[int]) -> bool:
    """Returns True if Ceph cannot copy the PG before one of the OSDs `full` has space."""
    if pg_states.TOOFULL in pg.state:
        return True
    is_waiting = pg_states.has_any(pg.state, pg_states.WAITING)
    return is_waiting and not full.isdisjoint(snapshot.transfers(pg)[0])


def changing_pg_nums(snapshot: Snapshot) -> List[str]:
    """Names of the pools whose pg_num the mgr changes, for which it needs a part of the misplaced
    budget."""
    return sorted(pool.name for pool in snapshot.pools.values() if pool.touched)


def _with_sharing(snapshot: Snapshot, own: Dict[int, PoolGuard]) -> Dict[int, PoolGuard]:
    """`own`, and what it means for pools that share OSDs with those in it.

    The reason is the pool's own, else that of the worst guard among the pools that share its OSDs;
    `inactive` and `transient` are those of the worst.
    """
    if not own:
        return {}
    osds, found = _osds_of_pools(snapshot, own), {}
    for pool_id in snapshot.pools:
        shared = [guard for other, guard in own.items()
                  if other == pool_id or not osds[pool_id].isdisjoint(osds[other])]
        if shared:
            worst = max(shared, key=lambda guard: (guard.inactive, not guard.transient))
            found[pool_id] = own.get(pool_id, worst)._replace(
                inactive=worst.inactive, transient=worst.transient)
    return found


def _osds_of_pools(snapshot: Snapshot, own: Dict[int, PoolGuard]) -> Dict[int, FrozenSet[int]]:
    """Pool id → OSDs that its rule may use; for a pool in `own` whose rule is not understood, the
    OSDs that hold its PGs."""
    by_rule: Dict[int, FrozenSet[int]] = {}
    osds: Dict[int, FrozenSet[int]] = {}
    for pool in snapshot.pools.values():
        if pool.rule is not None and pool.rule_id not in by_rule:
            by_rule[pool.rule_id] = frozenset(pool.rule.osds())
        osds[pool.id] = by_rule[pool.rule_id] if pool.rule is not None else frozenset()
    used: Dict[int, Set[int]] = {
        pool_id: set() for pool_id in own if snapshot.pools[pool_id].rule is None}
    for pg in snapshot.pgs.values() if used else ():
        if pg.pool in used:
            used[pg.pool].update(pg.up, pg.acting, pg.holders)
    osds.update({pool_id: frozenset(found) for pool_id, found in used.items()})
    return osds


#: PGs that have been inactive for less than this may just be peering.
TRANSIENT_SECONDS = 30.0
#: Seconds after which such a pool is observed again.
TRANSIENT_RECHECK_SECONDS = 10.0


class InactivePools:
    """Remembers since when pools have had inactive PGs, by the snapshots that it was shown."""

    def __init__(self) -> None:
        self._since: Dict[int, float] = {}   # pool → seconds since the epoch
        self._seen_at: Optional[float] = None

    def observe(self, snapshot: Snapshot) -> FrozenSet[int]:
        """Takes in a newer snapshot; returns the pools that have been inactive for a moment
        only."""
        now, earlier = snapshot.taken_at, self._seen_at
        self._seen_at = now
        if earlier is None or now < earlier:
            self._since = {}
        self._since = {pool: self._since.get(pool, now)
                       for pool, states in snapshot.pool_states.items() if states.inactive}
        return frozenset(pool for pool, since in self._since.items()
                         if now - since < TRANSIENT_SECONDS)
