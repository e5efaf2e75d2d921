"""Guards: conditions of the cluster or of single pools under which nothing may be sent.

A pool whose PGs are inactive for a moment, as while they peer, has a guard that ends in seconds.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set, Union

from ..gateway.cluster_summary import ClusterSummary
from ..runtime.formatting import plural
from ..snapshot import pg_states, reason_codes as codes
from ..snapshot.model import Pg, PgStateCounts, Snapshot
from .outcomes import Verdict


_STOP_FLAGS = ("pauserd", "pausewr", "pause", "norebalance", "nobackfill", "norecover")

#: Upmap needs clients of luminous or newer. "" and "unknown" mean that nothing is required.
_BEFORE_LUMINOUS = frozenset((
    "", "unknown", "argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant",
    "hammer", "infernalis", "jewel", "kraken"))
#: OSDs of these releases have no mClock profiles by default.
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
                  builtin_balancer_active: bool, unguarded: bool = False) -> Optional[Verdict]:
    """Returns the first reason why nothing at all may be sent, or None. `unguarded`: asked for
    changes that end movements, which only need a monitor that keeps them."""
    if not have_mon_connection:
        return Verdict(codes.NO_MONITOR, NO_CONNECTION)
    if osd_map.flags is None or osd_map.min_compat_client is None:
        return Verdict(codes.NO_MONITOR, "no monitor tells which flags the osdmap has")
    refused = upmap_refused(osd_map.min_compat_client)
    if refused:
        return Verdict(codes.OLD_CLIENTS, refused)
    if unguarded:
        return None
    for flag in _STOP_FLAGS:
        if flag in osd_map.flags:
            # `ceph osd unset` takes pauserd and pausewr by the name that set them
            unset = "pause" if flag.startswith("pause") else flag
            return Verdict(codes.FLAG, f"the osdmap has the flag {flag}", {"flag": unset})
    if builtin_balancer_active:
        return Verdict(codes.CONFLICT, "the built-in balancer is active")
    return None


#: A PG in one of these states is not inactive for lack of space alone.
_NOT_FOR_SPACE = frozenset((pg_states.ACTIVE, pg_states.STALE))


class PoolGuard(NamedTuple):
    """Why none of a pool's PGs may be moved now."""

    reason: str
    inactive: bool   # PGs are inactive, and some of them not only for lack of space
    transient: bool = False   # it has just begun, and most likely ends within seconds


def blocked_pools(snapshot: Snapshot,
                  transient: FrozenSet[int] = frozenset()) -> Dict[int, PoolGuard]:
    """Returns pool id → why it is blocked: by its own PGs, or by those of a pool that shares OSDs.

    `transient`: pools that have had inactive PGs for a moment only, as while they peer.
    """
    own: Dict[int, PoolGuard] = {}
    waiting = _inactive_for_space(snapshot)
    for pool_id, states in sorted(snapshot.pool_states.items()):
        pool = snapshot.pools.get(pool_id)
        if pool is not None and (states.inactive or states.degraded):
            own[pool_id] = PoolGuard(
                f"pool '{pool.name}' has {_trouble(states)}",
                inactive=states.inactive > waiting[pool_id],
                transient=states.inactive > 0 and pool_id in transient)
    return _with_sharing(snapshot, own)


def _trouble(states: PgStateCounts) -> str:
    """Returns the worst that is wrong with the PGs of a pool, for people."""
    inactive = states.inactive - states.unreported
    if inactive:
        return f"{plural(inactive, 'PG')} inactive"
    if states.unreported:
        return f"{plural(states.unreported, 'PG')} not reported"
    return f"{plural(states.degraded, 'PG')} degraded"


def _inactive_for_space(snapshot: Snapshot) -> Counter[int]:
    """Returns pool id → its inactive PGs that only wait for space: only relief can end that."""
    waiting: Counter[int] = Counter()
    if not any(states.inactive for states in snapshot.pool_states.values()):
        return waiting
    full = full_osds(snapshot)
    for pg in snapshot.in_flight().values():
        is_inactive = not pg_states.has_any(pg.state, _NOT_FOR_SPACE)
        if is_inactive and awaits_space(snapshot, pg, full):
            waiting[pg.pool] += 1
    return waiting


def blocked_pool_reasons(snapshot: Snapshot) -> Dict[int, str]:
    """Returns pool id → why none of its PGs may be moved now."""
    return {pool_id: block.reason for pool_id, block in blocked_pools(snapshot).items()}


def blocked_by(snapshot: Snapshot, pools: FrozenSet[int]) -> Dict[int, str]:
    """Returns the same for these pools, and for those that share OSDs with one of them: as if no
    other pool were in trouble."""
    states = {pool: found for pool, found in snapshot.pool_states.items() if pool in pools}
    return blocked_pool_reasons(snapshot._replace(pool_states=states))


def full_osds(snapshot: Snapshot) -> FrozenSet[int]:
    """Returns the OSDs that need space now.

    An OSD needs space at or above backfillfull, if a backfill waits for it because it is too full,
    or if it passes backfillfull with the bytes still to come. A shard that leaves makes space only
    while Ceph copies its PG.
    """
    backfillfull = snapshot.backfillfull_ratio
    full: Set[int] = set()
    leaving: Counter[int] = Counter()   # OSD → bytes that Ceph is copying away from it
    for pg in snapshot.in_flight().values():
        if pg_states.BACKFILL_TOOFULL in pg.state:
            full.update(_too_full_targets(snapshot, pg))
        elif pg_states.has_any(pg.state, pg_states.COPIED):
            for osd, size in snapshot.sized_transfers(pg)[1]:
                leaving[osd] += size
    for number, one in snapshot.osds.items():
        still_to_come = max(0, one.inbound_bytes - leaving[number])
        if one.reaches(backfillfull, still_to_come):
            full.add(number)
    return frozenset(full)


def _too_full_targets(snapshot: Snapshot, pg: Pg) -> List[int]:
    """Returns the targets that may be too full for a PG in backfill_toofull.

    If it has several, a target with space for the shard is not too full. A target without
    statistics may be.
    """
    gains, _ = snapshot.transfers(pg)
    found: List[int] = []
    for number in gains:
        osd = snapshot.osds.get(number)
        if osd is None:
            continue
        size = snapshot.shard_bytes(pg, number, pg.up)
        has_space = osd.has_statistics and not osd.exceeds(snapshot.backfillfull_ratio, size)
        if len(gains) == 1 or not has_space:
            found.append(number)
    return found


def awaits_space(snapshot: Snapshot, pg: Pg, full: FrozenSet[int]) -> bool:
    """Returns True if Ceph cannot copy the PG before one of the OSDs `full` has space."""
    if pg_states.TOOFULL in pg.state:
        return True
    is_waiting = pg_states.has_any(pg.state, pg_states.WAITING)
    return is_waiting and not full.isdisjoint(snapshot.transfers(pg)[0])


def changing_pg_nums(snapshot: Snapshot) -> List[str]:
    """Returns the names of the pools whose pg_num the mgr changes. It needs a part of the misplaced
    budget for that."""
    return sorted(pool.name for pool in snapshot.pools.values() if pool.touched)


def _with_sharing(snapshot: Snapshot, own: Dict[int, PoolGuard]) -> Dict[int, PoolGuard]:
    """Returns the guards of all pools that are in `own` or share OSDs with a pool in it.

    A pool gets `inactive` and `transient` from the worst guard among itself and the pools that
    share its OSDs. It gets the reason from there, too, unless it has its own guard.
    """
    if not own:
        return {}
    osds = _osds_of_pools(snapshot, own)
    found: Dict[int, PoolGuard] = {}
    for pool_id in snapshot.pools:
        shared = [guard for other, guard in own.items()
                  if other == pool_id or not osds[pool_id].isdisjoint(osds[other])]
        if shared:
            worst = max(shared, key=lambda guard: (guard.inactive, not guard.transient))
            found[pool_id] = own.get(pool_id, worst)._replace(
                inactive=worst.inactive, transient=worst.transient)
    return found


def _osds_of_pools(snapshot: Snapshot, own: Dict[int, PoolGuard]) -> Dict[int, Set[int]]:
    """Returns pool id → OSDs that its rule may use. If its rule is not supported, a pool in `own`
    has the OSDs of its PGs, and another pool has none."""
    by_rule: Dict[int, Set[int]] = {}
    osds: Dict[int, Set[int]] = {}
    unknown = set()
    for pool in snapshot.pools.values():
        if pool.rule is None:
            osds[pool.id] = set()
            unknown.add(pool.id)
            continue
        if pool.rule_id not in by_rule:
            by_rule[pool.rule_id] = set(pool.rule.osds())
        osds[pool.id] = by_rule[pool.rule_id]
    unknown &= own.keys()
    for pg in snapshot.pgs.values() if unknown else ():
        if pg.pool in unknown:
            osds[pg.pool].update(pg.up, pg.acting, pg.holders)
    return osds


#: PGs that have been inactive for fewer seconds may just be peering.
TRANSIENT_SECONDS = 30.0
#: Seconds after which such a pool is looked at again.
TRANSIENT_RECHECK_SECONDS = 10.0


class InactivePools:
    """Remembers since when pools have had inactive PGs, by the snapshots that it has seen."""

    def __init__(self) -> None:
        self._since: Dict[int, float] = {}   # pool → seconds since the epoch
        self._seen_at = 0.0

    def observe(self, snapshot: Snapshot) -> FrozenSet[int]:
        """Takes in a newer snapshot. Returns the pools that have been inactive for a moment
        only."""
        now = snapshot.taken_at
        if now < self._seen_at:
            self._since = {}
        self._seen_at = now
        self._since = {pool: self._since.get(pool, now)
                       for pool, states in snapshot.pool_states.items() if states.inactive}
        return frozenset(pool for pool, since in self._since.items()
                         if now - since < TRANSIENT_SECONDS)
