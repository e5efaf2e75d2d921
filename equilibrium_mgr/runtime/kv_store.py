"""The mgr's key-value store as a type, and how large its values may be.

The monitor silently drops a value above its limit while the mgr's own cache still shows it: a value
that is too large is lost at the next failover.

Values of the balancing loop in the mgr's key-value store: versioned and limited in size.

Every write waits for a monitor, so values are put during a round and written at its end, each once
and only where it differs from the stored one. A value above the store's limit is never written.
"""
from __future__ import annotations

import base64
import json
import logging
import zlib
from typing import Any, Dict, List, Mapping, Optional, Protocol, Union


#: The limit of the monitor, in bytes of UTF-8 (mon_config_key_max_entry_size).
MAX_VALUE_BYTES = 65_536
#: Of one part of a packed plan.
MAX_PART_BYTES = 60_000
#: Of the JSON of a list that is cut where it grows too long. The key's other fields and the version
#: that is written with it stand in the same value.
MAX_LIST_BYTES = 50_000


class KeyValueStore(Protocol):
    """The part of MgrModule that keeps values across mgrs. A write waits for the monitors."""

    def get_store(self, key: str, /) -> Optional[str]:
        """The value of a key; None where there is none."""

    def set_store(self, key: str, val: Optional[str], /) -> None:
        """Writes a value, or deletes the key with None; returns when the monitors have it."""

    def get_store_prefix(self, key_prefix: str, /) -> Dict[str, str]:
        """Key → value of all keys that begin with a prefix."""


EXECUTION, EPISODE, HISTORY, MEASURED, CHANGES, DRAINS = (
    "execution", "episode", "history", "measured", "changes", "drains")
_VERSION = 1
_LARGEST = 2.0 ** 63


def _number(text: str) -> Union[int, float, None]:
    """A stored number; None for one that is larger than any that is written: to convert it would
    raise OverflowError."""
    value = float(text)
    if not -_LARGEST < value < _LARGEST:
        return None
    return value if "." in text or "e" in text.lower() else int(text)


def packed(value: Any) -> str:
    """A JSON-ready value as a short text."""
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def unpacked(text: str, most_bytes: int) -> str:
    """The JSON of `packed`, of so many bytes at most. Raises ValueError or zlib.error for what is
    none."""
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(base64.b64decode(text.encode()), most_bytes)
    if not unpacker.eof:
        raise zlib.error("it is cut off or far too large")
    return plain.decode()


class BufferedKvStore:
    """JSON values by key. Not thread-safe: its owner holds a lock."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger) -> None:
        self._kv = kv
        self._log = log
        self._stored: Dict[str, Optional[str]] = {}
        self._pending: Dict[str, Optional[str]] = {}

    def read(self, key: str) -> Optional[Mapping[str, Any]]:
        """The stored value; None where there is none, or none that this version can read."""
        stored = self._kv.get_store(key)
        self._stored[key] = stored
        if not stored:
            return None
        try:
            value = json.loads(stored, parse_constant=lambda name: None, parse_float=_number,
                               parse_int=_number)
            if not isinstance(value, dict) or value.get("version") != _VERSION:
                raise ValueError("it is of another version")
            return value
        except (ValueError, TypeError, RecursionError) as error:
            self._log.warning("what was kept as '%s' cannot be read: %s", key, error)
            return None

    def keys(self, prefix: str) -> List[str]:
        """The stored keys that begin with a prefix."""
        return list(self._kv.get_store_prefix(prefix))

    def put(self, key: str, value: Optional[Mapping[str, Any]]) -> None:
        """Sets the value that `flush` writes; None deletes the key. Logs one that is too large."""
        if value is None:
            self._pending[key] = None
            return
        text = json.dumps({"version": _VERSION, **value}, separators=(",", ":"), sort_keys=True)
        if len(text.encode()) > MAX_VALUE_BYTES:
            self._log.error("'%s' has grown to %d bytes and is not kept", key, len(text.encode()))
            return
        self._pending[key] = text

    def write(self, key: str, value: Optional[Mapping[str, Any]]) -> None:
        """Writes a value at once. Where that raises, the value that was put before it stays."""
        before = dict(self._pending)
        try:
            self.put(key, value)
            self.flush()
        except BaseException:
            self._pending = before
            raise

    def flush(self) -> None:
        """Writes what was put and differs from the stored value."""
        while self._pending:
            key = next(iter(self._pending))
            text = self._pending.pop(key)
            if key in self._stored and self._stored[key] == text:
                continue
            try:
                self._kv.set_store(key, text)
            except BaseException:
                self._pending.setdefault(key, text)  # for the next flush
                raise
            self._stored[key] = text
