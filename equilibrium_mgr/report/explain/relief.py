"""Finds the action that gives an OSD above full_ratio available space: wait for data to leave it,
let data leave it, raise full_ratio for a while, or add capacity."""
from __future__ import annotations

import math
from typing import Sequence

from ...control.status import BalancerStatus
from ...observation.cluster_view import (
    FULL, HIGHEST_RATIO, MOVING, OFF, PLANNING, ClusterView)
from ...observation.movements import CRUSH, Movement
from ...runtime.formatting import named
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd
from ...snapshot.pg_states import BACKFILL, RECOVERY_TOOFULL, TOOFULL


#: OSDs, pools and hosts that a sentence names; it counts the rest.
MOST_NAMED = 3


def make_writable(full: Sequence[Osd], status: BalancerStatus, view: ClusterView) -> str:
    """Returns what lets clients write to OSDs above full_ratio: moves if there is available space,
    else a higher ratio, else more capacity."""
    raised = _raised_ratio(view)
    by_fullness = sorted(full, key=lambda osd: -view.utilization_now(osd.id))
    names = named([f"osd.{osd.id}" for osd in by_fullness], MOST_NAMED)
    if _can_be_relieved(full, view):
        if crush_crowds_out(status, view):
            return codes.FREEZE
        if all(is_relieved(osd, status, view) for osd in full):
            wait = f"nothing; it ends by itself as data leaves {names}"
            if raised:
                return f"{wait}; {raised} before that"
            return wait
        if status.state == OFF and status.progress is None:
            return f"'ceph equilibrium on' moves data off {names} first"
        action = codes.action(status.reason_code, status.reason_numbers)
        if action.startswith("'ceph"):
            return action
    if raised:
        return f"{raised} again, until data is deleted or OSDs are added"
    return f"delete data, or add OSDs: {names} can take nothing more"


def _raised_ratio(view: ClusterView) -> str:
    """Returns the command that raises full_ratio above all OSDs, with its effect. Empty text if no
    ratio is high enough, or if what comes would soon fill an OSD up to it."""
    full = view.troubles[FULL]
    highest = max([view.utilization_now(osd) for osd in full])
    needed = math.floor(100.0 * highest) / 100.0 + 0.01
    if needed > HIGHEST_RATIO:
        return ""
    for osd in full:
        if view.used_soon[osd] >= needed * view.snapshot.osds[osd].size_bytes:
            return ""
    return f"'ceph osd set-full-ratio {needed:.2f}' lets clients write"


def _can_be_relieved(full: Sequence[Osd], view: ClusterView) -> bool:
    """Returns True if some placement has these OSDs below full_ratio, and Ceph lets data leave
    them: it refuses log recovery off a full OSD."""
    if view.utilization_bounds is None or any(
            entry.state == RECOVERY_TOOFULL for entry in view.too_full):
        return False
    reachable = view.utilization_bounds.utilizations
    return all(reachable.get(osd.id, 1.0) < view.snapshot.full_ratio for osd in full)


def is_relieved(osd: Osd, status: BalancerStatus, view: ClusterView) -> bool:
    """Returns True if a shard leaves the OSD now, or gets its turn behind others, whoever moves it;
    or if the plan under way is about to send one."""
    if {"nobackfill", "norecover"}.isdisjoint(view.snapshot.flags):
        for move in view.movements:
            if move.source == osd.id and _gets_on(move, view):
                return True
    if status.progress is None or status.state not in (MOVING, PLANNING):
        return False
    return any(osd.id in change.lost_by for change in status.wanted)


def _gets_on(move: Movement, view: ClusterView) -> bool:
    """Returns True if the shard is copied now, or waits for a running copy and not for an OSD that
    is too full."""
    if move.is_running:
        return True
    if TOOFULL in move.state or any(entry.osd == move.target for entry in view.too_full):
        return False
    return any(one.is_running for one in view.movements)


def crush_crowds_out(status: BalancerStatus, view: ClusterView) -> bool:
    """Returns True if CRUSH's own moves keep the module from relieving an OSD: they are most of the
    bytes in flight, more is misplaced than the limit, and nothing leaves an OSD above
    nearfull_ratio now. `freeze` then lets the plan relieve that OSD first. It pins nothing more
    once steering has held shards, and is refused while a plan with a name is executed."""
    snapshot = view.snapshot
    osds = snapshot.osds.values()
    if view.misplaced_ratio <= view.max_misplaced_ratio or "norebalance" in snapshot.flags:
        return False
    if status.plan_name or status.holds_placement and status.steered_at:
        return False
    keeping = {osd.id for osd in osds if osd.is_for_data and osd.share == 1.0}
    left_bytes = spread = 0
    relieved = set()
    for move in view.movements:
        left_bytes += move.left_bytes
        if move.is_running:
            relieved.add(move.source)
        # `freeze` cancels backfills alone
        if move.origin == CRUSH and BACKFILL in move.state and move.source in keeping:
            spread += move.left_bytes
    if 2 * spread <= left_bytes:
        return False
    return any(osd.reaches(snapshot.nearfull_ratio) and osd.id not in relieved
               for osd in osds)
