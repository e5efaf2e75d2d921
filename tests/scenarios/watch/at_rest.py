"""Whether a run has come to rest, and stays there when nothing but statistics changes."""
from __future__ import annotations

from typing import Callable, Dict, List

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session

from . import cluster_view
from .watch import Watch

#: The event after which nothing may be sent.
NOISE = "sim stats noise 0.01"


class Rest:
    """L2 the loop ends with a reason to rest, L3 noise does not wake it."""

    def __init__(self) -> None:
        self.broken: List[str] = []
        self._sent = 0
        self._noisy = False

    def before_event(self, line: str, session: Session, watch: Watch) -> None:
        """Before each event, and with an empty line at the end of the run."""
        if line == NOISE or not line:
            why = why_not(session)
            if why:
                self.broken.append(f"L2: {why}")
        if not line and self._noisy and watch.judge.sent > self._sent:
            self.broken.append(f"L3: {watch.judge.sent - self._sent} commands, for noise of the "
                               "statistics alone")
        self._noisy, self._sent = line == NOISE, watch.judge.sent


def why_not(session: Session) -> str:
    """Why this is no rest; empty where it is one. Of the module's states these are:

    balanced, and stuck: nothing is left to do, and in so small a cluster a shard is much;
    blocked: PGs that cannot heal hold it up, and nothing moves;
    throttled: all that could be moved would go to OSDs that are too full.
    """
    status = session.module.balancer.status
    is_rest = _AT_REST.get(status.state)
    if status.state in ("balanced", "stuck"):
        return ""
    if session.simulation.idle() and is_rest is not None and is_rest(session):
        return ""
    return f"it is {status.state}: {status.reason}"


def _has_sick_pgs(session: Session) -> bool:
    cluster = session.cluster
    return any("clean" not in pg_reports.state_of(cluster, pg) for pg in cluster.unclean.values())


def _is_full(session: Session) -> bool:
    cluster = session.cluster
    nearfull = cluster.map.ratio("nearfull_ratio")
    return any(usage.utilization >= nearfull and cluster_view.may_take(cluster, osd)
               for osd, usage in cluster.usage.items())


#: Of a cluster in which nothing moves.
_AT_REST: Dict[str, Callable[[Session], bool]] = {"blocked": _has_sick_pgs, "throttled": _is_full}
