"""The wait after the built-in balancer was switched off, until it has certainly noticed.

It reads its option once per round of its own, so it may send one more batch. What somebody else adds
to the upmaps starts the wait anew. What goes does not: the monitor cleans up after a purged OSD or a
deleted pool by itself.
"""
from __future__ import annotations

from typing import Mapping, Optional

from ..runtime.wait_timer import WaitTimer
from ..snapshot.model import UpmapItems


class BuiltinBalancerGrace:
    """Nothing is sent before the hold is over."""

    def __init__(self) -> None:
        self._wait = WaitTimer()
        self._items: Optional[Mapping[str, UpmapItems]] = None

    def begin(self, now: float, seconds: float) -> None:
        self._wait.begin(now, seconds)

    def observe(self, items: Mapping[str, UpmapItems], now: float, seconds: float) -> None:
        """Takes in the upmap items of a newer map; `seconds` is the balancer's own round."""
        if self._wait.begun and self._items is not None and _has_more(items, self._items):
            self._wait.begin(now, seconds)
        self._items = items

    def accept(self, items: Mapping[str, UpmapItems]) -> None:
        """The items as they are after a batch of our own."""
        self._items = items

    def peek_seconds_left(self, now: float) -> float:
        """How long to wait still, should nothing have been added meanwhile; only a look tells."""
        return self._wait.peek_seconds_left(now)

    def seconds_left(self, now: float) -> float:
        """How long to wait still; 0 when the hold is over."""
        return self._wait.seconds_left(now)


def _has_more(items: Mapping[str, UpmapItems], before: Mapping[str, UpmapItems]) -> bool:
    """Does a PG have a pair now that it did not have before?"""
    return any(pairs != before.get(pgid) and not set(pairs) <= set(before.get(pgid, ()))
               for pgid, pairs in items.items())
