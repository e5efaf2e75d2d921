"""What the monitor has answered, and what the built-in balancer may still be doing.

S18 what was not kept is not sent again while the map is the same in what matters, for an hour the
first time and twice as long each further time, nor what was refused by an error within ten minutes;
a twelfth of that where an OSD is too full. S20 nothing is sent before a built-in balancer that
anybody has switched off has noticed, S21 after a batch of which nothing was kept there is a pause,
S22 nothing of a pool is sent for an hour that the closed loop has stopped, by whichever mgr, but
off an OSD that is too full.
"""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from mgr_stub.console.session import Session
from mgr_stub.crush.hashes import NONE
from mgr_stub.monitor.mon_store import LoggedCommand

from .moment import Moment
from .under_way import Outgoing

#: The first pause after a batch of which nothing was taken.
_PAUSE_SECONDS = 60.0
#: The first wait after a change was refused by an error.
_RETRY_SECONDS = 600.0
#: The first wait after its items were dropped, and after its pool was stopped; the longest.
_FIRST_SECONDS, _LONGEST_SECONDS = 3600.0, 86_400.0
#: A plan that was made while an OSD was too full goes on for so long, in seconds.
_PLAN_SECONDS = 1800.0
_URGENT_DIVISOR = 12.0
#: Of `ceph equilibrium …`: what makes everything worth asking again.
_ASKING = ("equilibrium on", "equilibrium off", "equilibrium execute", "equilibrium reset",
           "equilibrium undo", "equilibrium cancel", "equilibrium freeze")
_ON = "equilibrium on"
#: What switches the built-in balancer on and off.
_BUILTIN_ON, _BUILTIN_OFF = "sim balancer on", "sim balancer off"
#: Rounds of the module after which it has seen the built-in balancer at work.
_SEEN_ROUNDS = 2


class Answers:
    """S18, S20 and S21 of one run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: pgid → mgr and map, what was sent, when, how often it was dropped
        self._refused: Dict[str, Tuple[Any, LoggedCommand, Tuple[float, float], int]] = {}
        self._batch: List[LoggedCommand] = []
        self._stopped: Dict[int, Tuple[float, float]] = {}   # pool → since when
        self._full_at: Dict[int, float] = {}   # OSD → when it was last above backfillfull
        self._batch_at = (0.0, 0.0)       # of the clock that never jumps, and of the wall's
        self._switched_at: Optional[Tuple[float, float]] = None   # likewise
        self._builtin_since = session.clock.now   # on, if it is on at all

    def before(self, line: str) -> None:
        """A command line is about to be given."""
        words = line.removeprefix("ceph ")
        if words.startswith(_ASKING):
            self._refused, self._batch, self._stopped = {}, [], {}
        module = self._session.module
        is_active = self._session.mgr.balancer.may_move_data
        if words == _BUILTIN_ON and not is_active:
            self._builtin_since = self._session.clock.now
        if not is_active or module is None:
            return
        if words == _ON or words == _BUILTIN_OFF and self._has_been_seen(module):
            self._switched_at = self._now()

    def _has_been_seen(self, module: Any) -> bool:
        """Has the built-in balancer been on for long enough for the module to know of it?"""
        return bool(self._session.clock.now - self._builtin_since
                    > _SEEN_ROUNDS * module.settings().sleep_interval)

    def observe(self) -> None:
        """After a round: which pools are stopped by now."""
        cluster, now = self._session.cluster, self._session.clock.now
        ratio = cluster.map.ratio("backfillfull_ratio")
        self._full_at.update({osd: now for osd, usage in cluster.usage.items()
                              if usage.utilization >= ratio})
        if self._session.module is not None:
            for pool in self._session.module.balancer.status.mispredicted:
                self._stopped.setdefault(pool, self._now())

    def judge(self, moment: Moment, move: Outgoing) -> Iterator[Tuple[str, str]]:
        """(rule, what is wrong) with a move at its sending."""
        session, entry, is_urgent = self._session, move.entry, False
        for osd in {*moment.cluster.map.up.get(move.pgid, ()), *move.losses} - {NONE}:
            full_at = self._full_at.get(osd, float("-inf"))
            if moment.needs_space(osd) or session.clock.now - full_at < _PLAN_SECONDS:
                is_urgent = True
        if self._switched_at is not None and not move.moves_nothing:
            waited = self._since(self._switched_at)
            if waited < session.module.gateway.builtin_balancer_sleep():
                yield "S20", f"is sent {int(waited)} s after the built-in balancer was switched off"
        if self._batch and self._batch[0].sent_at != entry.sent_at:
            waited = self._since(self._batch_at)
            if all(map(_is_refused, self._batch)) and waited < _PAUSE_SECONDS:
                yield "S21", f"is sent {int(waited)} s after a batch of which nothing was taken"
            self._batch = []
        stopped_at = self._stopped.get(move.pg.pool_id, (float("-inf"),) * 2)
        is_stopped = self._since(stopped_at) < _FIRST_SECONDS
        if is_stopped and not move.moves_nothing and not is_urgent:
            yield "S22", "is sent although its pool has been stopped"
        self._note_refused()
        mark, tries = self._mark(), 0
        if move.pgid in self._refused and self._refused[move.pgid][0] == mark:
            _, last, sent_at, tries = self._refused[move.pgid]
            how, least = "not kept", min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (tries - 1))
            if last.returncode:
                how, least = "refused", _RETRY_SECONDS
            if is_urgent:
                least /= _URGENT_DIVISOR
            waited = self._since(sent_at)
            if waited < least:
                yield "S18", (f"is sent again after {int(waited)} s although it was {how} {tries}"
                              f" times ({last.message})")
        if not self._batch:
            self._batch_at = self._now()
        self._batch.append(entry)
        self._refused[move.pgid] = mark, entry, self._now(), 1 + tries

    def _now(self) -> Tuple[float, float]:
        return self._session.clock.now, self._session.clock()

    def _since(self, moment: Tuple[float, float]) -> float:
        """Seconds; a clock that is set forward may end a wait."""
        return max(now - then for now, then in zip(self._now(), moment))

    def _note_refused(self) -> None:
        self._refused = {pgid: told for pgid, told in self._refused.items()
                         if told[1].returncode is None or _is_refused(told[1])}

    def _mark(self) -> Tuple[Any, ...]:
        """Another one where the monitor may judge otherwise, or another mgr has begun."""
        osdmap = self._session.cluster.map
        return (self._session.mgr, self._session.cluster.crush,
                {osd: entry["weight"] for osd, entry in osdmap.osds.items()})


def _is_refused(entry: LoggedCommand) -> bool:
    """Did the monitor say no, or keep something else, at once and so that the mgr could know it?"""
    if entry.answer is None or entry.done_at != entry.sent_at:
        return False
    return bool(entry.returncode) or not entry.kept
