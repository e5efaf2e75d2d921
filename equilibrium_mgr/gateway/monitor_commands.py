"""Commands to the monitors: sent at once, their replies awaited together."""
from __future__ import annotations

import json
import time
from typing import Any, Callable, List, Mapping, Sequence

from mgr_module import CommandResult

from ..runtime.work_counters import WorkCounters
from .mgr_api import MgrApi, MonReply


class MonitorCommands:
    """Any thread may send and wait. `monotonic` returns seconds that never go back."""

    def __init__(self, mgr: MgrApi, counters: WorkCounters,
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._mgr = mgr
        self._counters = counters
        self._monotonic = monotonic

    def send(self, command: Mapping[str, Any]) -> MonReply:
        """Hands a command to the mgr, which sends it; waits for nothing."""
        reply: MonReply = CommandResult("")
        self._counters.add("mon_commands")
        self._mgr.send_command(reply, "mon", "", json.dumps(command), "")
        return reply

    def wait(self, replies: Sequence[MonReply], timeout: float) -> List[bool]:
        """Returns, for each reply, whether it has come, after at most `timeout` seconds in all."""
        deadline = self._monotonic() + timeout
        return [reply.ev.wait(max(0.0, deadline - self._monotonic())) for reply in replies]
