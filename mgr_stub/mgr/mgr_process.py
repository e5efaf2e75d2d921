"""The mgr's process: it can be made to die, or be interrupted, at a chosen call of the API."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Optional, Tuple

#: API calls at which a mgr can be made to die, by the words of `sim mgr fail at`.
CALLS: Dict[str, str] = {"send": "send_command", "store": "set_store", "map": "get_osdmap",
                         "get": "get"}


class MgrDied(BaseException):
    """The mgr process is gone. A BaseException, so that no module can catch and handle it."""


@dataclass
class CrashPoint:
    """The mgr dies at the `count`-th call from now on, before or after its effect."""

    call: str
    after: bool = False
    count: int = 1


@dataclass
class Interruption:
    """`action` runs at the `count`-th call from now on, before or after the call's effect."""

    call: str
    after: bool
    count: int
    action: Callable[[], None]


class MgrProcess:
    """State of the mgr process; every call of the API goes through `call`."""

    def __init__(self) -> None:
        self.is_dead = False
        self.crash_point: Optional[CrashPoint] = None
        self.interruptions: List[Interruption] = []

    def kill(self) -> None:
        self.is_dead = True

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Encloses the effect of a call; MgrDied if the mgr is dead or dies here."""
        if self.is_dead:
            raise MgrDied(name)
        crash = self._reaches_crash_point(name)
        self._interrupt(name, False)
        if crash and self.crash_point is not None and not self.crash_point.after:
            self._die(name)
        yield
        self._interrupt(name, True)
        if crash:
            self._die(name)

    @property
    def counts_calls(self) -> bool:
        """Returns True if a crash or an interruption depends on the number of calls."""
        return self.crash_point is not None or bool(self.interruptions)

    def _interrupt(self, name: str, after: bool) -> None:
        for interruption in [i for i in self.interruptions if (i.call, i.after) == (name, after)]:
            interruption.count -= 1
            if interruption.count <= 0:
                self.interruptions.remove(interruption)
                interruption.action()

    def _reaches_crash_point(self, name: str) -> bool:
        if self.crash_point is None or self.crash_point.call != name:
            return False
        self.crash_point.count -= 1
        return self.crash_point.count <= 0

    def _die(self, name: str) -> None:
        self.is_dead = True
        self.crash_point = None
        raise MgrDied(name)


def call_point(text: str) -> Tuple[str, bool]:
    """Returns (call, after) of a point such as `before-send`; ValueError if there is none."""
    when, _, what = text.partition("-")
    if when not in ("before", "after") or what not in CALLS:
        raise ValueError(text)
    return CALLS[what], when == "after"
