"""Automatic read balance: primaries are evened out where nothing else is to be done."""
from __future__ import annotations

from typing import Callable, Optional

from ...execution.guards import is_disturbed, primaries_refused
from ...execution.verdict import Verdict
from ...gateway.gateway import Gateway
from ...plan.model import Plan
from ...plan.options import PlanOptions
from ...read_balance.read_plan import read_plan
from ...runtime.backoff import Backoff
from ...runtime.checkpoints import with_checkpoints
from ...runtime.formatting import plural
from ...runtime.time_slice import TimeSlice
from ...runtime.wait_timer import WaitTimer
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot, pool_of
from ..auto_planner import NextStep
from ..balancing_scope import automatic_options

#: By how much a plan has to lower a pool's score: PGs do not peer again for less. What is left
#: after a plan is no cause for the next one, as that would lower it by nothing.
LEAST_GAIN = 0.1
#: Seconds between two plans, be it that the first was not worth its changes; and at most, while
#: all is where it was: the PGs are clean at another time, or the monitors refuse what is wanted.
_PACE_SECONDS, _LONGEST_SECONDS = 600.0, 21_600.0
#: Between two checkpoints: about a millisecond.
_PGS_A_PIECE = 2000


class AutomaticReads:
    """Used by the serve thread."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._pace = WaitTimer()
        self._unchanged = Backoff(_PACE_SECONDS, _LONGEST_SECONDS)
        self._planned_for: Optional[int] = None   # mark of the cluster

    def next_step(self, step: NextStep, snapshot: Snapshot, settings: Settings) -> NextStep:
        """The step of automatic balancing; one that evens out primaries where it is idle."""
        if not (step.is_idle and settings.active and settings.read_balance):
            return step
        if self._pace.seconds_left(self._clock()) > 0.0 or _is_busy(snapshot):
            return step
        if primaries_refused(True, self._gateway.ceph_version(), snapshot.min_compat_client,
                             snapshot.osd_release):
            return step
        self._pace.begin(self._clock(), _PACE_SECONDS)
        options = automatic_options(settings, snapshot, frozenset())
        if not self._is_due(_mark(snapshot, options)):
            return step
        plan = _worthwhile(read_plan(snapshot, options, TimeSlice()))
        if plan is None:
            return step
        return NextStep(Verdict(codes.PLANNING, "primaries are uneven:"
                                f" {plural(len(plan.changes), 'PG')} can do better"), plan=plan)

    def _is_due(self, mark: int) -> bool:
        """False while all is where it was when the last plan was made, for longer each time."""
        if mark != self._planned_for:
            self._unchanged.succeeded()
        elif self._unchanged.seconds_left(self._clock()) > 0.0:
            return False
        self._planned_for = mark
        self._unchanged.failed(self._clock())
        return True


def _mark(snapshot: Snapshot, options: PlanOptions) -> int:
    """A checksum of what a plan rests on, but for the states of PGs, which come and go."""
    found = hash((options.pool_ids, options.device_classes, options.sources, options.targets,
                  snapshot.crush_version, snapshot.stale_osds, tuple(
                      (osd.id, osd.up, osd.is_in, osd.reweight, osd.drained, osd.primary_affinity)
                      for osd in snapshot.osds.values())))
    for pg in with_checkpoints(snapshot.pgs.values(), _PGS_A_PIECE, TimeSlice()):
        found = hash((found, pg.up))
    return found


def _is_busy(snapshot: Snapshot) -> bool:
    return is_disturbed(snapshot) or any(
        counts.inactive for counts in snapshot.pool_states.values())


def _worthwhile(plan: Plan) -> Optional[Plan]:
    """The plan for those pools whose score it lowers by enough; None where there are none."""
    pools = {row.pool_id for row in plan.reads
             if row.score_before - row.score_after >= LEAST_GAIN}
    changes = tuple(change for change in plan.changes if pool_of(change.pgid) in pools)
    return plan._replace(changes=changes) if changes else None
