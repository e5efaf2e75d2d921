"""Is an automatic plan worth its bytes?"""
from __future__ import annotations

from typing import Dict, Optional

from ..plan.model import Plan
from ..plan.weight_shares import bytes_beyond_share
from ..snapshot.model import Snapshot
from ..snapshot.operator_weights import held_sentence


def gain_reason(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """Why it is, as half a sentence for the history, or None. `min_gain` is a ratio."""
    if not plan.changes:
        return None
    return (_relief(plan, snapshot) or _share(plan, snapshot, min_gain)
            or _lower(plan, min_gain) or _more_room(plan, min_gain)
            or (None if min_gain > 0.0 else "there are moves that improve the placement"))


def _relief(plan: Plan, snapshot: Snapshot) -> Optional[str]:
    for osd_id, relieved in sorted(_leaving(plan).items()):
        osd = snapshot.osds.get(osd_id)
        if osd is not None and relieved > 0 and osd.has_statistics:
            if osd.target_bytes > snapshot.nearfull_ratio * osd.size_bytes:
                return f"osd.{osd_id} is above nearfull"
    return None


def _share(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """An OSD holds clearly more than its operator's weights leave it."""
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


def _lower(plan: Plan, min_gain: float) -> Optional[str]:
    """The fall of the highest utilization of a class."""
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
