"""What helps against the reason for a state, by what the loop has seen and counted: for `status`
and health checks, which count nothing themselves, and for `explain` of what is under way."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Mapping, Optional

from ...control.status import BalancerStatus
from ...drain.status import DrainStatus
from ...execution.cooldown import ExcludedPgs
from ...execution.guards import BEFORE_QUINCY
from ...observation.cluster_view import ClusterView
from ...execution.verdict import Refusals
from ...observation.states import STUCK
from ...observation.too_full import HELD_UP
from ...runtime.formatting import format_deadline
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.reason_codes import FASTER, NOTHING, REASONS, action
from ..status.waiting_text import action_numbers
from .census_rows import numbers_of, silent_osd
from .outage import find_outage
from .reason import ExplainContext

#: Of these the figures of the action take longer than a status may.
_EXPLAIN = "'ceph equilibrium explain' counts what is in the way, and names what helps"
_LONG = (codes.GRANULARITY, codes.IMMOVABLE)
#: What ends only while data is copied.
_BY_COPYING = (codes.DEGRADED, codes.PG_NUM_CHANGING, codes.IN_FLIGHT, codes.SOURCE_FULL,
               codes.NEARFULL_FIRST, codes.MOVING)
_HOLDING = frozenset(("nobackfill", "norecover"))

def paused_drain(drains: DrainStatus) -> Dict[str, Any]:
    """What the action of `off` has where a drain with shards left is paused: `drained`, the names
    as they were given."""
    names = sorted({name for osd, name in drains.drains.names.items()
                    if osd not in drains.empty_osds})
    if not drains.drains.is_paused or not names:
        return {}
    return {"drained": " ".join(names)}


def state_action(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                 now: float) -> str:
    """What helps against that for which most shards wait, or against the reason of the state; `now`
    in seconds since the epoch."""
    code, refusals = status.reason_code, status.refusals
    if view is not None and view.too_full and status.state in HELD_UP:
        return help_for(codes.TOO_FULL, ExplainContext(view, status, settings, now=now))
    if view is not None and status.progress is not None and status.waiting:
        return help_for(status.waiting[0].code, ExplainContext(view, status, settings, now=now),
                        **action_numbers(status.waiting[0]))
    if status.progress is not None and code == codes.SWITCHED_OFF:
        return NOTHING
    if status.state == STUCK and code in _LONG:
        return _EXPLAIN
    if view is None:
        return action(code, {**status.reason_numbers, **paused_drain(status.drains)})
    if refusals is None or not _is_of(refusals, view):
        return help_for(code, ExplainContext(view, status, settings, now=now))
    if code == codes.MIN_GAIN and refusals.rest_code != codes.MIN_GAIN:
        return NOTHING   # the option is not the cause
    excluded = ExcludedPgs(frozenset(), frozenset(), refusals.excluded_seconds)
    context = ExplainContext(view, status, settings, excluded, refusals.max_pg_shards, now)
    return action(code, numbers_of(code, refusals.census.of(code), context))


def help_for(code: str, context: ExplainContext, **more: Any) -> str:
    """The action for a reason of the loop; `more`: figures of what waits for it."""
    status, snapshot = context.status, context.snapshot
    numbers: Dict[str, Any] = dict(status.reason_numbers) if status.reason_code == code else {}
    numbers.update(numbers_of(code, None, context))
    numbers.update({key: value for key, value in more.items() if value is not None})
    numbers.update(paused_drain(status.drains))
    if status.until_at is not None:
        numbers.setdefault("until", format_deadline(status.until_at))
    if code == codes.STALE_STATISTICS:
        numbers["osd"] = silent_osd(numbers.get("osd"), context.view)
    elif code == codes.FILL_LIMIT and numbers.get("osd") in snapshot.osds and (
            not snapshot.osds[numbers["osd"]].outbound_bytes):
        numbers["osd"] = None   # nothing leaves it
    elif REASONS[code].actions is FASTER:
        numbers["faster"] = _faster(numbers, context)
    elif code in _BY_COPYING:
        outage = find_outage(status, context.view)
        if code == codes.DEGRADED and outage is not None:
            return outage.action
        for flag in _HOLDING.intersection(snapshot.flags):
            return action(codes.FLAG, {"flag": flag})
    said = action(code, numbers)   # a pool that is stopped does not go on by itself
    return action(codes.MISPREDICTED, {}) if (
        status.mispredicted and said.startswith(NOTHING)) else said


def _faster(numbers: Mapping[str, Any], context: ExplainContext) -> Optional[str]:
    """What lets more be copied at a time: ours where OSDs are idle, Ceph's own limit where shards
    in flight wait for that, be it at the OSD that is waited for or at half of them all."""
    osd, moves = numbers.get("osd"), context.view.movements
    release, limit = context.snapshot.osd_release, float(numbers.get("limit") or 0.0)
    busy = {one for move in moves if move.is_running for one in (move.source, move.target)}
    if any(not move.is_running for move in moves if osd in (move.source, move.target)) or (
            osd is None and 2 * len(busy) > len(context.snapshot.osds)):
        if release and release not in BEFORE_QUINCY:
            return "osd osd_mclock_profile high_recovery_ops"
        running = Counter(move.target for move in moves if move.is_running)
        return f"osd osd_max_backfills {max(running.values(), default=1) + 1}" if release else None
    if not limit or numbers.get("halved"):
        return None
    more = max(2.0 * limit, 0.02 * float(numbers.get("own") or 0.0))
    return (f"mgr mgr/equilibrium/{numbers.get('option')}"
            f" {more if limit >= 1.0 else min(more, 1.0):g}")


def _is_of(refusals: Refusals, view: ClusterView) -> bool:
    """True where all that was counted is in the view still, which may be a newer one."""
    found, snapshot = refusals.census.of(refusals.code), view.snapshot
    if found is None:
        return True
    return (found.example[0] in snapshot.pgs and set(found.pools) <= set(snapshot.pools)
            and {*found.targets, *found.example[1:]} <= set(snapshot.osds))
