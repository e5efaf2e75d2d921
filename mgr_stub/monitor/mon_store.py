"""Stores of the simulated monitor besides the osdmap: key-value pairs and configuration.

Injected faults between a mgr and the monitor, and the log of commands.
"""
from __future__ import annotations

import errno
import random
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from ..errors import Answer


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
        if not connected:
            self._waiting = waiting
            return
        self._waiting = None
        for key, value in waiting.items():
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


@dataclass
class MonFaults:
    """Faults of the monitor towards mgrs; commands of operators are not affected."""

    rng: random.Random
    #: Seconds between a command and its epoch.
    delay: float = 0.0
    #: Share of the commands that are rejected.
    reject_ratio: float = 0.0
    #: Share of the commands that are carried out but answered by an error, or never.
    lose_ratio: float = 0.0
    #: Share of the PGs whose upmap items are dropped although the answer is 0, as if the monitor's
    #: own check of a rule removed them; always the same PGs.
    drop_ratio: float = 0.0
    connected: bool = True

    def rejection(self) -> Optional[Answer]:
        """Returns the error that answers the next command, or None if it is not rejected."""
        if self.reject_ratio <= 0 or self.rng.random() >= self.reject_ratio:
            return None
        code = self.rng.choice((errno.EINVAL, errno.EPERM))
        return -code, "", "refused by the simulation"

    def drops(self, pgid: str) -> bool:
        """Returns True if upmap items that a mgr sends for a PG are dropped."""
        return self.drop_ratio > 0 and random.Random(f"drop/{pgid}").random() < self.drop_ratio

    def loses(self) -> bool:
        """Returns True if the answer to the next command is lost."""
        return self.lose_ratio > 0 and self.rng.random() < self.lose_ratio

    def lost_answer(self) -> Optional[Answer]:
        """Returns the error in place of a lost answer; None if no answer ever comes."""
        if self.rng.random() < 0.5:
            return None
        return -errno.ETIMEDOUT, "", "the answer was lost by the simulation"


@dataclass
class LoggedCommand:
    """A command that the monitor has been sent, and its result."""

    #: Monotonic virtual times at which it was sent and carried out.
    sent_at: float
    sender: str
    command: Dict[str, Any]
    done_at: Optional[float] = None
    #: None while it waits for its epoch.
    returncode: Optional[int] = None
    message: str = ""
    #: The epoch that it is part of.
    epoch: int = 0
    #: True if the map of that epoch had the upmap items as sent.
    kept: bool = True
    #: The answer that the sender got, if any; not always the result.
    answer: Optional[Answer] = field(default=None)

    @property
    def prefix(self) -> str:
        return str(self.command.get("prefix", ""))
