"""A mgr that dies in the middle of a call of the API, or meanwhile somebody does something."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Optional, Tuple

#: The calls at which a mgr can be made to die, by the words of `sim mgr fail at`.
CALLS: Dict[str, str] = {"send": "send_command", "store": "set_store", "map": "get_osdmap",
                         "get": "get"}


class MgrDied(BaseException):
    """The mgr process is gone: nothing in a module gets to see or to handle that."""


@dataclass
class Doom:
    """The mgr dies at the `count`-th call from now on, before or after its effect."""

    call: str
    after: bool = False
    count: int = 1


@dataclass
class Meanwhile:
    """Something happens at the `count`-th call from now on, before or after its effect."""

    call: str
    after: bool
    count: int
    happen: Callable[[], None]


class Life:
    """Whether the mgr still runs; every call of the API goes through `call`."""

    def __init__(self) -> None:
        self.dead = False
        self.doom: Optional[Doom] = None
        self.meanwhile: List[Meanwhile] = []

    def end(self) -> None:
        self.dead = True

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Around the effect of a call; MgrDied if the mgr is dead or dies here."""
        if self.dead:
            raise MgrDied(name)
        hit = self._hits(name)
        self._come_between(name, False)
        if hit and self.doom is not None and not self.doom.after:
            self._die(name)
        yield
        self._come_between(name, True)
        if hit:
            self._die(name)

    @property
    def counts_calls(self) -> bool:
        """Whether something is to come of the number of calls."""
        return self.doom is not None or bool(self.meanwhile)

    def _come_between(self, name: str, after: bool) -> None:
        for waiting in [w for w in self.meanwhile if (w.call, w.after) == (name, after)]:
            waiting.count -= 1
            if waiting.count <= 0:
                self.meanwhile.remove(waiting)
                waiting.happen()

    def _hits(self, name: str) -> bool:
        if self.doom is None or self.doom.call != name:
            return False
        self.doom.count -= 1
        return self.doom.count <= 0

    def _die(self, name: str) -> None:
        self.dead = True
        self.doom = None
        raise MgrDied(name)


def point_of(words: str) -> Tuple[str, bool]:
    """(call, after) of a point such as `before-send`; ValueError if there is none."""
    when, _, what = words.partition("-")
    if when not in ("before", "after") or what not in CALLS:
        raise ValueError(words)
    return CALLS[what], when == "after"
