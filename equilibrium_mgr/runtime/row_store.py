"""Containers that keep many named tuples as plain tuples, which the garbage collector skips.

The collector stops tracking exact tuples of numbers and strings once it has seen them, but never
instances of a subclass, as every NamedTuple is. With one tracked object for each PG its passes
would come often and last long, and from Ceph 20 on all modules of an mgr share it.
"""
from __future__ import annotations

from functools import partial
from typing import (Any, Callable, Dict, ItemsView, Iterator, List, Mapping, MutableMapping,
                    Sequence, Tuple, Type, TypeVar, ValuesView, cast)

from .amended_map import AmendedRows

T = TypeVar("T", bound=Tuple[Any, ...])


class Rows(MutableMapping[str, T]):
    """pgid → a NamedTuple of one kind, which is made at each access."""

    def __init__(self, kind: Type[T]) -> None:
        self._make = cast(Callable[[Tuple[Any, ...]], T], partial(tuple.__new__, kind))
        self._kind = kind
        self._rows: Dict[str, Tuple[Any, ...]] = {}

    def __getitem__(self, key: str) -> T:
        return self._make(self._rows[key])

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's."""
        row = self._rows.get(key)
        return default if row is None else self._make(row)

    def __setitem__(self, key: str, value: T) -> None:
        self._rows[key] = tuple(value)

    def __delitem__(self, key: str) -> None:
        del self._rows[key]

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def values(self) -> ValuesView[T]:
        """As a dict's."""
        return _Values(self)

    def iter_rows(self) -> Iterator[T]:
        """All values; faster than one access for each."""
        return map(self._make, self._rows.values())

    def items(self) -> ItemsView[str, T]:
        """As a dict's."""
        return _Items(self)

    def frozen(self) -> AmendedRows[T]:
        """The same rows, not to be changed any more, here neither."""
        return AmendedRows(self._kind, self._rows)


class RowsByNumber(Sequence[T]):
    """Some rows of a mapping by number: their keys alone are kept."""

    def __init__(self, rows: Mapping[str, T]) -> None:
        self._rows = rows
        self.keys: List[str] = []

    def append(self, key: str) -> None:
        """Gives the next number to the row of a key."""
        self.keys.append(key)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[self.keys[index]]

    def __len__(self) -> int:
        return len(self.keys)


class _Values(ValuesView[T]):
    """View of a Rows, as that of a dict."""

    def __init__(self, rows: Rows[T]) -> None:
        super().__init__(rows)
        self._of = rows

    def __iter__(self) -> Iterator[T]:
        return self._of.iter_rows()


class _Items(ItemsView[str, T]):
    """View of a Rows, as that of a dict."""

    def __init__(self, rows: Rows[T]) -> None:
        super().__init__(rows)
        self._of = rows

    def __iter__(self) -> Iterator[Tuple[str, T]]:
        return zip(self._of, self._of.iter_rows())
