"""Yields to other threads. All modules of a ceph-mgr share one interpreter lock, so a loop that
does not yield stops all of them.

A long loop calls `give_way` between slices of work of a few milliseconds, or goes over its items by
`piecewise`. The effect depends on the thread: nothing, or a function that `giving_way` has bound to
it. The same work with the same input has the same result either way, unless it has to end early.

From Ceph 20 on modules share a garbage collector as well. The module does not touch its settings.
"""
from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from heapq import merge
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar

_T = TypeVar("_T")
_Key = TypeVar("_Key")

#: Seconds between two releases of the lock. Otherwise a thread that wants it waits 5 ms until
#: Python passes it on, and a command wants it several times.
_YIELD_EVERY_SECONDS = 0.001
_YIELD_SECONDS = 0.0001

#: Items between two calls of `give_way`: about a millisecond.
_RELEASED_A_PIECE, _GROUPED_A_PIECE = 10_000, 2000

#: Called with the moves found so far; yields, and returns whether the work may go on.
AskToGoOn = Callable[[int], bool]


class _Thread(threading.local):
    """The function that is bound to a thread, and the progress of its work."""

    ask: Optional[AskToGoOn] = None
    moves = 0
    was_told_to_end = False


_thread = _Thread()


class TimeSlice:
    """Releases the interpreter lock once a millisecond, for work that cannot end early."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic,
                 sleep: Callable[[float], object] = time.sleep) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._last = monotonic()

    def __call__(self, _moves: int) -> bool:
        """Yields if a millisecond has passed. Returns True: the work never has to end early."""
        self.yield_if_due()
        return True

    def yield_if_due(self) -> bool:
        """Releases the lock if the last release was at least a millisecond ago; returns True if
        so."""
        if self._monotonic() - self._last < _YIELD_EVERY_SECONDS:
            return False
        self._sleep(_YIELD_SECONDS)
        self._last = self._monotonic()
        return True


@contextmanager
def giving_way(ask: Optional[AskToGoOn] = None) -> Iterator[None]:
    """Binds `ask` to this thread's `give_way`, a TimeSlice if it is None.

    Binds the function from before again at the end.
    """
    before = _thread.ask, _thread.moves, _thread.was_told_to_end
    _thread.ask = TimeSlice() if ask is None else ask
    _thread.moves = 0
    _thread.was_told_to_end = False
    try:
        yield
    finally:
        _thread.ask, _thread.moves, _thread.was_told_to_end = before


def give_way(moves: int = 0) -> bool:
    """Lets other threads run; called between two slices of work. `moves`: the moves that a search
    has found so far, for reports on progress.

    Returns False if the caller has to end with its present result, and so does each later call.
    Work that cannot end early ignores that.
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
    """Returns True if `give_way` has asked the work of this thread to end."""
    return _thread.was_told_to_end


def piecewise(items: Iterable[_T], every: int) -> Iterator[_T]:
    """Iterates over the items; calls `give_way` before the first and after each `every` of them."""
    for number, item in enumerate(items):
        if number % every == 0:
            give_way()
        yield item


def grouped(pairs: Iterable[Tuple[_Key, _T]]) -> Dict[_Key, List[_T]]:
    """Returns key → its values, both in the order of the pairs; calls `give_way` in between."""
    found: Dict[_Key, List[_T]] = {}
    for key, value in piecewise(pairs, _GROUPED_A_PIECE):
        found.setdefault(key, []).append(value)
    return found


def sorted_piecewise(items: Iterable[Any], every: int) -> Iterator[Any]:
    """Returns the items in order. Sorts `every` of them at once, calls `give_way` in between, and
    merges them lazily."""
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
    """Empties a list whose items nobody else holds, in slices: to free 300,000 dicts at once takes
    tens of milliseconds."""
    while held:
        del held[-_RELEASED_A_PIECE:]
        give_way()
