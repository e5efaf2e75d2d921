"""What must outlive the process, and the account of what was done.

The monitor's key-value store holds: which named plan is being executed, the episode, what the
monitor rejected, what was moved a short while ago, and the history.
"""
from __future__ import annotations

import logging
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..planner.plan import PgChange, Usage
from .cooldown import MOST_PGS, Cooldown
from .episode import Episode, begin, episode_from_dict
from .history import History
from .memory import COOLDOWN, EPISODE, EXECUTION, HISTORY, REJECTED, Memory
from .rejections import Items, from_dict, to_dict


class Recalled(NamedTuple):
    """What the last mgr left behind."""

    plan: Optional[str]          # a named plan whose execution was under way
    rejected: Items
    sending: Dict[str, float]    # pgid → when its upmap items were sent, or about to be


class Logbook:
    """Used by the serve thread alone; `write` belongs at the end of a round."""

    def __init__(self, kv: Any, log: logging.Logger) -> None:
        self._memory = Memory(kv, log)
        self._log = log
        self._rejected: Items = {}
        self.history = History()
        self.episode: Optional[Episode] = None

    def recall(self, cooldown: Cooldown, now: float) -> Recalled:
        """Reads everything, once; what cannot be read counts as not there."""
        execution = self._memory.recall(EXECUTION)
        plan = execution.get("plan") if execution is not None else None
        self.history.take(self._memory.recall(HISTORY) or {})
        episode = self._memory.recall(EPISODE)
        self.episode = episode_from_dict(episode) if episode is not None else None
        self._rejected = from_dict(self._memory.recall(REJECTED) or {})
        moved = self._memory.recall(COOLDOWN) or {}
        cooldown.take(moved)
        at, sending = moved.get("sending_at"), moved.get("sending")
        if not isinstance(at, (int, float)) or not isinstance(sending, list):
            at, sending = now, []
        if self.episode is not None and self.episode.plan != (plan or ""):
            self.end("given up with the last mgr", now, None)
        return Recalled(plan if isinstance(plan, str) else None, self._rejected,
                        {str(pgid): min(float(at), now) for pgid in sending})

    # -- the episode ---------------------------------------------------------------------------

    def take_up(self, plan: str, why: str, now: float, usage: Optional[Usage]) -> None:
        """A plan begins; automatic ones follow one another in one episode."""
        if self.episode is not None and (plan or self.episode.plan != plan):
            self.end("given up for another plan", now, usage)
        episode = self.episode or begin(plan, why, now, usage)
        self.episode = episode.with_plan()

    def end(self, outcome: str, now: float, usage: Optional[Usage]) -> None:
        """The episode becomes an entry of the history."""
        if self.episode is not None:
            self.history.add(self.episode.entry(outcome, now, usage))
            self._memory.note(HISTORY, self.history.to_dict())
            self._memory.note(EPISODE, None)
            self.episode = None

    def end_of(self, plan: str, outcome: str, now: float, usage: Optional[Usage]) -> None:
        """Ends the episode if it is that of the plan."""
        if self.episode is not None and self.episode.plan == plan:
            self.end(outcome, now, usage)

    # -- notes ---------------------------------------------------------------------------------

    def executing(self, plan: Optional[str]) -> None:
        """The named plan that a successor shall go on with; None for none."""
        self._memory.note(EXECUTION, None if plan is None else {"plan": plan})

    def sending(self, batch: Sequence[PgChange], cooldown: Cooldown, now: float) -> None:
        """Before a batch is sent: a successor must know what may be on its way unseen."""
        pgids: List[str] = [change.pgid for change in batch]
        self._memory.note(COOLDOWN, dict(cooldown.to_dict(), sending_at=int(now),
                                         sending=pgids[:MOST_PGS // 2]))
        self._memory.write()

    def sent(self, moves: int, bytes_moved: int) -> None:
        """After a batch: so much of it was kept."""
        if self.episode is not None and moves:
            self.episode = self.episode.with_moves(moves, bytes_moved)

    def rejected(self, items: Items) -> None:
        if items != self._rejected:
            self._rejected = items
            self._memory.note(REJECTED, to_dict(items) if items else None)

    def write(self) -> None:
        """Once at the end of a round; nothing is written where nothing has changed."""
        if self.episode is not None:
            self._memory.note(EPISODE, self.episode._asdict())
        self._memory.write()
