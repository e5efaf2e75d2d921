"""The gain for which an automatic plan is carried out."""
from __future__ import annotations

from typing import Dict, Optional

from ..plan.model import Plan
from ..plan.weight_shares import bytes_beyond_share
from ..runtime.formatting import format_bytes, format_percent
from ..snapshot.model import Pool, Snapshot
from ..snapshot.operator_weights import held_sentence

#: A pool is small that holds less than this ratio of what the OSDs of its rule use.
_SMALL_RATIO = 0.01


def gain_reason(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """The gain for which a plan is carried out, as a clause for the history; None where it is too
    small. `min_gain` is a ratio (the option of that name)."""
    if not plan.changes:
        return None
    return (_evacuation(plan, snapshot) or _nearfull_relief(plan, snapshot)
            or _share_relief(plan, snapshot, min_gain)
            or _lowers_max_utilization(plan, min_gain)
            or _more_free_space(plan, snapshot, min_gain)
            or (None if min_gain > 0.0 else "there are moves that improve the placement"))


def _evacuation(plan: Plan, snapshot: Snapshot) -> Optional[str]:
    drained = sorted({move.source for move in plan.moves if move.source in snapshot.osds
                      and snapshot.osds[move.source].drained})
    if not drained:
        return None
    others = f" (and {len(drained) - 1} more)" if len(drained) > 1 else ""
    return f"osd.{drained[0]}{others} is being drained"


def _nearfull_relief(plan: Plan, snapshot: Snapshot) -> Optional[str]:
    for osd_id, relieved in sorted(_leaving(plan).items()):
        osd = snapshot.osds.get(osd_id)
        if osd is not None and relieved > 0:
            if (osd.target_utilization or 0.0) > snapshot.nearfull_ratio:
                return f"osd.{osd_id} is above nearfull"
    return None


def _share_relief(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Relief of an OSD that holds clearly more than the operator's weights leave it."""
    beyond = bytes_beyond_share(snapshot)
    leaving = _leaving(plan) if beyond else {}
    for osd_id, excess in beyond.items():
        osd = snapshot.osds[osd_id]
        if min(excess, leaving.get(osd_id, 0)) >= max(1.0, min_gain * osd.capacity_bytes):
            return f"{held_sentence(osd)} and has more"
    return None


def _leaving(plan: Plan) -> Dict[int, int]:
    """OSD → bytes that leave it less those that come."""
    leaving: Dict[int, int] = {}
    for move in plan.moves:
        leaving[move.source] = leaving.get(move.source, 0) + move.bytes
        leaving[move.target] = leaving.get(move.target, 0) - move.bytes
    return leaving


def _lowers_max_utilization(plan: Plan, min_gain: float) -> Optional[str]:
    """Fall of the highest utilization of a device class by `min_gain`."""
    for name, before in sorted(plan.before.classes.items()):
        after = plan.after.classes.get(name)
        if after is not None and before.max - after.max >= max(min_gain, 1e-9):
            return (f"the fullest OSD of class {name} can be brought from"
                    f" {format_percent(before.max)}% to {format_percent(after.max)}%")
    return None


def _more_free_space(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Growth of a pool's free bytes by `min_gain` of what it holds and could hold."""
    small = {pool.name for pool in snapshot.pools.values() if _is_small(pool, snapshot)}
    for name, before in sorted(plan.before.pools.items()):
        after = plan.after.pools.get(name)
        whole = before.stored_bytes + before.free_bytes
        if after is not None and before.stored_bytes > 0 and name not in small:
            gained = after.free_bytes - before.free_bytes
            if gained >= max(min_gain * whole, 1.0):
                return f"pool {name} can have {format_bytes(gained)} more"
    return None


def _is_small(pool: Pool, snapshot: Snapshot) -> bool:
    """True for a pool that holds too little to be worth a move, as `.mgr` does."""
    used = sum(snapshot.osds[osd].used_bytes for osd in (pool.rule.osds() if pool.rule else ())
               if osd in snapshot.osds)
    return pool.stored_bytes * pool.size / pool.data_shards < _SMALL_RATIO * used
