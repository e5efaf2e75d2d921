"""Which plan is being executed, kept in the key-value store for the mgr that comes next."""
from __future__ import annotations

import json
from typing import Any, Optional

_KEY = "execution"
_VERSION = 1


class ExecutionMemory:
    """Written when it changes only: every write waits for a monitor."""

    def __init__(self, kv: Any) -> None:
        self._kv = kv
        self._noted: Optional[str] = None

    def note(self, plan: Optional[str]) -> None:
        """Brings the store in line with what is being executed; None for nothing."""
        if plan == self._noted:
            return
        value = None if plan is None else json.dumps({"version": _VERSION, "plan": plan})
        self._kv.set_store(_KEY, value)
        self._noted = plan

    def recall(self) -> Optional[str]:
        """The plan that the last mgr was executing. Raises ValueError for a note that says none."""
        stored = self._kv.get_store(_KEY)
        if not stored:
            return None
        self._noted = ""  # whatever it says, it is there and may have to go
        try:
            return str(json.loads(stored)["plan"])
        except (ValueError, KeyError, TypeError):
            raise ValueError("the note of a running execution cannot be read")
