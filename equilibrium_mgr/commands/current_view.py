"""The newest view of the cluster that a command can have without waiting."""
from __future__ import annotations

import errno
from typing import Optional, Tuple

from ..control.status import BalancerStatus
from ..gateway.gateway import NotReady
from ..observation.cluster_view import FULL, ClusterView, with_figures_of_now
from ..plan.model import Plan
from ..report.cluster.evaluation import Look
from ..report.command_answer import CommandError
from .module_parts import ModuleParts

#: A look that is older than this is not acted on: seconds. The longer time is for a cluster in
#: which nothing moved then, with the same osdmap since.
_OLDEST_SECONDS, OLDEST_AT_REST_SECONDS = 60.0, 900.0
#: Seconds between two looks at a cluster at rest for whoever reads how it is: what OSDs use and
#: what is misplaced is of now in any case, and the loop itself looks where something has changed.
_POLLED_SECONDS = 1200.0


class CurrentView:
    """The serve loop's last view, with those figures of now that cost milliseconds to read."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts

    def request_if_old(self) -> bool:
        """Has the serve loop observe the cluster anew where there is no view, or where its last one
        is older than a round while data moves, or where other OSDs are up or full now; at rest
        where the osdmap is another one, or after _POLLED_SECONDS. Returns whether it is old."""
        view, _ = self.newest()
        at_rest = view is not None and not (
            view.movements or view.misplaced_ratio or self._is_outage_other(view))
        is_old = view is None or self.age(view) > (
            self._parts.settings().sleep_interval if not at_rest else _POLLED_SECONDS
            if view.snapshot.epoch == self._parts.gateway.epoch() else 0.0)
        if is_old:
            self._parts.balancer.request_observation(at_rest)
        return is_old

    def _is_outage_other(self, view: ClusterView) -> bool:
        """True where OSDs went down, came up, or passed full_ratio since the look."""
        try:
            summary = self._parts.gateway.summary()
        except NotReady:
            return False
        return view.are_others_up or summary.fullness.full != len(view.troubles[FULL])

    def newest(self) -> Tuple[Optional[ClusterView], BalancerStatus]:
        """(the view, None before the first one; the status), both with what is known now."""
        status = self._parts.balancer.status
        try:
            summary = self._parts.gateway.summary()
        except NotReady:   # the mgr knows nothing newer
            return status.view, status._replace(
                drains=status.drains.as_of(self._parts.gateway.epoch()))
        view = None if status.view is None else with_figures_of_now(status.view, summary)
        return view, status.as_of(summary)

    def look(self, plan: Optional[Plan] = None) -> Look:
        """What figures rest on, of now and with a kept plan, or with what is being executed."""
        is_started, execution = self.request_if_old(), self._parts.balancer.execution
        view, age = self.required(plan)
        return Look(view, age, self._parts.gateway.pool_space(), is_started, plan.changes
                    if plan is not None else None if execution is None else execution.wanted)

    def required(self, plan: Optional[Plan] = None) -> Tuple[ClusterView, float]:
        """(the view, its age in seconds). Raises CommandError before the first one, and before one
        of the placement that `plan` was made for."""
        self.request_if_old()
        view, _ = self.newest()
        if view is not None and view.has_drifted:
            self._parts.balancer.request_observation()
        if view is None:
            raise CommandError(
                errno.EAGAIN, "the cluster has not been looked at yet"
                f" ({self._parts.balancer.status.reason}); a look has been started, try again")
        if plan is not None and plan.epoch > view.snapshot.epoch:
            raise self.outdated("the plan is newer than the last look at the cluster")
        return view, self.age(view)

    def to_act_on(self, begin: str = "", oldest: float = _OLDEST_SECONDS) -> ClusterView:
        """The newest view, for a command that decides by it what is sent. Raises CommandError,
        which begins with `begin`, where it is older than `oldest` seconds, or does not show the
        last batch yet."""
        view, age = self.required()
        epoch = view.snapshot.epoch
        at_rest = not view.snapshot.in_flight() and self._parts.gateway.epoch() == epoch
        if epoch < self._parts.balancer.changes().epoch:
            raise self.outdated(f"{begin}the last look at the cluster is older than what was sent"
                                " last")
        if age > (OLDEST_AT_REST_SECONDS if at_rest else oldest):
            raise self.outdated(f"{begin}the last look at the cluster is {int(age)} s old")
        return view

    def outdated(self, reason: str) -> CommandError:
        """What is said where the last view must not be acted on; a look is started."""
        self._parts.balancer.request_observation()
        return CommandError(errno.EAGAIN, f"{reason}; a look has been started, try again in some"
                            " seconds")

    def newer_pool(self, name: str) -> CommandError:
        """What is said of a pool that the last view does not have; a look is started for it."""
        return self.outdated(f"pool '{name}' is newer than the last look at the cluster")

    def age(self, view: ClusterView) -> float:
        """Seconds since the view's snapshot was taken."""
        return max(0.0, self._parts.clock() - view.snapshot.taken_at)
