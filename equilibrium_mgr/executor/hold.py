"""The wait after the built-in balancer was switched off, until it has certainly noticed.

It reads its option once per round of its own, so it may send one more batch. Any change of upmaps
that is not ours starts the wait anew.
"""
from __future__ import annotations

from typing import Mapping, Optional

from ..snapshot.model import UpmapItems


class BuiltinHold:
    """Nothing is sent before the hold is over."""

    def __init__(self) -> None:
        self._until: Optional[float] = None
        self._items: Optional[Mapping[str, UpmapItems]] = None

    def begin(self, now: float, seconds: float) -> None:
        self._until = now + seconds

    def see(self, items: Mapping[str, UpmapItems], now: float, seconds: float) -> None:
        """Takes in the upmap items of a newer map; `seconds` is the balancer's own round."""
        if self._until is not None and self._items is not None and items != self._items:
            self._until = now + seconds
        self._items = items

    def ours(self, items: Mapping[str, UpmapItems]) -> None:
        """The items as they are after a batch of our own."""
        self._items = items

    def seconds_left(self, now: float) -> float:
        """How long to wait still; 0 when the hold is over."""
        if self._until is not None and now >= self._until:
            self._until = None
        return 0.0 if self._until is None else self._until - now
