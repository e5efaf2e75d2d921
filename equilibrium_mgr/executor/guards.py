"""What keeps moves from being sent, each as one sentence. Some guards hold for single pools."""
from __future__ import annotations

from typing import Dict, Optional, Set

from ..snapshot.model import Snapshot

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


def cluster_guard(snapshot: Snapshot, have_mon_connection: bool,
                  builtin_balancer_active: bool) -> Optional[str]:
    """The first reason why nothing at all may be sent, or None."""
    if not have_mon_connection:
        return "the mgr has no connection to a monitor"
    refused = upmap_refused(snapshot.min_compat_client)
    if refused:
        return refused
    flags = [flag for flag in _STOP_FLAGS if flag in snapshot.flags]
    if flags:
        return "the osdmap has the flag %s" % flags[0]
    if builtin_balancer_active:
        return "the built-in balancer is active; run '%s'" % CURE_BUILTIN
    return None


def troubled_pools(snapshot: Snapshot) -> Dict[int, str]:
    """Pool id → why none of its PGs may be moved now: trouble on OSDs that it shares."""
    osds_in_trouble: Set[int] = set()
    reasons: Dict[int, str] = {}
    for pool_id, states in snapshot.pool_states.items():
        pool = snapshot.pools.get(pool_id)
        if pool is None or not (states.inactive or states.degraded):
            continue
        what = ("%d PGs inactive" % states.inactive if states.inactive
                else "%d PGs degraded" % states.degraded)
        reasons[pool_id] = "pool '%s' has %s" % (pool.name, what)
        if pool.rule is not None:
            osds_in_trouble.update(pool.rule.osds())
    if not reasons:
        return {}
    first = reasons[min(reasons)]
    for pool in snapshot.pools.values():
        if pool.id not in reasons and pool.rule is not None:
            if not osds_in_trouble.isdisjoint(pool.rule.osds()):
                reasons[pool.id] = first
    return reasons
