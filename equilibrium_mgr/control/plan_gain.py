"""Whether an automatic plan gains enough to be carried out."""
from __future__ import annotations

from collections import Counter
from typing import Optional

from ..plan.load import loads_after, loads_of_sets, osd_loads
from ..plan.model import Plan
from ..plan.usage import bytes_beyond_share
from ..runtime.formatting import format_bytes, format_percent
from ..snapshot.model import Pool, Snapshot
from ..snapshot.operator_weights import held_sentence

#: A pool is small if it holds less than this ratio of the used bytes of its rule's OSDs.
_SMALL_RATIO = 0.01


def gain_reason(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Returns the gain of a plan as a clause for the history, or None if it is too small.

    `min_gain`: a ratio (the option of that name).
    """
    if not plan.changes:
        return None
    for gain in (_drain, _relief, _share, _lower_maximum, _free_space):
        reason = gain(plan, snapshot, min_gain)
        if reason is not None:
            return reason
    return None if min_gain > 0.0 else "there are moves that improve the placement"


def load_gain(plan: Plan, snapshot: Snapshot, min_load_gain: float) -> Optional[str]:
    """Returns the gain for the busiest OSD of a set as a clause for the history, or None if it is
    below `min_load_gain` (a ratio of the mean load, the option of that name)."""
    loads = osd_loads(snapshot)
    planned = loads_of_sets(snapshot, loads_after(snapshot, loads, plan.changes))
    for name, before in sorted(loads_of_sets(snapshot, loads).items()):
        after = planned[name].max_load
        if before.max_load - after >= min_load_gain:
            return (f"the busiest OSD of class {name} can be brought from {before.max_load:.2f} to"
                    f" {after:.2f} times the mean load")
    return None


def _drain(plan: Plan, snapshot: Snapshot, _: float) -> Optional[str]:
    drained = {move.source for move in plan.moves} & snapshot.drained_osds
    if not drained:
        return None
    others = f" (and {len(drained) - 1} more)" if len(drained) > 1 else ""
    return f"osd.{min(drained)}{others} is being drained"


def _relief(plan: Plan, snapshot: Snapshot, _: float) -> Optional[str]:
    for number, relieved in sorted(_leaving(plan).items()):
        osd = snapshot.osds.get(number)
        if osd is not None and relieved > 0:
            if (osd.target_utilization or 0.0) > snapshot.nearfull_ratio:
                return f"osd.{number} is or will be above nearfull"
    return None


def _share(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Returns the gain for an OSD with a lowered weight that has more than its share."""
    leaving = _leaving(plan)
    for number, excess in bytes_beyond_share(snapshot).items():
        osd = snapshot.osds[number]
        if min(excess, leaving[number]) >= max(1.0, min_gain * osd.capacity_bytes):
            return f"{held_sentence(osd)} and has more"
    return None


def _lower_maximum(plan: Plan, _: Snapshot, min_gain: float) -> Optional[str]:
    for name, before in sorted(plan.before.classes.items()):
        after = plan.after.classes.get(name)
        if after is not None and before.max - after.max >= max(min_gain, 1e-9):
            return (f"the fullest OSD of class {name} can be brought from"
                    f" {format_percent(before.max)}% to {format_percent(after.max)}%")
    return None


def _free_space(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Returns the gain in free space of a pool. It must be min_gain of the pool's stored and free
    bytes together."""
    small = {pool.name for pool in snapshot.pools.values() if _is_small(pool, snapshot)}
    for name, before in sorted(plan.before.pools.items()):
        after = plan.after.pools.get(name)
        if after is None or before.stored_bytes <= 0 or name in small:
            continue
        gained = after.free_bytes - before.free_bytes
        if gained >= max(min_gain * (before.stored_bytes + before.free_bytes), 1.0):
            return f"pool {name} can have {format_bytes(gained)} more"
    return None


def _leaving(plan: Plan) -> Counter[int]:
    """Returns OSD → bytes that leave it, less those that come."""
    leaving: Counter[int] = Counter()
    for move in plan.moves:
        leaving[move.source] += move.bytes
        leaving[move.target] -= move.bytes
    return leaving


def _is_small(pool: Pool, snapshot: Snapshot) -> bool:
    """Returns True if a pool holds too little to be worth a move, as `.mgr` does."""
    used = 0
    for osd in pool.rule.osds() if pool.rule else ():
        if osd in snapshot.osds:
            used += snapshot.osds[osd].used_bytes
    return pool.stored_bytes * pool.size / pool.data_shards < _SMALL_RATIO * used
