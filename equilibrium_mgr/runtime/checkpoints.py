"""Long loops that let others have their turn: in ceph-mgr all modules share one interpreter."""
from __future__ import annotations

from typing import Callable, Iterable, Iterator, TypeVar

_T = TypeVar("_T")


def no_checkpoint() -> None:
    """The checkpoint of those who have nobody to wait for."""


def with_checkpoints(items: Iterable[_T], every: int, checkpoint: Callable[[], object]) -> Iterator[_T]:
    """The items, with a call of `checkpoint` before every so many."""
    for number, item in enumerate(items):
        if number % every == 0:
            checkpoint()
        yield item
