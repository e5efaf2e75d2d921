"""The mgr's key-value store: its type, and a buffer of versioned values of limited size.

The monitor silently drops a value above its limit, while the mgr's own cache still shows it. A
value that is too large is lost at the next failover. So the buffer never writes one.

Every write waits for a monitor. So the balancing loop only puts values during a round. It writes
them before a batch and at the end of the round, if they differ from the stored ones.
"""
from __future__ import annotations

import base64
import json
import logging
import zlib
from typing import Any, Dict, List, Mapping, Optional, Protocol, Union


#: The limit of the monitor, in bytes of UTF-8 (mon_config_key_max_entry_size).
MAX_VALUE_BYTES = 65_536
#: The limit of one part of a packed plan.
MAX_PART_BYTES = 60_000
#: The limit of the JSON of a list whose oldest entries are dropped if it grows too long. The stored
#: value has other fields and the version in addition.
MAX_LIST_BYTES = 50_000


class KeyValueStore(Protocol):
    """The part of MgrModule that keeps values across mgrs. A write waits for the monitors."""

    def get_store(self, key: str, /) -> Optional[str]:
        """Returns the value of a key, or None."""

    def set_store(self, key: str, val: Optional[str], /) -> None:
        """Writes a value, or deletes the key with None. Waits for the monitors."""

    def get_store_prefix(self, key_prefix: str, /) -> Dict[str, str]:
        """Returns key → value of all keys that begin with a prefix."""


EXECUTION, EPISODE, HISTORY, MEASURED, CHANGES, DRAINS, LOADS = (
    "execution", "episode", "history", "measured", "changes", "drains", "loads")
_VERSION = 1
_LARGEST = 2.0 ** 63


def _number(text: str) -> Union[int, float, None]:
    """Returns a stored number; None if it is larger than any that the module writes.

    Code that reads the value may convert such a number, which can raise OverflowError.
    """
    value = float(text)
    if not -_LARGEST < value < _LARGEST:
        return None
    return value if "." in text or "e" in text.lower() else int(text)


def packed(value: Any) -> str:
    """Returns a JSON-ready value as a short text."""
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def unpacked(text: str, most_bytes: int) -> str:
    """Returns the JSON of a text of `packed`, at most `most_bytes`. Raises ValueError or zlib.error
    for other texts."""
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(base64.b64decode(text.encode()), most_bytes)
    if not unpacker.eof:
        raise zlib.error("it is cut off or far too large")
    return plain.decode()


class BufferedKvStore:
    """Reads and writes JSON values by key. Not thread-safe: its owner holds a lock."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger) -> None:
        self._kv = kv
        self._log = log
        self._stored: Dict[str, Optional[str]] = {}
        self._pending: Dict[str, Optional[str]] = {}

    def read(self, key: str) -> Optional[Mapping[str, Any]]:
        """Returns the stored value; None without one, or if this version cannot read it."""
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
        """Returns the stored keys that begin with a prefix."""
        return list(self._kv.get_store_prefix(prefix))

    def put(self, key: str, value: Optional[Mapping[str, Any]]) -> None:
        """Sets the value that `flush` writes; None deletes the key. A value that is too large is
        logged and not written."""
        if value is None:
            self._pending[key] = None
            return
        text = json.dumps({"version": _VERSION, **value}, separators=(",", ":"), sort_keys=True)
        size = len(text.encode())
        if size > MAX_VALUE_BYTES:
            self._log.error("'%s' has grown to %d bytes and is not kept", key, size)
            return
        self._pending[key] = text

    def write(self, key: str, value: Optional[Mapping[str, Any]]) -> None:
        """Writes a value at once, and all values from `put`. If that raises, `flush` writes the
        values from `put` later, but not this one."""
        before = dict(self._pending)
        try:
            self.put(key, value)
            self.flush()
        except BaseException:
            self._pending = before
            raise

    def flush(self) -> None:
        """Writes the values from `put` that differ from the stored ones."""
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
