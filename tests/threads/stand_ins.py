"""What holds a thread of the module at a moment of the test's choosing."""
from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional, Set, Tuple

from mgr_stub.console.session import ThreadedSession
from mgr_stub.mgr.mgr_process import MgrDied
from tests.support.giving_way import give_way

_POLL_SECONDS = 0.002
#: The module's files in whose lines another thread may come in between.
FILES = ("/control/", "/execution/", "/observation/", "/gateway/", "/plan_service/",
         "/module.py", "/plan/store.py", "/runtime/kv_store.py")


class HeldPlanner:
    """Stands in for make_plan: while `held`, a plan waits until the module or the mgr ends it."""

    def __init__(self, make_plan: Callable[..., Any]) -> None:
        self._make_plan = make_plan
        self._open = threading.Event()
        self._open.set()
        self.session: Optional[ThreadedSession] = None
        self.plans = 0

    def hold(self) -> None:
        self._open.clear()

    def let_go(self) -> None:
        self._open.set()

    def __call__(self, snapshot: Any, options: Any) -> Any:
        self.plans += 1
        session = self.session
        if session is not None and not self._open.is_set():
            mgr = session.mgr
            with session.host.holding_job():
                while not self._open.wait(_POLL_SECONDS) and give_way():
                    if mgr.process.is_dead:
                        raise MgrDied("make_plan")
        return self._make_plan(snapshot, options)


class BetweenLines:
    """Does something in the middle of the serve thread's rounds, at the n-th line of the module.

    Each line of code counts once, so that what is done once is as likely as what is done often.
    """

    def __init__(self, session: ThreadedSession) -> None:
        self._session = session
        self._lines: Set[Tuple[Any, int]] = set()
        self._at = 0
        self._action: Optional[Callable[[], None]] = None
        self.where = ""

    def arm(self, at: int, action: Callable[[], None]) -> None:
        """From the next round on."""
        self._lines, self._at, self._action, self.where = set(), at, action, ""
        self._session.host.tracer = self._trace

    def disarm(self) -> int:
        """Returns how many lines were seen."""
        self._action, self._session.host.tracer = None, None
        return len(self._lines)

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if self._action is None or "equilibrium_mgr" not in name:
            return None
        return self._line if any(part in name for part in FILES) else None

    def _line(self, frame: Any, event: str, arg: Any) -> Any:
        if event == "line" and self._action is not None:
            self._lines.add((frame.f_code, frame.f_lineno))
            if len(self._lines) > self._at:
                action, self._action = self._action, None
                self.where = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
                sys.settrace(None)
                action()
        return self._line
