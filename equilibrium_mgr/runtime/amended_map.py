"""Mappings that cost what has changed: a shared dict, and the few entries that differ from it.

What is known of every PG is such a mapping. A new one with other values for some keys is made in
proportion to these; the old one stays as it is for those that still read it, such as a plan that is
being made. Two of them tell which values differ without a look at the others.
"""
from __future__ import annotations

from functools import partial
from itertools import compress, islice
from operator import is_not
from typing import (Any, Callable, Dict, ItemsView, Iterable, Iterator, List, Mapping, Optional,
                    Tuple, Type, TypeVar, ValuesView, cast)

from .time_slice import give_way

V = TypeVar("V")
T = TypeVar("T", bound=Tuple[Any, ...])

#: A new dict is made once more than this ratio of the entries, and more than so many, differ.
_MOST_CHANGED, _FEW = 1.0 / 16.0, 1000
#: Entries that built-in functions go over before it gives way again: about a millisecond.
_A_PIECE = 10_000


class AmendedMap(Mapping[str, V]):
    """Immutable; no value is None."""

    def __init__(self, base: Dict[str, V], changes: Optional[Dict[str, V]] = None) -> None:
        """`base` may be shared and is never changed; `changes`: other values for some of its
        keys."""
        self.base = base
        self.changes: Dict[str, V] = {} if changes is None else changes

    def __getitem__(self, key: str) -> V:
        found = self.changes.get(key)
        return self.base[key] if found is None else found

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's."""
        found = self.changes.get(key)
        return self.base.get(key, default) if found is None else found

    def __contains__(self, key: object) -> bool:
        return key in self.base

    def __iter__(self) -> Iterator[str]:
        return iter(self.base)

    def __len__(self) -> int:
        return len(self.base)

    def stored(self) -> Iterator[V]:
        """The values as they are stored, in the order of the keys."""
        if not self.changes:
            return iter(self.base.values())
        return map(self.changes.get, self.base, self.base.values())

    def values(self) -> ValuesView[V]:
        """As a dict's."""
        return _Values(self)

    def items(self) -> ItemsView[str, V]:
        """As a dict's."""
        return _Items(self)

    def read(self) -> Iterator[V]:
        """The values, in the order of the keys."""
        return self.stored()

    def changed_dicts(self, changes: Mapping[str, V]) -> Tuple[Dict[str, V], Dict[str, V]]:
        """(base, changes) of this mapping with `changes`."""
        merged = {**self.changes, **changes}
        if len(merged) <= max(_FEW, _MOST_CHANGED * len(self.base)):
            return self.base, merged
        base: Dict[str, V] = {}
        everything = zip(self.base, AmendedMap(self.base, merged).stored())
        while len(base) < len(self.base):
            base.update(islice(everything, _A_PIECE))
            give_way()
        return base, {}

    def amended(self, changes: Mapping[str, V]) -> AmendedMap[V]:
        """With other values for some of its keys; this one itself where there are none."""
        return AmendedMap(*self.changed_dicts(changes)) if changes else self

    def changed_since(self, earlier: AmendedMap[V]) -> Optional[List[str]]:
        """The keys whose value is not the very one of `earlier`; None where the keys or their
        order differ. Both are made by `amended`, or compared one by one."""
        if self.base is not earlier.base:
            return self._compared(earlier)
        if self.changes is earlier.changes:
            return []
        found, before, base = [], earlier.changes, self.base
        for key, value in self.changes.items():
            old = before.get(key)
            if (base[key] if old is None else old) is not value:
                found.append(key)
        return found + [key for key in before.keys() - self.changes.keys()
                        if before[key] is not base[key]]

    def _compared(self, earlier: AmendedMap[V]) -> Optional[List[str]]:
        if len(self) != len(earlier):
            return None
        found: List[str] = []
        keys, others = iter(self.base), iter(earlier.base)
        values, old_values = self.stored(), earlier.stored()
        for _ in range(0, len(self), _A_PIECE):
            piece = list(islice(keys, _A_PIECE))
            if piece != list(islice(others, _A_PIECE)):
                return None
            found.extend(compress(piece, map(is_not, islice(values, _A_PIECE),
                                             islice(old_values, _A_PIECE))))
            give_way()
        return found


class AmendedRows(AmendedMap[T]):
    """As Rows (row_store.py) an AmendedMap of NamedTuples of one kind, stored as plain tuples."""

    def __init__(self, kind: Type[T], base: Dict[str, Tuple[Any, ...]],
                 changes: Optional[Dict[str, Tuple[Any, ...]]] = None) -> None:
        super().__init__(cast(Dict[str, T], base), cast(Optional[Dict[str, T]], changes))
        self._kind = kind
        self._make = cast(Callable[[Tuple[Any, ...]], T], partial(tuple.__new__, kind))

    def __getitem__(self, key: str) -> T:
        found = self.changes.get(key)
        return self._make(self.base[key] if found is None else found)

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's."""
        found = self.changes.get(key)
        if found is None:
            found = self.base.get(key)
        return default if found is None else self._make(found)

    def plain(self) -> Tuple[Dict[str, Tuple[Any, ...]], Dict[str, Tuple[Any, ...]]]:
        """The shared dict, and the rows that differ from it."""
        return (cast(Dict[str, Tuple[Any, ...]], self.base),
                cast(Dict[str, Tuple[Any, ...]], self.changes))

    def row(self, key: str) -> Tuple[Any, ...]:
        """A value as it is stored: for loops over many, a third of the time of one access."""
        return self.changes.get(key) or self.base[key]

    def read(self) -> Iterator[T]:
        """The values, in the order of the keys."""
        return map(self._make, self.stored())

    def amended(self, changes: Mapping[str, T]) -> AmendedRows[T]:
        """With other rows for some of its keys; this one itself where there are none."""
        return self.amended_rows({key: tuple(row) for key, row in changes.items()})

    def amended_rows(self, changes: Mapping[str, Tuple[Any, ...]]) -> AmendedRows[T]:
        """As `amended`, with rows as they are stored."""
        if not changes:
            return self
        base, merged = self.changed_dicts(cast(Mapping[str, T], changes))
        return AmendedRows(self._kind, cast(Dict[str, Tuple[Any, ...]], base),
                           cast(Dict[str, Tuple[Any, ...]], merged))


def stored_rows(rows: Mapping[str, T]) -> Iterable[Tuple[Any, ...]]:
    """The values of any mapping, of AmendedRows as they are stored."""
    return rows.stored() if isinstance(rows, AmendedRows) else rows.values()


class _Values(ValuesView[V]):
    """View of an AmendedMap, as that of a dict."""

    def __init__(self, of: AmendedMap[V]) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[V]:
        return self._of.read()


class _Items(ItemsView[str, V]):
    """View of an AmendedMap, as that of a dict."""

    def __init__(self, of: AmendedMap[V]) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[Tuple[str, V]]:
        return zip(self._of, self._of.read())


def in_pieces(items: Iterable[V], length: int) -> Iterator[List[V]]:
    """Yields the items in lists of at most `length`, and gives way before each."""
    rest = iter(items)
    while True:
        give_way()
        piece = list(islice(rest, length))
        if not piece:
            return
        yield piece
