"""Stores of the simulated monitor besides the osdmap: key-value pairs and configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Optional

#: A larger config-key value is rejected (mon_config_key_max_entry_size).
MAX_VALUE_BYTES = 65536


@dataclass
class MonStore:
    """Survives a failover of the mgr. `config` holds {`who/name`: value as text}."""

    keys: Dict[str, str] = field(default_factory=dict)
    config: Dict[str, str] = field(default_factory=dict)

    def set_key(self, key: str, value: Optional[str]) -> bool:
        """Stores or (None) removes a value; False, with the old one kept, if it is too large."""
        if value is None:
            self.keys.pop(key, None)
            return True
        if len(value.encode()) > MAX_VALUE_BYTES:
            return False
        self.keys[key] = value
        return True


class StoreCache:
    """The mgr's cache of its modules' keys, loaded once and never updated from the monitor.

    As in Ceph a value that the monitor rejects stays readable here until the next failover.
    """

    def __init__(self, store: MonStore, module_name: str) -> None:
        self._store = store
        self._prefix = f"mgr/{module_name}/"
        self._values = {key[len(self._prefix):]: value for key, value in store.keys.items()
                        if key.startswith(self._prefix)}
        #: Number of writes sent to the monitor, rejected ones included.
        self.writes = 0
        #: Writes that wait for a connection to the monitor; lost if the mgr dies before.
        self._waiting: Optional[Dict[str, Optional[str]]] = None

    def set_connected(self, connected: bool) -> None:
        """Sends the waiting writes (True), or makes later writes wait (False)."""
        waiting = self._waiting or {}
        self._waiting = None if connected else waiting
        for key, value in waiting.items() if connected else ():
            self._store.set_key(self._prefix + key, value)

    def get(self, key: str) -> Optional[str]:
        return self._values.get(key)

    def with_prefix(self, prefix: str) -> Dict[str, str]:
        return {key: self._values[key] for key in sorted(self._values) if key.startswith(prefix)}

    def set(self, key: str, value: Optional[str]) -> None:
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        self.writes += 1
        if self._waiting is None:
            self._store.set_key(self._prefix + key, value)
        else:
            self._waiting[key] = value
