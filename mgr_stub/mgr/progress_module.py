"""The always-on module `progress` for other modules and operators: its events.

Its own events of recovery are not simulated.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..errors import Answer, invalid

#: Ended events that it keeps (its option max_completed_events).
_MOST_COMPLETED = 50
_METHODS = ("update", "complete", "fail")


class ProgressEvent:
    """One event that another module has begun."""

    def __init__(self, event_id: str, message: str, refs: List[Any], in_status: bool,
                 started_at: float) -> None:
        self.id = event_id
        self.message = message
        self.refs = refs
        self.in_status = in_status
        self.started_at = started_at
        self.progress = 0.0

    def shown(self, now: float) -> Dict[str, Any]:
        """Returns the form of a running event in `ceph progress json`."""
        elapsed = now - self.started_at
        left = None
        if self.progress:
            left = int(elapsed * (1 - self.progress) / self.progress)
        return {"id": self.id, "message": self.message, "duration": f"(since {int(elapsed)}s)",
                "refs": self.refs, "progress": self.progress, "started_at": self.started_at,
                "time_remaining": left}

    def ended(self, now: float, failure: Optional[str]) -> Dict[str, Any]:
        """Returns the form of an ended event in `ceph progress json`; the colon is Ceph's."""
        found = {"id": self.id, "message": self.message, "refs": self.refs,
                 "started_at": self.started_at, "finished_at": now,
                 "add_to_ceph_s:": self.in_status}
        if failure is None:
            return found
        return dict(found, failed=True, failure_message=failure)


class ProgressModule:
    """Events live as long as the mgr. Ceph stores the ended ones, this class does not."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.events: Dict[str, ProgressEvent] = {}
        self.completed: List[Dict[str, Any]] = []
        #: (method, event id) of every call.
        self.calls: List[Tuple[str, str]] = []

    def remote(self, method: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """Answers `remote('progress', ...)`. Raises NameError for a method it does not have, and
        RuntimeError if the method fails."""
        if method not in _METHODS:
            raise NameError(method)
        try:
            getattr(self, method)(*args, **kwargs)
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {error}") from None

    def update(self, ev_id: str, ev_msg: str, ev_progress: float,
               refs: Optional[List[Any]] = None, add_to_ceph_s: bool = False) -> None:
        """Begins an event, or changes its message and progress (a ratio)."""
        self.calls.append(("update", ev_id))
        event = self.events.get(ev_id)
        if event is None:
            event = self.events[ev_id] = ProgressEvent(
                ev_id, ev_msg, refs or [], add_to_ceph_s, self._clock())
        event.progress, event.message = float(ev_progress), ev_msg

    def complete(self, ev_id: str) -> None:
        """Ends an event; one that it does not know is only logged."""
        self.calls.append(("complete", ev_id))
        self._end(ev_id, None)

    def fail(self, ev_id: str, message: str) -> None:
        """Ends an event as failed."""
        self.calls.append(("fail", ev_id))
        self._end(ev_id, message)

    def _end(self, ev_id: str, failure: Optional[str]) -> None:
        event = self.events.pop(ev_id, None)
        if event is not None:
            self.completed.append(event.ended(self._clock(), failure))
            del self.completed[:-_MOST_COMPLETED]

    def command(self, words: List[str]) -> Answer:
        """Returns `progress json`."""
        if words != ["json"]:
            raise invalid("the simulated module progress knows only json")
        return 0, json.dumps({"events": [event.shown(self._clock())
                                         for event in self.events.values()],
                              "completed": self.completed}, indent=4, sort_keys=True), ""
