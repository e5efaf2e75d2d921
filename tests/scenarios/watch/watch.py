"""Watches a run: takes its figures, and notes every rule that is broken.

Called after each round and every virtual minute while something moves; commands are judged as they
are sent (judge.py). The names S1 … S14 are those of the invariants that each check stands for.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR

from ..rules.awake_rule import NothingSleeps
from ..rules.exclusion_rules import Exclusions
from ..rules.guard_rules import has_window, is_held
from ..rules.judge import Judge
from ..rules.map_rules import MapRules
from ..rules.screen_rules import ScreenOfNow
from ..rules.under_way import Outgoing, UnderWay, is_ours
from . import cluster_view
from .deserved_rest import DeservedRest
from .truth import Truth


#: The longest time between two full looks, twice: the wait is seen to begin and to end.
_LOOKS_SECONDS = 1200.0


class OpenExecutions:
    """L5: where nothing moves and nothing forbids sending, an automatic plan of which nothing has
    gone for max_wait and a few rounds is given up, whatever it waits for."""

    def __init__(self) -> None:
        self._seen: Optional[Tuple[Any, int]] = None   # the execution and what it has sent
        self._since = 0.0

    def observe(self, session: Session) -> List[str]:
        """What is wrong now."""
        if session.module is None:   # the mgr is dead
            return []
        execution, now = getattr(session.module.balancer, "execution", None), session.clock.now
        seen = None
        if execution is not None and not execution.name and not _stopped(session):
            seen = (execution, execution.sent_moves)
        if seen is None or seen != self._seen:
            self._seen, self._since = seen, now
            return []
        settings = session.module.settings()
        most = settings.max_wait + _LOOKS_SECONDS + 2 * settings.sleep_interval
        if now - self._since <= most:
            return []
        self._since = now
        return [f"an automatic plan has waited for more than {int(most)} s: "
                f"{session.module.balancer.status.reason}"]


def _stopped(session: Session) -> bool:
    """Does something move, or does something keep everything from moving?"""
    settings = session.module.settings()
    is_busy = not session.simulation.idle() or not settings.active
    return is_busy or is_held(session) or has_window(settings)


#: Virtual seconds between two entries of the utilization series.
_SERIES_SECONDS = 600.0
#: What metadata may add, as a ratio of an OSD.
_ROUNDING = 1e-4
Utilizations = Dict[str, Dict[int, float]]


#: How steeply the discount grows with the trend.
_POWER = 0.8


def trend_discounted_variation(values: Sequence[float]) -> float:
    """How much a series goes up and down for nothing, on top of the way it has to go, in the unit
    of its values; 0 for a monotone one.

    After CockroachDB's allocation simulator: with U the sum of a series' rises, D that of its
    falls, the smaller of both is thrashing, discounted where the series has a trend.
    """
    steps = [b - a for a, b in zip(values, values[1:])]
    rises = sum(step for step in steps if step > 0.0)
    smaller, larger = sorted((rises, rises - sum(steps)))
    if smaller <= 0.0:
        return 0.0
    balance = (smaller / larger) ** _POWER
    return smaller + balance * larger


class Figures:
    """Taken at every look."""

    def __init__(self, session: Session) -> None:
        utilizations = session.cluster.utilizations()
        self.first = {name: (max(by_osd.values()), min(by_osd.values()))
                      for name, by_osd in utilizations.items()}
        self.commands = 0
        self.moved_bytes = 0
        self.moved_shards = 0
        self.last_command_at = 0.0
        self.highest_misplaced = 0.0
        self.highest_together = 0.0   # of these, by more than one PG
        self.highest_fill = 0.0
        self._series: Dict[int, List[float]] = {}
        self._series_at = session.simulation.clock.now
        self._start_series(session, utilizations)

    def count(self, session: Session, pgids: List[str]) -> None:
        """The PGs of commands that have just been done."""
        for pgid in pgids:
            if pgid in session.cluster.pgs:
                coming = cluster_view.coming(session.cluster, session.cluster.pgs[pgid])
                self.moved_shards += len(coming)
                self.moved_bytes += sum(coming.values())

    def measure(self, session: Session, ours: Set[str], utilizations: Utilizations) -> None:
        """`ours` are the PGs that the module moves."""
        cluster = session.cluster
        by_pg = [cluster_view.misplaced_copies(cluster, [pgid]) for pgid in ours]
        if any(by_pg):
            ratio = sum(by_pg) / max(1, cluster_view.object_copies(cluster))
            self.highest_misplaced = max(self.highest_misplaced, ratio)
            if sum(by_pg) > max(by_pg):
                self.highest_together = max(self.highest_together, ratio)
        for by_osd in utilizations.values():
            self.highest_fill = max(self.highest_fill, *by_osd.values())
        if session.simulation.clock.now >= self._series_at:
            self._start_series(session, utilizations)

    def _start_series(self, session: Session, utilizations: Utilizations) -> None:
        self._series_at = session.simulation.clock.now + _SERIES_SECONDS
        for by_osd in utilizations.values():
            for osd, level in by_osd.items():
                self._series.setdefault(osd, []).append(level)

    def thrashing(self) -> float:
        """The worst OSD's thrashing, as a ratio of the widest spread of all OSDs."""
        values = [value for series in self._series.values() for value in series]
        spread = max(values) - min(values)
        worst = max(trend_discounted_variation(series) for series in self._series.values())
        if spread > 0.0:
            return worst / spread
        return 0.0


class Ceiling:
    """L8: while nothing but the module moves data, no class's highest utilization rises."""

    def __init__(self) -> None:
        self._ceilings: Dict[str, float] = {}
        self._data: Tuple[int, int, int] = (0, 0, 0)

    def passed(self, session: Session, ours: UnderWay, utilizations: Utilizations) -> List[str]:
        """What is wrong with the utilizations of this look."""
        cluster = session.cluster
        stored = sum(pg.num_bytes for pg in cluster.pgs.values())
        before, self._data = self._data, (stored, len(cluster.pgs), len(cluster.map.osds))
        is_foreign = any(pg.transfers and not ours.is_alone(pg) for pg in cluster.unclean.values())
        if is_foreign or before != self._data or utilizations.keys() != self._ceilings.keys():
            peaks = cluster_view.peaks(cluster, ours)
            self._ceilings = {name: max(peaks[osd] / cluster.usage[osd].total for osd in by_osd)
                              for name, by_osd in utilizations.items()}
            return []
        found: List[str] = []
        for name, by_osd in utilizations.items():
            highest, most = max(by_osd.values()), self._ceilings[name]
            if highest > most + _ROUNDING:
                found.append(f"class {name or 'none'} is at {highest:.4f}, above {most:.4f} before")
        return found


class Repeats:
    """L4: shards that the module has moved twice since the last event."""

    def __init__(self) -> None:
        self._placed: Set[Tuple[str, int]] = set()
        self.found: List[str] = []

    def begin(self) -> None:
        """Something has happened: what was right may be wrong now."""
        self._placed = set()

    def on_move(self, move: Outgoing) -> None:
        for osd in move.losses:
            if (move.pgid, osd) in self._placed:
                self.found.append(f"pg {move.pgid} leaves osd.{osd}, where it was put")
        self._placed.update((move.pgid, osd) for osd in move.gains)


class Watch:
    """Figures and broken rules of one run."""

    def __init__(self, session: Session) -> None:
        self.figures = Figures(session)
        self.repeats = Repeats()
        self.judge = Judge(session, self.repeats.on_move)
        self.risen: List[str] = []   # L8
        self.truth = Truth()
        self.screen = ScreenOfNow()
        self.exclusions = Exclusions(session)
        self._map_rules = MapRules(session.cluster, self.judge)
        self._ceiling = Ceiling()
        self._open_executions = OpenExecutions()
        self.rest = DeservedRest(session)
        self.sleep = NothingSleeps(session)
        self._start = session.simulation.clock.now
        self._read = len(session.simulation.monitor.log)
        self._ours: Set[str] = set()
        self._failure = ""   # of the last round
        session.listeners.append(self._on_command)

    def __call__(self, session: Session) -> None:
        """One look."""
        self.judge.observe()
        self._map_rules.observe()
        for rule, found in (("L5", self._open_executions.observe(session)),
                            ("R1", self.rest.observe(session)),
                            ("A1", self.sleep.observe(session, self.judge.moment))):
            for what in found:
                self.judge.note(rule, what)
        self._hold_rounds(session)
        looks = self.truth.looks
        self.truth.observe(session, self.judge.ours)
        self.screen.observe(session)
        if self.truth.looks > looks:
            for rule, told in self.exclusions.observe(self.truth.status):
                self.judge.note(rule, told)
        utilizations = session.cluster.utilizations()
        steered = self.judge.steered
        fresh = [pgid for pgid in self._done_commands(session) if pgid not in steered]
        self.figures.count(session, fresh)
        self._ours = {pgid for pgid in self._ours.union(fresh)
                      if pgid in session.cluster.unclean}
        self.figures.measure(session, self._ours, utilizations)
        self.risen += self._ceiling.passed(session, self.judge.ours, utilizations)

    def _hold_rounds(self, session: Session) -> None:
        """L13: whatever the cluster is like, no round ends by an exception."""
        failure = session.module._failure if session.module is not None else ""
        if failure and failure != self._failure:
            self.judge.note("L13", f"a round has failed: {failure}")
        self._failure = failure

    def _on_command(self, line: str, code: int) -> None:
        """A command that came in the middle of a round."""
        self.judge.answers.before(line)
        self.judge.silence.on_answer(line, code)

    @property
    def broken(self) -> List[str]:
        return self.judge.broken

    def _done_commands(self, session: Session) -> List[str]:
        """PGs whose upmap commands the monitor has done since the last look."""
        log = session.simulation.monitor.log
        fresh: List[str] = []
        for entry in log[self._read:]:
            if entry.sender == MGR and entry.returncode is None:
                break
            self._read += 1
            if is_ours(entry):
                self.figures.commands += 1
                self.figures.last_command_at = entry.sent_at - self._start
                if entry.returncode == 0:
                    fresh.append(str(entry.command["pgid"]))
        return fresh
