"""Watches a run: takes its figures, and holds every command of the module against the rules.

Called after each round and every virtual minute while something moves. The names S1 … S14 are those
of the invariants that each check stands for:
S1 up sets keep their rule, S2 targets can take, S3 fill, S4 misplaced by us, S6 one change per PG,
S8 nothing is sent past a guard, S12 `off` is obeyed.
"""
from __future__ import annotations

from typing import Any, Dict, List, Set, Tuple

from mgr_stub.monitor import MGR
from mgr_stub.session import Session

from . import cluster_view
from .thrashing import trend_discounted_variation

_UPMAP = ("osd pg-upmap-items", "osd rm-pg-upmap-items")
_STOP_FLAGS = ("pause", "norebalance", "nobackfill", "norecover")
#: Rounding, as a ratio.
_SLACK = 1e-6
#: What may change between two looks without the module's doing: writes of a minute, as a ratio.
_BETWEEN = 0.002
#: Virtual seconds between two entries of the utilisation series.
_SERIES_SECONDS = 600.0


class Watch:
    """Figures and broken rules of one run."""

    def __init__(self, session: Session, growing: bool = False) -> None:
        cluster = session.cluster
        self.broken: List[str] = []
        self.first = _extremes(cluster.utilizations())
        self.commands = 0
        self.moved_bytes = 0
        self.moved_shards = 0
        self.last_command_at = 0.0
        self.highest_misplaced = 0.0
        self.highest_fill = 0.0
        self._start = session.simulation.clock.now
        self._slack = _BETWEEN if growing else _SLACK
        self._read = len(session.simulation.monitor.log)
        self._ours: Set[str] = set()
        self._held: Dict[str, Tuple[int, ...]] = {}
        self._blocked = self._obstacle(session)
        self._trouble: Set[int] = set()
        self._series: Dict[int, List[float]] = {}
        self._series_at = self._start
        self._take_series(session)

    def __call__(self, session: Session) -> None:
        """One look."""
        cluster = session.cluster
        self._ours = {pgid for pgid in self._ours if pgid in cluster.restless}
        fresh = self._new_commands(session)
        if fresh:
            self._judge(session, fresh)
        self._measure(session)
        self._blocked = self._obstacle(session)
        self._trouble = cluster_view.osds_in_trouble(cluster)
        self._held = {pgid: pg.held for pgid, pg in cluster.pgs.items()}

    # -- commands ------------------------------------------------------------------------------

    def _new_commands(self, session: Session) -> List[str]:
        """PGs that the module has sent upmap commands for since the last look."""
        log = session.simulation.monitor.log
        fresh: List[str] = []
        while self._read < len(log) and (log[self._read].returncode is not None
                                         or not log[self._read].sender.startswith(MGR)):
            entry = log[self._read]
            self._read += 1
            if not entry.sender.startswith(MGR) or entry.prefix not in _UPMAP:
                continue
            self.commands += 1
            self.last_command_at = entry.sent_at - self._start
            if entry.returncode == 0:
                fresh.append(str(entry.command["pgid"]))
        return fresh

    def _judge(self, session: Session, fresh: List[str]) -> None:
        cluster = session.cluster
        if self._blocked and self._blocked == self._obstacle(session):
            self._note("S8/S12", "%s, and commands are sent" % self._blocked)
        peaks = cluster_view.peaks(cluster)
        for pgid in fresh:
            pg = cluster.pgs.get(pgid)
            if pg is None:
                continue
            if pgid in self._ours:
                self._note("S6", "pg %s is moved again before it has arrived" % pgid)
            self._ours.add(pgid)
            coming = cluster_view.coming(cluster, pg)
            self.moved_shards += len(coming)
            self.moved_bytes += sum(coming.values())
            self._judge_up(session, pgid)
            for osd in coming:
                if not cluster_view.may_take(cluster, osd):
                    self._note("S2", "pg %s goes to osd.%d, which is down or out" % (pgid, osd))
                size = cluster.usage[osd].total
                limit = cluster_view.fill_limit(cluster) + self._slack
                if peaks[osd] > limit * size:
                    self._note("S3", "pg %s may fill osd.%d to %.4f" % (
                        pgid, osd, peaks[osd] / size))
        self._judge_misplaced(session)

    def _judge_up(self, session: Session, pgid: str) -> None:
        view = session.module.balancer.view if session.module is not None else None
        up = session.cluster.map.up.get(pgid, ())
        pool = view.snapshot.pools.get(int(pgid.split(".")[0])) if view is not None else None
        if pool is None or pool.rule is None or cluster_view.NONE in up or len(up) < pool.size:
            return
        reason = pool.rule.breaks(up)
        if reason:
            self._note("S1", "pg %s is up on %s: %s" % (pgid, up, reason))
        source_trouble = self._trouble & set(up)
        if source_trouble and self._trouble & cluster_view.osds_in_trouble(session.cluster):
            nearfull = cluster_view.nearfull(session.cluster)
            relieves = any(session.cluster.usage[osd].utilization >= nearfull
                           for osd in self._held.get(pgid, ()) if osd in session.cluster.usage)
            if not relieves:
                self._note("S8", "pg %s is moved on OSDs with degraded or inactive PGs" % pgid)

    def _judge_misplaced(self, session: Session) -> None:
        cluster = session.cluster
        moving = [pgid for pgid in self._ours if pgid in cluster.restless]
        copies = cluster_view.misplaced_copies(cluster, moving)
        ratio = copies / max(1, cluster_view.object_copies(cluster))
        limit = _limit(session)
        if ratio > limit + self._slack and len(moving) > 1:
            self._note("S4", "we have misplaced %.4f of %.4f" % (ratio, limit))

    # -- figures -------------------------------------------------------------------------------

    def _measure(self, session: Session) -> None:
        cluster = session.cluster
        ours = cluster_view.misplaced_copies(cluster, self._ours)
        if ours:
            self._judge_misplaced(session)
            self.highest_misplaced = max(
                self.highest_misplaced, ours / max(1, cluster_view.object_copies(cluster)))
        levels = cluster.utilizations()
        self.highest_fill = max([self.highest_fill] + [
            level for by_osd in levels.values() for level in by_osd.values()])
        if session.simulation.clock.now >= self._series_at:
            self._take_series(session)

    def _take_series(self, session: Session) -> None:
        self._series_at = session.simulation.clock.now + _SERIES_SECONDS
        for by_osd in session.cluster.utilizations().values():
            for osd, level in by_osd.items():
                self._series.setdefault(osd, []).append(level)

    def thrashing(self) -> float:
        """The worst OSD's thrashing, as a ratio of the widest spread of all OSDs."""
        values = [value for series in self._series.values() for value in series]
        spread = max(values) - min(values)
        worst = max(trend_discounted_variation(series) for series in self._series.values())
        return worst / spread if spread > 0.0 else 0.0

    def _obstacle(self, session: Session) -> str:
        """Why nothing may be sent, as the operator knows it; empty if something may."""
        flags = [flag for flag in _STOP_FLAGS if flag in session.cluster.map.flags]
        if flags:
            return "the flag %s is set" % flags[0]
        module = session.module
        if module is None:
            return ""
        if module.gateway.builtin_balancer_active():
            return "the built-in balancer is active"
        if not module.settings().active and module.balancer.walk is None:
            return "the module is off"
        return ""

    def _note(self, rule: str, what: str) -> None:
        if len(self.broken) < 20:
            self.broken.append("%s: %s" % (rule, what))


def _limit(session: Session) -> float:
    """The misplaced limit that holds now."""
    if session.module is None:
        return 1.0
    settings: Any = session.module.settings()
    return float(settings.max_misplaced_ratio
                 or session.module.gateway.target_max_misplaced_ratio())


def _extremes(levels: Dict[str, Dict[int, float]]) -> Dict[str, Tuple[float, float]]:
    return {name: (max(by_osd.values()), min(by_osd.values())) for name, by_osd in levels.items()}
