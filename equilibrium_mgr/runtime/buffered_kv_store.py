"""The executor's values in the mgr's key-value store: versioned, bounded, read with tolerance.

Every write waits for a monitor, so values are noted during a round and written at its end, each
once and only where it differs from what stands there. The monitor silently drops values above
65,536 bytes while the mgr's own cache still shows them: such a one is never sent.
"""
from __future__ import annotations

import json
import logging
from typing import Any, Dict, Mapping, Optional

from .kv_store import MAX_VALUE_BYTES, KeyValueStore

EXECUTION, EPISODE, REJECTED, HISTORY, COOLDOWN, MEASURED = (
    "execution", "episode", "rejected", "history", "cooldown", "measured")
_VERSION = 1


class BufferedKvStore:
    """`kv` offers the mgr's get_store and set_store. Its owner sees to it that one thread at a
    time uses it."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger) -> None:
        self._kv = kv
        self._log = log
        self._stored: Dict[str, Optional[str]] = {}
        self._pending: Dict[str, Optional[str]] = {}

    def read(self, key: str) -> Optional[Mapping[str, Any]]:
        """What the last mgr noted; None where there is nothing, or nothing that can be read."""
        stored = self._kv.get_store(key)
        self._stored[key] = stored
        if not stored:
            return None
        try:
            value = json.loads(stored)
            if not isinstance(value, dict) or int(value.get("version", 0)) > _VERSION:
                raise ValueError("another version wrote it")
            return value
        except (ValueError, TypeError, RecursionError) as error:
            self._log.warning("what was kept as '%s' cannot be read: %s", key, error)
            return None

    def put(self, key: str, value: Optional[Mapping[str, Any]]) -> None:
        """What shall stand in the store after this round; None for nothing."""
        if value is None:
            self._pending[key] = None
            return
        text = json.dumps({"version": _VERSION, **value}, separators=(",", ":"), sort_keys=True)
        if len(text.encode()) > MAX_VALUE_BYTES:
            self._log.error("'%s' has grown to %d bytes and is not kept", key, len(text.encode()))
            return
        self._pending[key] = text

    def flush(self) -> None:
        """Brings the store in line; costs nothing where nothing has changed."""
        while self._pending:
            key = next(iter(self._pending))
            text = self._pending.pop(key)
            if key in self._stored and self._stored[key] == text:
                continue
            try:
                self._kv.set_store(key, text)
            except BaseException:
                self._pending.setdefault(key, text)  # for the next attempt
                raise
            self._stored[key] = text
