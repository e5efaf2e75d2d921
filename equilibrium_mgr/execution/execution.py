"""One plan on its way into the cluster: what is still wanted, what went, what was dropped."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..gateway.gateway import UpmapReply
from ..plan.model import PgChange
from ..snapshot.model import Snapshot, shard_changes
from .batch_selection import Decision
from .stall import Stall

_KEPT_DROPS = 200
_MAX_ATTEMPTS = 3


class BatchResult(NamedTuple):
    """What became of a batch, seen in the osdmap that followed it."""

    kept: List[PgChange]
    rejected: List[Tuple[PgChange, str]]
    unanswered: List[PgChange]
    moving_shards: Dict[str, int]   # pgid → shards of a rejected change that move all the same
    superseded: List[PgChange]       # somebody else has set other items meanwhile


def verify_batch(answers: Sequence[UpmapReply], snapshot: Snapshot) -> BatchResult:
    """Holds the monitor's answers against the map: only what stands there was accepted."""
    result = BatchResult([], [], [], {}, [])
    for sent in answers:
        change = sent.change
        present = snapshot.upmap_items.get(change.pgid, ())
        if present == change.items:
            result.kept.append(change)
        elif sent.returncode is None:
            result.unanswered.append(change)
        elif sent.returncode != 0:
            result.rejected.append((change, f"the monitor refused it: {sent.message}"))
        elif not set(present) <= set(change.items):
            result.superseded.append(change)  # the monitor only ever shortens what it is sent
        else:
            moving = _shards_moving(snapshot, change)
            result.moving_shards[change.pgid] = moving
            result.rejected.append((change, "the monitor kept its upmap items only in part"
                                     if moving else "the monitor dropped its upmap items"))
    return result


def _shards_moving(snapshot: Snapshot, change: PgChange) -> int:
    """How many shards leave although the items that stand in the map are not those sent."""
    pg = snapshot.pgs.get(change.pgid)
    if pg is None or len(pg.up) != len(change.up_before):
        return 0
    erasure = snapshot.pools[pg.pool].erasure
    return min(change.shards, len(shard_changes(change.up_before, pg.up, erasure)[0]))


class ExecutionProgress(NamedTuple):
    """A walk's figures at one moment, for those who must not read what the loop changes."""

    name: str                # of its plan; empty for automatic balancing
    summary: Dict[str, Any]  # JSON-ready, see Walk.summary; not to be changed
    eta_seconds: Optional[float]   # until it is through, at the rate seen so far; None: unknown


class Execution:
    """The progress of one plan. An empty name stands for automatic balancing."""

    def __init__(self, name: str, changes: Sequence[PgChange], started_at: float) -> None:
        self.name = name
        self.started_at = started_at
        self.wanted: List[PgChange] = list(changes)   # replaced whole: commands read it
        self.planned_moves = sum(change.shards for change in changes)
        self.planned_bytes = sum(change.shards * change.shard_bytes for change in changes)
        self.sent_moves = 0
        self.sent_bytes = 0
        self.done_moves = 0       # found in place without sending
        self.dropped_moves = 0
        self.dropped: List[Tuple[str, str]] = []   # (pgid, reason), the first of them
        self.unanswered: Dict[str, int] = {}       # pgid → attempts without an answer
        self.is_noted = False     # whether an episode counts it
        self.stall = Stall()      # used by the serve thread alone, as is `moved`
        self.moved: Dict[int, int] = {}   # OSD → bytes that our changes have brought or taken

    def note(self, decision: Decision) -> None:
        """Takes in a decision; what it sends stays wanted until `settle`."""
        kept = {change.pgid for change in decision.send}
        kept.update(change.pgid for change in decision.later)
        self.wanted = [change for change in self.wanted if change.pgid in kept]
        self.done_moves += sum(change.shards for change in decision.done)
        for change in decision.done:
            self._count_moved(change)
        self.drop(decision.dropped)

    def settle(self, result: BatchResult) -> None:
        """Takes in what became of the batch."""
        self._forget(change.pgid for change in result.kept)
        for change in result.kept:
            self._count_sent(change, change.shards)
            self._count_moved(change)
        for change, _ in result.rejected:
            self._count_sent(change, result.moving_shards.get(change.pgid, 0))
        self.drop(result.rejected, result.moving_shards)
        self.drop([(change, "somebody else has set other upmap items")
                   for change in result.superseded])
        self.note_unanswered(result.unanswered)
        self.drop([(change, f"no answer from the monitor in {_MAX_ATTEMPTS} attempts")
                   for change in result.unanswered
                   if self.unanswered[change.pgid] >= _MAX_ATTEMPTS])

    def note_unanswered(self, changes: Iterable[PgChange]) -> None:
        """What became of these is not known yet."""
        for change in changes:
            self.unanswered[change.pgid] = self.unanswered.get(change.pgid, 0) + 1

    def drop(self, given_up: Sequence[Tuple[PgChange, str]],
             moving_shards: Mapping[str, int] = {}) -> None:
        """Gives changes up, each for its reason; `moving_shards` (pgid → shards) move all the same.

        Takes them all at once: one pass over a plan of 66,000 changes is cheap, one a change is
        not.
        """
        self._forget(change.pgid for change, _ in given_up)
        for change, reason in given_up:
            self.dropped_moves += change.shards - moving_shards.get(change.pgid, 0)
            if len(self.dropped) < _KEPT_DROPS:
                self.dropped.append((change.pgid, reason))

    def _forget(self, pgids: Iterable[str]) -> None:
        gone = frozenset(pgids)
        if gone:
            self.wanted = [change for change in self.wanted if change.pgid not in gone]

    def _count_sent(self, change: PgChange, shards: int) -> None:
        self.sent_moves += shards
        self.sent_bytes += shards * change.shard_bytes

    def _count_moved(self, change: PgChange) -> None:
        for osd in set(change.up_before) ^ set(change.up_after):
            self.moved[osd] = self.moved.get(osd, 0) + change.shard_bytes

    @property
    def remaining_moves(self) -> int:
        return sum(change.shards for change in self.wanted)

    @property
    def remaining_bytes(self) -> int:
        return sum(change.shards * change.shard_bytes for change in self.wanted)

    def progress(self, decision: Decision) -> str:
        """One sentence after a batch was sent; tells which change is above a limit."""
        said = f"{self.sent_moves} of {self.planned_moves} moves sent"
        if decision.above_limit:
            said += f"; pg {decision.above_limit} alone is above the misplaced limit"
        if decision.above_share:
            said += f"; pg {decision.above_share} alone is above max_transit_ratio"
        return said

    def eta_seconds(self, bytes_to_come: int, now: float) -> Optional[float]:
        """Seconds until it is through, at the rate so far; None where none has arrived.
        `bytes_to_come` are those of what was sent."""
        arrived = self.sent_bytes - bytes_to_come
        if arrived <= 0:
            return None
        elapsed = max(1.0, now - self.started_at)
        return (self.remaining_bytes + bytes_to_come) * elapsed / arrived

    def summary(self) -> Dict[str, Any]:
        """JSON-ready figures for `status`."""
        return {
            "plan": self.name or "automatic", "started_at": self.started_at,
            "planned_moves": self.planned_moves, "planned_bytes": self.planned_bytes,
            "sent_moves": self.sent_moves, "sent_bytes": self.sent_bytes,
            "done_moves": self.done_moves, "dropped_moves": self.dropped_moves,
            "remaining_moves": self.remaining_moves, "remaining_bytes": self.remaining_bytes,
            "dropped": [{"pgid": pgid, "reason": reason} for pgid, reason in self.dropped]}
