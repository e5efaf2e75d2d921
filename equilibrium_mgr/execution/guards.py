"""What keeps moves from being sent, each as one sentence. Some guards hold for single pools."""
from __future__ import annotations

from typing import Collection, Dict, FrozenSet, List, NamedTuple, Optional, Protocol, Set

from ..snapshot import immovable_reasons as reasons
from ..snapshot.model import Pool, Snapshot

_STOP_FLAGS = ("pauserd", "pausewr", "pause", "norebalance", "nobackfill", "norecover")

#: Ceph's releases in order, as far as they matter: upmap needs luminous clients.
_BEFORE_LUMINOUS = frozenset((
    "", "unknown", "argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant",
    "hammer", "infernalis", "jewel", "kraken"))
CURE_MIN_COMPAT = "ceph osd set-require-min-compat-client luminous"
CURE_BUILTIN = "ceph balancer off"


def upmap_refused(min_compat_client: str) -> Optional[str]:
    """Why the monitor would refuse every upmap, with the command that cures it, or None."""
    if min_compat_client not in _BEFORE_LUMINOUS:
        return None
    return ("require_min_compat_client is '%s' and upmap needs luminous or newer; run '%s'"
            % (min_compat_client or "unset", CURE_MIN_COMPAT))


class MapGuards(Protocol):
    """What of the osdmap can forbid everything: a snapshot or a summary of the cluster."""

    @property
    def flags(self) -> Optional[Collection[str]]: ...

    @property
    def min_compat_client(self) -> Optional[str]: ...


def cluster_guard(seen: MapGuards, have_mon_connection: bool,
                  builtin_balancer_active: bool) -> Optional[str]:
    """The first reason why nothing at all may be sent, or None."""
    if not have_mon_connection:
        return "the mgr has no connection to a monitor"
    if seen.flags is None or seen.min_compat_client is None:
        return "no monitor tells which flags the osdmap has"
    refused = upmap_refused(seen.min_compat_client)
    if refused:
        return refused
    flags = [flag for flag in _STOP_FLAGS if flag in seen.flags]
    if flags:
        return f"the osdmap has the flag {flags[0]}"
    if builtin_balancer_active:
        return f"the built-in balancer is active; run '{CURE_BUILTIN}'"
    return None


class PoolBlock(NamedTuple):
    """Why none of a pool's PGs may be moved now."""

    reason: str
    inactive: bool   # not only degraded
    transient: bool = False   # it has only just begun, and most likely ends within seconds


def blocked_pools(snapshot: Snapshot,
                  passing: FrozenSet[int] = frozenset()) -> Dict[int, PoolBlock]:
    """Pool id → the trouble on OSDs that it shares; its own before that of others.

    `passing`: pools that have had inactive PGs for a moment only, as while they peer.
    """
    own: Dict[int, PoolBlock] = {}
    for pool_id, states in sorted(snapshot.pool_states.items()):
        pool = snapshot.pools.get(pool_id)
        if pool is not None and (states.inactive or states.degraded):
            what = (f"{states.inactive} PGs inactive" if states.inactive
                    else f"{states.degraded} PGs degraded")
            if states.inactive and pool_id in passing:
                what += " since a moment ago"
            own[pool_id] = PoolBlock(f"pool '{pool.name}' has {what}", states.inactive > 0,
                                   states.inactive > 0 and pool_id in passing)
    if not own:
        return {}
    osds = _osds_of_pools(snapshot, own)
    return {pool_id: trouble for pool_id in snapshot.pools
            for trouble in _trouble_of(pool_id, own, osds)}


def blocked_pool_reasons(snapshot: Snapshot) -> Dict[int, str]:
    """Pool id → why none of its PGs may be moved now: trouble on OSDs that it shares."""
    return {pool_id: trouble.reason for pool_id, trouble in blocked_pools(snapshot).items()}


def unsettled_pools(snapshot: Snapshot) -> Dict[int, str]:
    """Pool id → why it is left alone by automatic balancing: its pg_num is changing, or that of a
    pool on its OSDs. What is planned meanwhile is void when the change is through."""
    own = {pool.id: PoolBlock(f"pg_num of pool '{pool.name}' is changing", False)
           for pool in snapshot.pools.values() if pool.immovable == reasons.PG_NUM_CHANGING}
    if not own:
        return {}
    osds = _osds_of_pools(snapshot, own)
    return {pool_id: trouble.reason for pool_id in snapshot.pools
            for trouble in _trouble_of(pool_id, own, osds)}


def full_osds(snapshot: Snapshot) -> FrozenSet[int]:
    """OSDs above backfillfull, and those that a backfill waits for because they are too full."""
    full = {osd.id for osd in snapshot.osds.values() if osd.has_statistics
            and osd.used_bytes >= snapshot.backfillfull_ratio * osd.size_bytes}
    for pg in snapshot.pgs.values():
        if "backfill_toofull" in pg.state:
            gains, _ = snapshot.transfers(pg)
            # of several targets one is too full: those that have room for the shard are not it
            full.update([osd for osd in gains if osd in snapshot.osds and (
                len(gains) == 1 or _leaves_no_room(snapshot, osd, pg.shard_bytes))])
    return frozenset(full)


def pg_num_changes(snapshot: Snapshot) -> bool:
    """Does the mgr need a part of the misplaced budget to change the pg_num of a pool?"""
    return any(pool.immovable == reasons.PG_NUM_CHANGING for pool in snapshot.pools.values())


def _leaves_no_room(snapshot: Snapshot, osd_id: int, shard_bytes: int) -> bool:
    osd = snapshot.osds[osd_id]
    return osd.used_bytes + shard_bytes > snapshot.backfillfull_ratio * osd.size_bytes


def _trouble_of(pool_id: int, own: Dict[int, PoolBlock],
                osds: Dict[int, FrozenSet[int]]) -> List[PoolBlock]:
    """One trouble at most: the pool's own, or the worst and first of those that it shares."""
    if pool_id in own and own[pool_id].inactive and not own[pool_id].transient:
        return [own[pool_id]]
    shared = [trouble for other, trouble in own.items()
              if other == pool_id or not osds[pool_id].isdisjoint(osds[other])]
    if not shared:
        return []
    worst = max(shared, key=lambda trouble: (trouble.inactive, not trouble.transient))
    return [own.get(pool_id, worst)._replace(inactive=worst.inactive, transient=worst.transient)]


def _osds_of_pools(snapshot: Snapshot, own: Dict[int, PoolBlock]) -> Dict[int, FrozenSet[int]]:
    """Pool id → OSDs that it may use; of a troubled pool whose rule is not understood those
    that it does use."""
    by_rule: Dict[int, FrozenSet[int]] = {}

    def of_rule(pool: Pool) -> FrozenSet[int]:
        if pool.rule is None:
            return frozenset()
        found = by_rule.get(pool.rule_id)
        if found is None:
            found = by_rule[pool.rule_id] = frozenset(pool.rule.osds())
        return found
    osds = {pool.id: of_rule(pool) for pool in snapshot.pools.values()}
    used: Dict[int, Set[int]] = {
        pool_id: set() for pool_id in own if snapshot.pools[pool_id].rule is None}
    for pg in snapshot.pgs.values() if used else ():
        if pg.pool in used:
            used[pg.pool].update(pg.up, pg.acting, pg.holders)
    osds.update({pool_id: frozenset(found) for pool_id, found in used.items()})
    return osds
