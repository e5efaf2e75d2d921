"""The history: a bounded list of finished episodes, the newest last."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping

from ..runtime.kv_store import MAX_LIST_BYTES

MOST_ENTRIES = 100


class History:
    """Entries are JSON-ready, see episode.Episode.entry."""

    def __init__(self) -> None:
        self.entries: List[Dict[str, Any]] = []

    def add(self, entry: Mapping[str, Any]) -> None:
        """Adds an entry; the oldest go where there are too many."""
        self.entries = (self.entries + [dict(entry)])[-MOST_ENTRIES:]
        while len(self.entries) > 1 and len(json.dumps(self.entries)) > MAX_LIST_BYTES:
            self.entries = self.entries[1:]

    def add_moves(self, started_at: float, moves: int, bytes_moved: int) -> bool:
        """Adds moves that were kept after the last entry was made; False where that entry is of
        another episode."""
        if not self.entries or self.entries[-1].get("started_at") != started_at:
            return False
        last = self.entries[-1]
        self.entries = self.entries[:-1] + [
            {**last, "moves": last.get("moves", 0) + moves,
             "bytes": last.get("bytes", 0) + bytes_moved}]
        return True

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form for the key-value store."""
        return {"entries": self.entries}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over what another mgr has stored, as far as it can be understood."""
        entries = dump.get("entries")
        if isinstance(entries, list):
            self.entries = [e for e in entries if isinstance(e, dict)][-MOST_ENTRIES:]
