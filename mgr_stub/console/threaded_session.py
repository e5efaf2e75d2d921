"""A session whose module runs in its own threads; commands have a third one, as in a mgr."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, List

from ..errors import Answer
from ..host.threaded_host import ThreadedHost
from ..mgr.handlers import find_handler
from .session import Session

#: Real seconds that a command may take.
_COMMAND_SECONDS = 30.0


class ThreadedSession(Session):
    """As a Session, over a ThreadedHost."""

    host: ThreadedHost
    host_class = ThreadedHost

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._commands = ThreadPoolExecutor(1, "mgr-commands")
        super().__init__(*arguments, **named)

    def close(self) -> None:
        super().close()
        self._commands.shutdown(wait=False)

    def post(self, line: str) -> Future[Answer]:
        """Has the commands' thread run a line; the caller may be any thread of the module."""
        return self._commands.submit(self._locked_dispatch, line.split())

    def dispatch(self, words: List[str]) -> Answer:
        if words[:1] == ["sim"]:
            return super().dispatch(words)
        return self._commands.submit(self._locked_dispatch, words).result(_COMMAND_SECONDS)

    def _locked_dispatch(self, words: List[str]) -> Answer:
        if words[:1] == ["ceph"]:
            words = words[1:]
        if find_handler(self.host.handlers, words) is not None:
            answer = super().dispatch(words)
            self.mgr.notify_config()
            return answer
        with self.mgr.lock:
            return super().dispatch(words)
