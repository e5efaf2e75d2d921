"""Giving way to other threads: all modules of a ceph-mgr share one interpreter and its lock, so a
loop that does not give way holds up all of them.

A long loop calls `give_way` between pieces of work of a few milliseconds, or goes over its items by
`piecewise`. What that does is up to the thread: nothing, or what `giving_way` has bound to it. The
same work with the same input has the same result either way, unless it is told to end.

From Ceph 20 on modules share a garbage collector as well. That one is left alone.
"""
from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from heapq import merge
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar

_T = TypeVar("_T")
_Key = TypeVar("_Key")

#: The lock is given up this often. Otherwise a thread that wants it waits 5 ms until Python hands
#: it on, and a command wants it several times.
_YIELD_EVERY_SECONDS = 0.001
_YIELD_SECONDS = 0.0001

_RELEASED_A_PIECE, _GROUPED_A_PIECE = 10_000, 2000   # before it gives way again: a millisecond

#: Called with the moves found so far; yields, and returns whether the work may go on.
AskToGoOn = Callable[[int], bool]


class _Thread(threading.local):
    """What is bound to a thread, and what is known of the work that it does then."""

    ask: Optional[AskToGoOn] = None
    moves = 0
    was_told_to_end = False


_thread = _Thread()


class TimeSlice:
    """Gives up the interpreter lock once a millisecond; for work that cannot be ended early."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], object] = time.sleep) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._last = monotonic()

    def __call__(self, _moves: int) -> bool:
        """Yields where it is due; never asks the work to end."""
        self.yield_if_due()
        return True

    def yield_if_due(self) -> bool:
        """Gives up the lock where the last time was a millisecond ago; returns whether it did."""
        if self._monotonic() - self._last < _YIELD_EVERY_SECONDS:
            return False
        self._sleep(_YIELD_SECONDS)
        self._last = self._monotonic()
        return True


@contextmanager
def giving_way(ask: Optional[AskToGoOn] = None) -> Iterator[None]:
    """Within it this thread's `give_way` calls `ask`, or yields where none is given. What was bound
    before is bound again at the end."""
    before = _thread.ask, _thread.moves, _thread.was_told_to_end
    _thread.ask = TimeSlice() if ask is None else ask
    _thread.moves, _thread.was_told_to_end = 0, False
    try:
        yield
    finally:
        _thread.ask, _thread.moves, _thread.was_told_to_end = before


def give_way(moves: int = 0) -> bool:
    """Called between two pieces of work: other threads run. `moves`: as many as a search has found
    so far, for reports on progress.

    False, from then on, asks the caller to end with what it has; work that cannot be ended early
    does not look at it.
    """
    ask = _thread.ask
    if ask is None:
        return True
    if moves > _thread.moves:
        _thread.moves = moves
    if not ask(_thread.moves):
        _thread.was_told_to_end = True
    return not _thread.was_told_to_end


def told_to_end() -> bool:
    """Whether `give_way` has told the work that this thread does to end."""
    return _thread.was_told_to_end


def piecewise(items: Iterable[_T], every: int) -> Iterator[_T]:
    """Yields the items, and gives way before the first and after each `every` of them."""
    for number, item in enumerate(items):
        if number % every == 0:
            give_way()
        yield item


def grouped(pairs: Iterable[Tuple[_Key, _T]]) -> Dict[_Key, List[_T]]:
    """Key → its values, both in the order in which they come; gives way between."""
    found: Dict[_Key, List[_T]] = {}
    for key, value in piecewise(pairs, _GROUPED_A_PIECE):
        found.setdefault(key, []).append(value)
    return found


def sorted_piecewise(items: Iterable[Any], every: int) -> Iterator[Any]:
    """The items, sorted: `every` of them at once, giving way between, and merged as they are asked
    for."""
    runs: List[List[Any]] = []
    run: List[Any] = []
    for item in items:
        run.append(item)
        if len(run) >= every:
            runs.append(sorted(run))
            run = []
            give_way()
    runs.append(sorted(run))
    return merge(*runs)


def release(held: List[Any]) -> None:
    """Empties a list whose items nobody else holds, a piece at a time: to free 300,000 dicts at
    once takes tens of milliseconds."""
    while held:
        del held[-_RELEASED_A_PIECE:]
        give_way()
