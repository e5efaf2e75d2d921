"""Automatic read balance: primaries are evened out where nothing else is to be done."""
from __future__ import annotations

from typing import Callable, Optional

from ...execution.guards import primaries_refused
from ...gateway.gateway import Gateway
from ...plan.model import Plan
from ...read_balance.read_plan import read_plan
from ...runtime.formatting import plural
from ...runtime.time_slice import TimeSlice
from ...runtime.wait_timer import WaitTimer
from ...settings import Settings
from ...snapshot.model import Snapshot, pool_of
from ..auto_planner import NextStep

#: By how much a plan has to lower a pool's score: PGs do not peer again for less. What is left
#: after a plan is no cause for the next one, as that would lower it by nothing.
LEAST_GAIN = 0.1
#: Seconds between two plans, be it that the first was not worth its changes.
_PACE_SECONDS = 600.0


class AutomaticReads:
    """Used by the serve thread."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._pace = WaitTimer()

    def next_step(self, step: NextStep, snapshot: Snapshot, settings: Settings) -> NextStep:
        """The step of automatic balancing; one that evens out primaries where it is idle."""
        if not (step.is_idle and settings.active and settings.read_balance):
            return step
        if self._pace.seconds_left(self._clock()) > 0.0 or not _is_quiet(snapshot):
            return step
        if primaries_refused(True, self._gateway.ceph_version(), snapshot.min_compat_client):
            return step
        self._pace.begin(self._clock(), _PACE_SECONDS)
        plan = _worthwhile(read_plan(snapshot, settings.pool_ids, TimeSlice()))
        if plan is None:
            return step
        return NextStep(plan=plan, reason="primaries are uneven:"
                        f" {plural(len(plan.changes), 'PG')} can do better")


def _is_quiet(snapshot: Snapshot) -> bool:
    return not (snapshot.in_flight() or snapshot.misplaced_copies or any(
        counts.inactive or counts.degraded for counts in snapshot.pool_states.values()))


def _worthwhile(plan: Plan) -> Optional[Plan]:
    """The plan for those pools whose score it lowers by enough; None where there are none."""
    pools = {row.pool_id for row in plan.reads
             if row.score_before - row.score_after >= LEAST_GAIN}
    changes = tuple(change for change in plan.changes if pool_of(change.pgid) in pools)
    return plan._replace(changes=changes) if changes else None
