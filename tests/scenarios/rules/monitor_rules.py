"""What the monitor has answered, and what the built-in balancer may still be doing.

S18 what was not kept is not sent again while the map is the same in what matters, nor what was
refused by an error within ten minutes, S20 nothing is
sent before a built-in balancer that anybody has switched off has noticed, S21 after a batch of
which nothing was kept there is a pause, S22 nothing of a pool is sent that the closed loop has
stopped, by whichever mgr.
"""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from mgr_stub.console.session import Session
from mgr_stub.monitor.mon_store import LoggedCommand

from .under_way import Outgoing

#: The first pause after a batch of which nothing was taken.
_PAUSE_SECONDS = 60.0
#: The first wait after a change was refused by an error.
_RETRY_SECONDS = 600.0
#: Of `ceph equilibrium …`: what makes everything worth asking again.
_ASKING = ("equilibrium on", "equilibrium off", "equilibrium execute", "equilibrium reset",
           "equilibrium undo", "equilibrium cancel", "equilibrium upmap cleanup",
           "equilibrium freeze")
_ON = "equilibrium on"
#: What switches the built-in balancer on and off.
_BUILTIN_ON, _BUILTIN_OFF = "sim balancer on", "sim balancer off"
#: Rounds of the module after which it has seen the built-in balancer at work.
_SEEN_ROUNDS = 2


class Answers:
    """S18, S20 and S21 of one run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: pgid → mgr and map, what was sent, when
        self._refused: Dict[str, Tuple[Any, LoggedCommand, Tuple[float, float]]] = {}
        self._batch: List[LoggedCommand] = []
        self._stopped: Set[int] = set()   # pools
        self._batch_at = (0.0, 0.0)       # of the clock that never jumps, and of the wall's
        self._switched_at: Optional[Tuple[float, float]] = None   # likewise
        self._builtin_since = session.clock.now   # on, if it is on at all

    def before(self, line: str) -> None:
        """A command line is about to be given."""
        words = line[len("ceph "):] if line.startswith("ceph ") else line
        if words.startswith(_ASKING):
            self._refused, self._batch, self._stopped = {}, [], set()
        module = self._session.module
        is_active = self._session.mgr.balancer.may_move_data
        if words == _BUILTIN_ON and not is_active:
            self._builtin_since = self._session.clock.now
        if is_active and module is not None and (
                words == _ON or words == _BUILTIN_OFF and self._has_been_seen(module)):
            self._switched_at = self._now()

    def _has_been_seen(self, module: Any) -> bool:
        """Has the built-in balancer been on for long enough for the module to know of it?"""
        return bool(self._session.clock.now - self._builtin_since
                    > _SEEN_ROUNDS * module.settings().sleep_interval)

    def observe(self) -> None:
        """After a round: which pools are stopped by now."""
        if self._session.module is not None:
            self._stopped.update(self._session.module.balancer.status.mispredicted)

    def judge(self, move: Outgoing) -> Iterator[Tuple[str, str]]:
        """(rule, what is wrong) with a move at its sending."""
        session, entry = self._session, move.entry
        if self._switched_at is not None and not move.moves_nothing:
            waited = self._since(self._switched_at)
            if waited < session.module.gateway.builtin_balancer_sleep():
                yield "S20", f"is sent {int(waited)} s after the built-in balancer was switched off"
        if self._batch and self._batch[0].sent_at != entry.sent_at:
            waited = self._since(self._batch_at)
            if all(map(_is_refused, self._batch)) and waited < _PAUSE_SECONDS:
                yield "S21", f"is sent {int(waited)} s after a batch of which nothing was taken"
            self._batch = []
        if move.pg.pool_id in self._stopped and not move.moves_nothing:
            yield "S22", "is sent although its pool has been stopped"
        self._note_refused()
        mark, last, sent_at = self._refused.get(move.pgid, (None, None, self._now()))
        may_be_tried = last is not None and last.returncode and (
            self._since(sent_at) >= _RETRY_SECONDS)
        if last is not None and mark == self._mark() and not may_be_tried:
            how = "refused" if last.returncode else "not kept"
            yield "S18", f"is sent again although it was {how} ({last.message})"
        if not self._batch:
            self._batch_at = self._now()
        self._batch.append(entry)
        self._refused[move.pgid] = self._mark(), entry, self._now()

    def _now(self) -> Tuple[float, float]:
        return self._session.clock.now, self._session.clock()

    def _since(self, moment: Tuple[float, float]) -> float:
        """Seconds; a clock that is set forward may end a wait."""
        return max(now - then for now, then in zip(self._now(), moment))

    def _note_refused(self) -> None:
        self._refused = {pgid: (mark, entry, at)
                         for pgid, (mark, entry, at) in self._refused.items()
                         if entry.returncode is None or _is_refused(entry)}

    def _mark(self) -> Tuple[Any, ...]:
        """Another one where the monitor may judge otherwise, or another mgr has begun."""
        osdmap = self._session.cluster.map
        return (self._session.mgr, self._session.cluster.crush,
                {osd: entry["weight"] for osd, entry in osdmap.osds.items()})


def _is_refused(entry: LoggedCommand) -> bool:
    """Did the monitor say no, or keep something else, at once and so that the mgr could know it?"""
    told: Optional[Tuple[int, str, str]] = entry.answer
    return ((bool(entry.returncode) or not entry.kept)
            and told is not None and entry.done_at == entry.sent_at)
