"""Figures that are computed when somebody asks for them, and then once."""
from __future__ import annotations

from typing import Callable, Generic, Optional, Tuple, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that is computed at its first use. Two threads that ask at once may both compute it,
    and get equal values."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Optional[Callable[[], T]] = compute
        self._found: Optional[Tuple[T]] = None

    @property
    def value(self) -> T:
        """The value."""
        compute, found = self._compute, self._found
        if found is None:
            assert compute is not None
            found = self._found = (compute(),)
            self._compute = None   # what it is made from may be large
        return found[0]
