"""The newest view of the cluster that a command can have without waiting."""
from __future__ import annotations

import errno
from typing import Optional, Tuple

from ..control.status import BalancerStatus
from ..gateway.gateway import NotReady
from ..observation.cluster_view import ClusterView, with_figures_of_now
from ..report.command_answer import CommandError
from .module_parts import ModuleParts

#: A look that is older than this is not acted on: seconds. The longer time is for a cluster in
#: which nothing moved then, with the same osdmap since.
_OLDEST_SECONDS, OLDEST_AT_REST_SECONDS = 60.0, 900.0


class CurrentView:
    """The serve loop's last view, with those figures of now that cost milliseconds to read."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts

    def request_if_old(self) -> bool:
        """Has the serve loop observe the cluster anew where its last view is older than a round, or
        where there is none, or where it may be wrong to say that OSDs are safe to stop; returns
        whether it did."""
        view, drains = self._parts.balancer.status.view, self._parts.balancer.drains.status
        is_old = view is None or self.age(view) > self._parts.settings().sleep_interval or (
            drains.is_done and drains.as_of(self._parts.gateway.epoch()).is_old)
        if is_old:
            self._parts.balancer.request_observation()
        return is_old

    def newest(self) -> Tuple[Optional[ClusterView], BalancerStatus]:
        """(the view, None before the first one; the status), both with what is known now."""
        status = self._parts.balancer.status
        try:
            summary = self._parts.gateway.summary()
        except NotReady:   # the mgr knows nothing newer
            return status.view, status
        view = None if status.view is None else with_figures_of_now(status.view, summary)
        return view, status.as_of(summary)

    def required(self) -> Tuple[ClusterView, float]:
        """(the view, its age in seconds). Raises CommandError before the first one."""
        self.request_if_old()
        view, _ = self.newest()
        if view is None:
            raise CommandError(
                errno.EAGAIN, "the cluster has not been looked at yet"
                f" ({self._parts.balancer.status.reason}); a look has been started, try again")
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
