"""Cheap change detection: what a summary that costs milliseconds shows to be new."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Optional, Tuple

from ..gateway.cluster_summary import ClusterSummary, Fullness

#: The longest time between two observations while moves are in flight that stand still, and the
#: shortest at rest; and where an OSD is above nearfull.
LONGEST_SECONDS, FULL_PACE_SECONDS = 600.0, 240.0
#: Parts of PG states that keep the PG, or all PGs on its OSDs, from being moved.
_TROUBLES = ("degraded", "undersized", "backfill_toofull", "recovery_toofull")


def pace_seconds(fullness: Fullness) -> float:
    """Least seconds between two looks at a cluster at rest, and between two plans for data that has
    grown or shrunk."""
    if fullness.backfillfull or fullness.full:
        return 0.0   # as often as there are rounds
    return FULL_PACE_SECONDS if fullness.nearfull else LONGEST_SECONDS


def has_moved(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where data has moved since `then`."""
    return (then.misplaced_copies, then.degraded_copies, copying_pgs(then)) != (
        now.misplaced_copies, now.degraded_copies, copying_pgs(now))


def has_other_limits(then: ClusterSummary, now: ClusterSummary) -> bool:
    """True where something else may be sent than then: by OSDs, pools, or PGs in trouble."""
    return _limits(then) != _limits(now)


def _limits(summary: ClusterSummary) -> Tuple[Any, ...]:
    return (summary.crush_version, {pool: one.pg_num for pool, one in summary.pools.items()},
            {osd: (o.up, o.is_in, o.reweight, o.crush_weight, o.device_class,
                   o.utilization is None and o.up and o.is_in) for osd, o in summary.osds.items()},
            _troubles(summary))


def copying_pgs(summary: ClusterSummary) -> int:
    """PGs that say that they copy data, which they also do while something stops them."""
    return sum(count for pool in summary.pools.values() for state, count in pool.states.items()
               if "backfilling" in state or "recovering" in state)


def change_since(then: ClusterSummary, now: ClusterSummary) -> Optional[str]:
    """A change since `then` that speaks against an idle state, as a clause, or None."""
    before = _troubles(then)
    for pool, troubles in sorted(_troubles(now).items()):
        new = troubles - before.get(pool, frozenset())
        if new:
            return f"pool {pool} has {sorted(new)[0]} PGs now"
    for osd in sorted(then.osds.keys() | now.osds.keys()):
        old, new_one = then.osds.get(osd), now.osds.get(osd)
        if old is None or new_one is None:
            return f"osd.{osd} is {'new' if old is None else 'gone'}"
        if old.is_in != new_one.is_in:
            return f"osd.{osd} is {'in' if new_one.is_in else 'out'} now"
        if old.up and not new_one.up:
            return f"osd.{osd} is down now"
        if (old.reweight, old.crush_weight) != (new_one.reweight, new_one.crush_weight):
            return f"osd.{osd} has another weight now"
    if now.misplaced_copies > then.misplaced_copies:
        return f"{now.misplaced_copies} object copies are misplaced now"
    return None


def _troubles(summary: ClusterSummary) -> Dict[int, FrozenSet[str]]:
    """Pool id → states of its PGs that block movement, however many PGs; other pools are left
    out."""
    found: Dict[int, FrozenSet[str]] = {}
    for pool_id, pool in summary.pools.items():
        troubles = set()
        for state, count in pool.states.items():
            parts = state.split("+")
            if count and "active" not in parts:
                troubles.add("inactive")
            troubles.update(part for part in parts if count and part in _TROUBLES)
        if troubles:
            found[pool_id] = frozenset(troubles)
    return found
