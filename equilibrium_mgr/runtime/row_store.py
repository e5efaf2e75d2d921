"""Many named tuples kept as plain ones: the garbage collector does not walk those again and again.

It leaves out exact tuples of numbers and strings after it has seen them once, but never instances
of a subclass, as every NamedTuple is. With one object for each PG, its searches through all that
the mgr holds would come often and last long, for the modules of an mgr share it from Ceph 20 on.
"""
from __future__ import annotations

from functools import partial
from typing import (Any, Callable, Dict, ItemsView, Iterator, List, MutableMapping, Sequence, Tuple,
                    Type, TypeVar, ValuesView, cast)

T = TypeVar("T", bound=Tuple[Any, ...])


class Rows(MutableMapping[str, T]):
    """pgid → a NamedTuple, which is made anew at each access."""

    def __init__(self, kind: Type[T]) -> None:
        self._make = cast(Callable[[Tuple[Any, ...]], T], partial(tuple.__new__, kind))
        self._rows: Dict[str, Tuple[Any, ...]] = {}

    def __getitem__(self, key: str) -> T:
        return self._make(self._rows[key])

    def get(self, key: str, default: Any = None) -> Any:
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
        return _Values(self)

    def iter_rows(self) -> Iterator[T]:
        """All values, faster than one by one."""
        return map(self._make, self._rows.values())

    def items(self) -> ItemsView[str, T]:
        return _Items(self)


class RowList(Sequence[T]):
    """A list of NamedTuples, which are made anew at each access."""

    def __init__(self, kind: Type[T]) -> None:
        self._make = cast(Callable[[Tuple[Any, ...]], T], partial(tuple.__new__, kind))
        self._rows: List[Tuple[Any, ...]] = []

    def append(self, value: T) -> None:
        self._rows.append(tuple(value))

    def __getitem__(self, index: Any) -> Any:
        return self._make(self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)


class _Values(ValuesView[T]):
    """As a dict's, but for what it is made of."""

    def __init__(self, rows: Rows[T]) -> None:
        super().__init__(rows)
        self._of = rows

    def __iter__(self) -> Iterator[T]:
        return self._of.iter_rows()


class _Items(ItemsView[str, T]):
    """As a dict's, but for what it is made of."""

    def __init__(self, rows: Rows[T]) -> None:
        super().__init__(rows)
        self._of = rows

    def __iter__(self) -> Iterator[Tuple[str, T]]:
        return zip(self._of, self._of.iter_rows())
