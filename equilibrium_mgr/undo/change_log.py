"""The log of what was sent, in the key-value store: a row for each change of a PG's upmap items.

`undo` and `cancel` take back what it tells, and the next mgr learns from it what is on its way and
which PGs were moved lately. A row is written before its change is sent, so that nothing is sent
that a successor does not know of; the osdmap tells which of them the monitor has kept. Rows stand
in packed parts, of which each batch rewrites the newest alone. Of too many the oldest is dropped.
"""
from __future__ import annotations

import json
import math
import re
import zlib
from typing import (
    AbstractSet, Callable, Container, Iterator, List, Mapping, NamedTuple, Optional, Sequence,
    Tuple)

from ..plan.model import BALANCE, CANCEL, KINDS
from ..runtime.kv_store import CHANGES, BufferedKvStore, packed, unpacked
from ..runtime.time_slice import piecewise
from ..snapshot.model import UpmapItems

MOST_ROWS = 50_000
#: Packed, so many rows of erasure-coded pools with 20 shards stay below the store's limit.
_ROWS_A_PART = 250
_MOST_UNPACKED_BYTES = 4 << 20
#: Finds PGs, plans and kinds in a part; none of them has a character that JSON escapes.
_TEXTS = re.compile('"([^"]*)"')
#: Seconds after which a batch whose map could not be read counts as sent.
_SENDING_SECONDS = 60.0


class ChangeRow(NamedTuple):
    """One change of a PG's upmap items that was sent."""

    at: float             # seconds since the epoch
    plan: str             # by its name; empty for automatic balancing
    kind: str             # of the plan
    begun_at: float       # when its episode began, seconds since the epoch
    epoch: int            # of the osdmap before it
    pgid: str
    raw: Tuple[int, ...]  # what CRUSH alone gave
    before: UpmapItems
    after: UpmapItems     # as it was sent, or what the monitor has kept of that
    shards: int           # that it copies; 0 where it moves nothing

    @property
    def takes_back(self) -> bool:
        """True of what was taken back as an OSD withheld it: nobody wants it there again."""
        return self.kind == CANCEL and not self.plan


class ChangeLog:
    """Used under the journal's lock, but for what only reads, which any thread may call."""

    def __init__(self, store: BufferedKvStore) -> None:
        self._store = store
        self._parts: Mapping[int, str] = {}   # number → packed rows, in order; replaced whole
        self._batch = 0        # rows at the end that are being sent
        self._batch_part = 0   # number of the part that was the last before them
        self._sent_at: Optional[float] = None   # when that began
        #: of the osdmap that followed the last batch; 0 where a former mgr has sent it
        self.epoch = 0

    def is_sending(self, now: float) -> bool:
        """True while a batch is on its way to the monitors."""
        return self._sent_at is not None and 0.0 <= now - self._sent_at < _SENDING_SECONDS

    def rows(self, since: float = -math.inf) -> List[ChangeRow]:
        """All rows, the oldest first; without parts of which none is as new as `since`."""
        found: List[List[ChangeRow]] = []
        for part in self._newest_parts():
            rows = _unpacked(part)
            if rows and max(row.at for row in rows) < since:
                break
            found.append(rows)
        return [row for rows in reversed(found) for row in rows]

    def newest_first(self, named: AbstractSet[str]) -> Iterator[ChangeRow]:
        """Yields the rows of all parts in which one of these PGs, plans or kinds is named.

        A part is unpacked when its turn comes. `named` may shrink meanwhile; empty, it ends this.
        """
        for part in self._newest_parts():
            if not named:
                return
            yield from reversed(_unpacked(part, named))

    def _newest_parts(self) -> Iterator[str]:
        return piecewise(reversed(list(self._parts.values())), 1)

    @property
    def is_empty(self) -> bool:
        """True where nothing was ever sent."""
        return not self._parts

    @property
    def first_known(self) -> Optional[ChangeRow]:
        """The oldest row, where older ones have been dropped: those of its episode too, perhaps."""
        parts = self._parts
        return next((row for part in parts.values() for row in _unpacked(part)),
                    None) if min(parts, default=1) > 1 else None

    def append(self, rows: Sequence[ChangeRow], now: float) -> None:
        """Adds the rows of a batch that is about to be sent; the store's `flush` writes them."""
        self._sent_at, self._batch = now, len(rows)
        self._batch_part = max(self._parts, default=1)
        self._add(rows)
        for number in list(self._parts)[:-(MOST_ROWS // _ROWS_A_PART)]:
            self._put(number, [])

    def settle(self, sent: Container[str], items: Mapping[str, UpmapItems],
               epoch: int = 0) -> None:
        """Ends a batch. Rows of PGs that were not `sent` after all are taken out; of the others the
        monitor may have kept fewer pairs, or none, by the upmap items that followed. `epoch`: of
        the osdmap that has these."""
        self.epoch = max(self.epoch, epoch)
        numbers = [number for number in self._parts if number >= self._batch_part]
        found = [row for number in numbers for row in _unpacked(self._parts[number])]
        earlier = len(found) - self._batch
        settled = found[:earlier] + [_settled(row, items) for row in found[earlier:]
                                     if row.pgid in sent]
        if settled != found:
            for number in numbers:
                self._put(number, [])
            self._add(settled)
        self._sent_at = None   # last: who reads meanwhile is told that a batch is on its way

    def restore(self) -> None:
        """Reads what is stored, as far as it can be understood."""
        names = (key.rpartition("/")[2] for key in self._store.keys(f"{CHANGES}/"))
        numbers = sorted(int(name) for name in names if name.isdigit() and len(name) < 10)
        stored = {number: (self._store.read(_key(number)) or {}).get("packed")
                  for number in numbers}
        self._parts = {number: part for number, part in stored.items() if isinstance(part, str)}

    def _add(self, rows: Sequence[ChangeRow]) -> None:
        number = max(self._parts, default=1)
        found = [*_unpacked(self._parts.get(number, "")), *rows]
        for start in range(0, len(found), _ROWS_A_PART):
            self._put(number + start // _ROWS_A_PART, found[start:start + _ROWS_A_PART])

    def _put(self, number: int, rows: Sequence[ChangeRow]) -> None:
        """Replaces a part, adds the newest, or removes one of no rows."""
        parts = {one: part for one, part in self._parts.items() if one != number}
        if rows:
            parts[number] = packed(rows)
        self._parts = dict(sorted(parts.items()))
        self._store.put(_key(number), {"packed": parts[number]} if rows else None)


def _settled(row: ChangeRow, items: Mapping[str, UpmapItems]) -> ChangeRow:
    present = items.get(row.pgid, ())
    return row if row.before == present or not set(present) < set(row.after) else (
        row._replace(after=present))


def _key(number: int) -> str:
    return f"{CHANGES}/{number}"


def _unpacked(part: str, named: Optional[AbstractSet[str]] = None) -> List[ChangeRow]:
    """The rows of a part; empty if it names none of `named`, or cannot be understood."""
    try:
        text = unpacked(part, _MOST_UNPACKED_BYTES)
        if named is not None and named.isdisjoint(_TEXTS.findall(text)):
            return []
        return [ChangeRow(float(at), str(plan), kind if kind in KINDS else BALANCE,
                          float(begun_at), int(epoch), str(pgid), tuple(map(int, raw)),
                          _items(before), _items(after), int(shards))
                for at, plan, kind, begun_at, epoch, pgid, raw, before, after, shards
                in json.loads(text)]
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, OverflowError,
            RecursionError):
        return []


def _items(pairs: Sequence[Sequence[int]]) -> UpmapItems:
    return tuple((int(source), int(target)) for source, target in pairs)


Chosen = Callable[[ChangeRow], bool]
#: `ChangeLog.newest_first`.
NewestFirst = Callable[[AbstractSet[str]], Iterator[ChangeRow]]
