"""The wait after the built-in balancer was switched off, until it has certainly noticed.

It reads its option once per round of its own, so it may send one more batch. Any change of upmaps
that is not ours starts the wait anew.
"""
from __future__ import annotations

from typing import Mapping, Optional

from ..snapshot.model import UpmapItems
from .interval import Interval


class BuiltinHold:
    """Nothing is sent before the hold is over."""

    def __init__(self) -> None:
        self._wait = Interval()
        self._items: Optional[Mapping[str, UpmapItems]] = None

    def begin(self, now: float, seconds: float) -> None:
        self._wait.begin(now, seconds)

    def see(self, items: Mapping[str, UpmapItems], now: float, seconds: float) -> None:
        """Takes in the upmap items of a newer map; `seconds` is the balancer's own round."""
        if self._wait.begun and self._items is not None and items != self._items:
            self._wait.begin(now, seconds)
        self._items = items

    def ours(self, items: Mapping[str, UpmapItems]) -> None:
        """The items as they are after a batch of our own."""
        self._items = items

    def seconds_left(self, now: float) -> float:
        """How long to wait still; 0 when the hold is over."""
        return self._wait.seconds_left(now)
