"""The history: a bounded list of ended episodes, the newest last; and totals of all of them."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple

from ...runtime.kv_store import MAX_LIST_BYTES
from .outcomes import OUTCOMES, outcome_code

MOST_ENTRIES = 100


class History:
    """Entries are JSON-ready, see episode.Episode.entry."""

    def __init__(self) -> None:
        self.entries: List[Dict[str, Any]] = []

    def add(self, entry: Mapping[str, Any]) -> None:
        """Adds an entry; the oldest go where there are too many."""
        self.entries = (self.entries + [dict(entry)])[-MOST_ENTRIES:]
        while len(self.entries) > 1 and len(json.dumps(self.to_dict())) > MAX_LIST_BYTES:
            self.entries = self.entries[1:]

    def has(self, started_at: float) -> bool:
        """True where the last entry is of the episode that began then."""
        return bool(self.entries) and self.entries[-1].get("started_at") == started_at

    def add_moves(self, started_at: float, moves: int, bytes_moved: int) -> bool:
        """Adds moves that were kept after the last entry was made; False where that entry is of
        another episode."""
        if not self.has(started_at):
            return False
        last = self.entries[-1]
        self.entries = self.entries[:-1] + [{**last, "moves": last["moves"] + moves,
                                             "bytes": last["bytes"] + bytes_moved}]
        return True

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form for the key-value store."""
        return {"entries": self.entries}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over what another mgr has stored, as far as it can be understood."""
        entries = dump.get("entries")
        if isinstance(entries, list):
            self.entries = [e for e in entries if isinstance(e, dict)][-MOST_ENTRIES:]


class Totals(NamedTuple):
    """Since the module first ran on the cluster: what the monitors have accepted, and how episodes
    have ended. No field ever falls."""

    moves: int = 0   # of shards
    bytes: int = 0   # of those shards
    episodes: Mapping[str, int] = {}   # by one of OUTCOMES

    def with_moves(self, moves: int, bytes_moved: int) -> Totals:
        """The totals after a batch."""
        return self._replace(moves=self.moves + moves, bytes=self.bytes + bytes_moved)

    def with_episode(self, outcome: str) -> Totals:
        """The totals after an episode that has ended so; `outcome` is in words."""
        code = outcome_code(outcome)
        return self._replace(episodes={**self.episodes, code: self.episodes.get(code, 0) + 1})

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form for the key-value store."""
        return {"moves": self.moves, "bytes": self.bytes, "episodes": dict(self.episodes)}


def totals_from_dict(dump: Mapping[str, Any]) -> Totals:
    """What another mgr has stored; what cannot be understood counts from 0."""
    episodes = dump.get("episodes")
    counts = episodes if isinstance(episodes, dict) else {}
    return Totals(_count(dump.get("moves")), _count(dump.get("bytes")),
                  {code: _count(counts[code]) for code in OUTCOMES if code in counts})


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
