"""Holds every upmap command of the module against the rules, at the moment of its sending."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from mgr_stub.console.session import Session
from mgr_stub.monitor.mon_store import LoggedCommand
from mgr_stub.monitor.monitor import MGR
from mgr_stub.osdmap.upmap import Items

from .guard_rules import OF_THE_MOMENT
from .intent_rules import OF_INTENT, Others, Silence
from .limit_rules import OF_LIMITS
from .moment import Lacking, Moment
from .monitor_rules import Answers
from .move_rules import OF_ONE_MOVE, History, s6_once
from .under_way import Outgoing, UnderWay, is_upmap, outgoing

Rules = Dict[str, Callable[[Moment, Outgoing], Iterator[str]]]
_MOST_NOTES = 20
#: Second words of the monitor's commands that only an operator, or Ceph itself, gives.
_CHANGING = ("set", "unset", "reweight", "crush", "out", "in", "down", "pool", "primary", "purge",
             "pg-upmap-primary", "rm-pg-upmap-primary")


class Judge:
    """`broken` lists what is wrong; `ours` is what the module has under way."""

    def __init__(self, session: Session, tell: Callable[[Outgoing], None]) -> None:
        self._session = session
        self._tell = tell   # of every move
        self._history = History()
        self._lacking = Lacking()
        self._moment: Optional[Tuple[Tuple[Any, ...], Moment]] = None
        self._mgr: Any = session.mgr
        self._active_since = (session.clock.now, session.clock())
        self.broken: List[str] = []
        self.ours = UnderWay(session.cluster)
        self.silence = Silence()
        self.answers = Answers(session)
        self.others = Others(session)
        self.sent = 0         # commands
        self.sent_pairs = 0   # of upmap items
        self.restored_pairs = 0   # of these, as an undo found them in its log
        self.steered: Set[str] = set()   # pgids: others have set them in motion
        self._had: Dict[str, Set[Items]] = {}   # pgid → items that commands of ours replaced
        session.simulation.monitor.observers.append(self.on_command)
        session.simulation.reports.observers.append(
            lambda: self._lacking.observe(session.cluster))

    def on_command(self, entry: LoggedCommand) -> None:
        """A command has just been sent, by whomever."""
        if entry.sender != MGR:
            self.others.on_command(entry)
            return
        if not is_upmap(entry):
            if entry.prefix.partition(" ")[2].startswith(_CHANGING):
                self.note("I2", f"sends '{entry.prefix}'")
            return
        self.sent += 1
        if self.silence.is_wanted:
            self.note("I3", f"pg {entry.command.get('pgid')} is sent after 'off'")
        steers = self._session.module.settings().steers
        move = outgoing(self._session.cluster, entry, steers)
        if move is None:
            self.note("S7", f"pg {entry.command.get('pgid')} does not exist")
            return
        move = self._as_restored(move)
        self.steered.discard(move.pgid)
        if steers and (move.redirects or move.moves_nothing):
            self.steered.add(move.pgid)
        if not move.moves_nothing:
            self._judge_start()
        moment = self.moment()
        self._hold(OF_THE_MOMENT, moment, move)
        self._note_all("S6", move.pgid, list(s6_once(moment, move, self._history)))
        self._tell(move)
        if move.redirects:
            self.ours.add(move)
        elif not move.moves_nothing:   # else an earlier move of the PG ends as its data stays
            self.ours.add(move)
            self._history.add(move)
        else:
            self._history.end(move, moment)
        self.sent_pairs += max(0, len(move.items) - len(move.had))
        for rules in (OF_ONE_MOVE, OF_LIMITS, OF_INTENT):
            self._hold(rules, moment, move)
        for rule, what in list(self.answers.judge(moment, move)):
            self._note_all(rule, move.pgid, [what])
        self._note_all("I4", move.pgid, list(self.others.judge(move)))

    def _hold(self, rules: Rules, moment: Moment, move: Outgoing) -> None:
        for rule, check in rules.items():
            self._note_all(rule, move.pgid, list(check(moment, move)))

    def _as_restored(self, move: Outgoing) -> Outgoing:
        """The move with what is known of its items."""
        had = self._had.setdefault(move.pgid, set())
        kind = getattr(self._session.module.balancer.execution, "kind", "")
        restores = kind == "undo" and move.items in had
        had.add(move.had)
        self.restored_pairs += len(move.items) * restores
        return move._replace(restores=restores)

    def observe(self) -> None:
        """Between the rounds: what has arrived, and whether another mgr has taken over."""
        self.answers.observe()
        if self._session.module is not None:
            self.ours.swelling.update({
                pool: self._session.cluster.copy_overhead.get(pool, 0.0)
                for pool in self._session.module.balancer.status.mispredicted})
        self.ours.remove_finished()
        self._lacking.observe(self._session.cluster)
        if self._session.mgr is not self._mgr:
            self._mgr = self._session.mgr
            self._active_since = (self._session.clock.now, self._session.clock())

    def note(self, rule: str, what: str) -> None:
        if len(self.broken) < _MOST_NOTES:
            self.broken.append(f"{rule}: {what} (at {int(self._session.clock.elapsed())} s)")

    def moment(self) -> Moment:
        """The same for all of a batch."""
        session = self._session
        mark = (session.clock.now, session.cluster.map, session.module)
        if self._moment is None or self._moment[0] != mark:
            self.ours.remove_finished()
            self._moment = mark, Moment(session, self.ours, self._lacking,
                                        self._active_since[0])
        return self._moment[1]

    def _judge_start(self) -> None:
        """S8: a new mgr waits; a clock that is set forward may end that."""
        session = self._session
        since = self._active_since
        if session.mgr is not self._mgr:
            since = (session.clock.now, session.clock())
        waited = max(session.clock.now - since[0], session.clock() - since[1])
        if waited < session.module.settings().start_delay:
            self.note("S8", f"sends {int(waited)} s after the mgr has become active")

    def _note_all(self, rule: str, pgid: str, found: List[str]) -> None:
        for what in found:
            self.note(rule, f"pg {pgid} {what}")
