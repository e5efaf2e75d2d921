"""Is an automatic plan worth its bytes?"""
from __future__ import annotations

from typing import Dict, Optional

from ..planner.plan import Plan
from ..snapshot.model import Snapshot


def worth(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Why it is, as half a sentence for the history, or None. `min_gain` is a ratio."""
    if not plan.changes:
        return None
    return (_relief(plan, snapshot) or _lower(plan, min_gain) or _more_room(plan, min_gain)
            or (None if min_gain > 0.0 else "there are moves that improve the placement"))


def _relief(plan: Plan, snapshot: Snapshot) -> Optional[str]:
    leaving: Dict[int, int] = {}
    for move in plan.moves:
        leaving[move.source] = leaving.get(move.source, 0) + move.bytes
        leaving[move.target] = leaving.get(move.target, 0) - move.bytes
    for osd_id, relieved in sorted(leaving.items()):
        osd = snapshot.osds.get(osd_id)
        if osd is not None and relieved > 0 and osd.has_statistics:
            if osd.target_bytes > snapshot.nearfull_ratio * osd.size_bytes:
                return "osd.%d is above nearfull" % osd_id
    return None


def _lower(plan: Plan, min_gain: float) -> Optional[str]:
    """The fall of the highest utilisation of a class."""
    for name, before in sorted(plan.before.classes.items()):
        after = plan.after.classes.get(name)
        if after is not None and before.max - after.max >= max(min_gain, 1e-9):
            return "the fullest OSD of class %s can be brought from %.4f to %.4f" % (
                name, before.max, after.max)
    return None


def _more_room(plan: Plan, min_gain: float) -> Optional[str]:
    """The growth of a pool's free bytes, as a ratio of what it holds and could hold."""
    for name, before in sorted(plan.before.pools.items()):
        after = plan.after.pools.get(name)
        whole = before.stored_bytes + before.free_bytes
        if after is not None and before.stored_bytes > 0:
            if after.free_bytes - before.free_bytes >= max(min_gain * whole, 1.0):
                return "pool %s can have %d bytes more" % (
                    name, after.free_bytes - before.free_bytes)
    return None
