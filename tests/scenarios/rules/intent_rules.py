"""The rules of what an operator wants, each as what is wrong with a move, or nothing.

I1 an OSD whose weight was lowered gets no more than its share, I2 the module sends no command but
upmap items, I3 nothing is sent between `off` and the next `on` or `execute`, I4 a plan leaves alone
what somebody else has moved since it is under way, I5 a PG that somebody has placed in full stays.
"""
from __future__ import annotations

import statistics
from typing import Any, Callable, Dict, Iterator

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.monitor.mon_store import LoggedCommand

from ..watch import cluster_view
from .moment import Moment
from .under_way import Outgoing, is_upmap

#: Below this share of its likes an OSD counts as held back, as the module's option says.
_HELD_BACK = 0.9
_SLACK = 0.01
#: Of `ceph equilibrium …`: what ends the silence after `off`.
_STARTING = ("equilibrium on", "equilibrium execute", "equilibrium undo", "equilibrium cancel",
             "equilibrium freeze", "equilibrium drain add")


def shares(cluster: Cluster) -> Dict[int, float]:
    """OSD → CRUSH weight by size, times reweight, against the median of its class."""
    by_class: Dict[str, Dict[int, float]] = {}
    for osd, usage in cluster.usage.items():
        weight = cluster.crush.osd_weight(osd)
        if usage.total and weight and cluster_view.may_take(cluster, osd):
            by_class.setdefault(cluster_view.class_of(cluster, osd), {})[
                osd] = weight / usage.total
    found: Dict[int, float] = {}
    for weights in by_class.values():
        median = statistics.median(weights.values())
        found.update({osd: cluster.map.reweight(osd) * min(1.0, weight / median)
                      for osd, weight in weights.items()})
    return found


def i1_share(moment: Moment, move: Outgoing) -> Iterator[str]:
    """Called with the move among those under way."""
    cluster = moment.cluster
    held = shares(cluster)
    held_back = [osd for osd in move.gains if held.get(osd, 1.0) < _HELD_BACK]
    if not held_back or not moment.settings.respect_weights:
        return
    peaks = cluster_view.peaks(cluster, moment.ours)
    for osd in held_back:
        name = cluster_view.class_of(cluster, osd)
        likes = [peaks[other] / cluster.usage[other].total for other, share in held.items()
                 if share >= _HELD_BACK and cluster_view.class_of(cluster, other) == name]
        share, size = held[osd], cluster.usage[osd].total
        most = share * max(likes, default=1.0) + move.pg.shard.total / size
        level = peaks[osd] / size
        if level > most + _SLACK and likes:
            yield f"fills osd.{osd} to {level:.3f}, and it is held to {share:.2f} of its likes"


def i5_pinned(moment: Moment, move: Outgoing) -> Iterator[str]:
    if move.pgid in moment.cluster.map.full_upmaps:
        yield "is moved although somebody has placed it in full (pg-upmap)"


OF_INTENT: Dict[str, Callable[[Moment, Outgoing], Iterator[str]]] = {
    "I1": i1_share, "I5": i5_pinned}


class Silence:
    """I3."""

    def __init__(self) -> None:
        self.is_wanted = False

    def on_answer(self, line: str, code: int) -> None:
        """A command line and what came of it."""
        words = line.removeprefix("ceph ")
        if code == 0 and words == "equilibrium off":
            self.is_wanted = True
        elif (words.startswith(_STARTING) and "--dry-run" not in words) or "/active" in words:
            self.is_wanted = False


class Others:
    """I4."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._moved: Dict[str, Any] = {}   # pgid → the plan that was under way as they moved it
        self.pairs = 0   # of upmap items that they have set

    def on_command(self, entry: LoggedCommand) -> None:
        """A command that is not ours."""
        if is_upmap(entry):
            self._moved[str(entry.command.get("pgid"))] = self._execution()
            self.pairs += len(entry.command.get("id", ())) // 2

    def judge(self, move: Outgoing) -> Iterator[str]:
        execution = self._execution()
        if execution is not None and self._moved.get(move.pgid) is execution:
            yield "is moved although somebody else has moved it since the plan was made"

    def _execution(self) -> Any:
        module = self._session.module
        if module is None:
            return None
        return module.balancer.execution
