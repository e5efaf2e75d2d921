"""Checkpoints: where long work yields to other threads and asks whether it may go on.

All modules of a ceph-mgr share one interpreter, so a loop that does not yield holds up all of them.
"""
from __future__ import annotations

from heapq import merge
from typing import Any, Iterable, Iterator, List, Optional, Protocol, TypeVar

_T = TypeVar("_T")

_RELEASED_A_PIECE = 10_000   # between two checkpoints: about a millisecond


class Checkpoint(Protocol):
    """Called between pieces of work of a few milliseconds.

    `moves` is the number of moves that a search has found so far, for progress reports; None where
    nothing has changed. False asks the caller to end with what it has; work that cannot be ended
    early only yields.
    """

    def __call__(self, moves: Optional[int] = None, /) -> bool:
        """Yields; returns whether the caller may go on."""


def no_checkpoint(_moves: Optional[int] = None) -> bool:
    """A checkpoint that neither yields nor ends anything."""
    return True


def with_checkpoints(items: Iterable[_T], every: int, checkpoint: Checkpoint) -> Iterator[_T]:
    """Yields the items and calls `checkpoint` before the first and after each `every` of them."""
    for number, item in enumerate(items):
        if number % every == 0:
            checkpoint()
        yield item


def sorted_with_checkpoints(items: Iterable[Any], every: int,
                            checkpoint: Checkpoint) -> Iterator[Any]:
    """The items, sorted: `every` of them at once, with a call of `checkpoint` between, and merged
    as they are asked for."""
    runs: List[List[Any]] = []
    run: List[Any] = []
    for item in items:
        run.append(item)
        if len(run) >= every:
            runs.append(sorted(run))
            run = []
            checkpoint()
    runs.append(sorted(run))
    return merge(*runs)


def release(held: List[Any], checkpoint: Checkpoint) -> None:
    """Empties a list whose items nobody else holds, a piece at a time: to free 300,000 dicts at
    once takes tens of milliseconds."""
    while held:
        del held[-_RELEASED_A_PIECE:]
        checkpoint()
