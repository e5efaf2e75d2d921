"""Readings that cannot be changed, for the shared ones of the mgr of Ceph 21.

There `get()` gives every module the same cached object: lists are tuples, sets are frozensets, and
dicts are plain but shared, so that a module that changes one changes it for all modules. Here such
a change raises TypeError.

Thresholds of Python's cyclic garbage collector, which traverses the whole simulated cluster.
"""
from __future__ import annotations

import gc
from typing import Any, Callable, Dict, NoReturn


class ReadOnlyDict(Dict[Any, Any]):
    """A dict that raises TypeError on every change; its copies are plain dicts."""

    def _refuse(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise TypeError("a reading of the mgr is shared with other modules: do not change it")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> Dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Dict[int, Any]) -> Dict[Any, Any]:
        plain: Dict[Any, Any] = thawed(self)
        return plain


class ReadOnlyRecords(Dict[Any, Any]):
    """A new dict whose values are read-only already: to freeze it costs no pass over them."""


def frozen(value: Any) -> Any:
    """Returns the same reading, read-only at all levels; costs one pass over it."""
    freeze = _FREEZE.get(type(value))
    if freeze is None:
        return value
    return freeze(value)


def thawed(value: Any) -> Any:
    """Returns a copy of a frozen reading in lists and plain dicts."""
    if isinstance(value, dict):
        return {key: thawed(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return list(map(thawed, value))
    return value


def _frozen_dict(value: Dict[Any, Any]) -> ReadOnlyDict:
    return ReadOnlyDict(zip(value, map(frozen, value.values())))


def _frozen_items(value: Any) -> Any:
    return tuple(map(frozen, value))


_FREEZE: Dict[type, Callable[[Any], Any]] = {
    dict: _frozen_dict, list: _frozen_items, tuple: _frozen_items, set: frozenset,
    ReadOnlyRecords: ReadOnlyDict}


def collect_less_often() -> None:
    """Raises the thresholds: collection took 14 to 30 % of a simulation, in two single runs."""
    gc.set_threshold(100_000, 50, 100)
