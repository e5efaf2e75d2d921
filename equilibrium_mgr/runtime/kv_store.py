"""The mgr's key-value store as a type, and how large its values may be.

The monitor silently drops a value above its limit while the mgr's own cache still shows it: a value
that is too large is lost at the next failover.
"""
from __future__ import annotations

from typing import Dict, Optional, Protocol

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
