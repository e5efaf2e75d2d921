"""The wait after the built-in balancer was switched off, until it has certainly noticed.

It reads its option once per round of its own, so it may send one more batch. Upmap items that
somebody else adds start the wait anew. Items that disappear do not: the monitor removes those of a
purged OSD or a deleted pool by itself.
"""
from __future__ import annotations

from typing import Mapping, Optional

from ..runtime.wait_timer import WaitTimer
from ..snapshot.model import UpmapItems


class BuiltinBalancerGrace:
    """The time after the built-in balancer was switched off in which nothing is sent."""

    def __init__(self) -> None:
        self._wait = WaitTimer()
        self._items: Optional[Mapping[str, UpmapItems]] = None

    def begin(self, now: float, seconds: float) -> None:
        """The built-in balancer was switched off; `seconds` is its own round."""
        self._wait.begin(now, seconds)

    def observe(self, items: Mapping[str, UpmapItems], now: float, seconds: float) -> None:
        """Takes in the upmap items of a newer map; `seconds` is the balancer's own round."""
        if self._wait.begun and self._items is not None and _has_more(items, self._items):
            self._wait.begin(now, seconds)
        self._items = items

    def accept(self, items: Mapping[str, UpmapItems]) -> None:
        """Takes in the items after a batch of our own, which start no wait."""
        self._items = items

    def peek_seconds_left(self, now: float) -> float:
        """Seconds left if nothing has been added meanwhile, which only a snapshot tells."""
        return self._wait.peek_seconds_left(now)

    def seconds_left(self, now: float) -> float:
        """Seconds left; 0 when the grace is over."""
        return self._wait.seconds_left(now)


def _has_more(items: Mapping[str, UpmapItems], before: Mapping[str, UpmapItems]) -> bool:
    """True where a PG has a pair that it did not have before."""
    return any(pairs != before.get(pgid) and not set(pairs) <= set(before.get(pgid, ()))
               for pgid, pairs in items.items())
