"""The log of changes, in the key-value store: a row for each sent change of a PG's upmap items.

`undo` and `cancel` read it. The next mgr learns from it which PGs are on their way or were moved
lately. A row is written before its change is sent, so that the next mgr knows of each change. The
osdmap shows which of them the monitor has kept. Rows are in packed parts; a batch rewrites only the
newest ones. The oldest part is dropped if there are too many.
"""
from __future__ import annotations

import json
import math
import re
import zlib
from typing import (
    AbstractSet, Any, Callable, Container, Dict, Iterator, List, Mapping, NamedTuple, Optional,
    Sequence, Tuple)

from ..plan.model import BALANCE, CANCEL, KINDS
from ..runtime.kv_store import CHANGES, BufferedKvStore, packed, unpacked
from ..runtime.time_slice import piecewise
from ..snapshot.model import UpmapItems

MOST_ROWS = 50_000
#: Packed, so many rows of erasure-coded pools with 20 shards stay below the store's limit.
_ROWS_A_PART = 250
_MOST_UNPACKED_BYTES = 4 << 20
#: Finds PGs, plans and kinds in a part. None of them has a character that JSON escapes.
_TEXTS = re.compile('"([^"]*)"')
#: Seconds after which a batch counts as sent if the osdmap after it could not be read.
_SENDING_SECONDS = 60.0


class ChangeRow(NamedTuple):
    """One change of a PG's upmap items that was sent, or is about to be."""

    at: float             # seconds since the epoch
    plan: str             # name of the plan; empty for automatic balancing
    kind: str             # of the plan
    begun_at: float       # when its episode began, seconds since the epoch
    epoch: int            # of the osdmap before it
    pgid: str
    raw: Tuple[int, ...]  # what CRUSH alone gave
    before: UpmapItems
    after: UpmapItems     # as it was sent, or as far as the monitor has kept it
    shards: int           # that it copies; 0 if it moves no data
    held: Tuple[int, ...] = ()   # of kind STEER: OSDs that keep shards which they had

    @property
    def cancels_withheld(self) -> bool:
        """Returns True if the row cancels a move because an OSD withheld the PG: `undo` must not
        repeat that move."""
        return self.kind == CANCEL and not self.plan


class ChangeLog:
    """Keeps the rows. The journal holds its lock while it changes them; any thread may call the
    methods that only read."""

    def __init__(self, store: BufferedKvStore) -> None:
        self._store = store
        self._parts: Mapping[int, str] = {}   # number → packed rows, in order; replaced whole
        self._batch = 0        # rows at the end that are being sent
        self._batch_part = 0   # number of the part that was the last before them
        self._sent_at: Optional[float] = None   # when the batch began; None if none is sent
        #: of the osdmap after the last batch; 0 if a former mgr has sent that
        self.epoch = 0

    def is_sending(self, now: float) -> bool:
        """Returns True while a batch is on its way to the monitors."""
        if self._sent_at is None:
            return False
        return 0.0 <= now - self._sent_at < _SENDING_SECONDS

    def rows(self, since: float = -math.inf) -> List[ChangeRow]:
        """Returns all rows, the oldest first, without parts that are older than `since`."""
        found: List[ChangeRow] = []
        for part in self._newest_parts():
            rows = _unpacked(part)
            if rows and max([row.at for row in rows]) < since:
                break
            found += reversed(rows)
        return found[::-1]

    def newest_first(self, named: AbstractSet[str]) -> Iterator[ChangeRow]:
        """Yields the rows of all parts in which one of these PGs, plans or kinds is named.

        A part is unpacked when its turn comes. The caller may remove names: once none is left, the
        iteration ends after the present part.
        """
        for part in self._newest_parts():
            if not named:
                return
            yield from reversed(_unpacked(part, named))

    def _newest_parts(self) -> Iterator[str]:
        return piecewise(reversed(list(self._parts.values())), 1)

    @property
    def is_empty(self) -> bool:
        """Returns True if the log has no row: nothing was sent, or its rows were not kept."""
        return not self._parts

    @property
    def first_known(self) -> Optional[ChangeRow]:
        """Returns the oldest row if older ones have been dropped, else None. Those may have been of
        the same episode."""
        parts = self._parts
        if min(parts, default=1) > 1:
            for part in parts.values():
                for row in _unpacked(part):
                    return row
        return None

    def append(self, rows: Sequence[ChangeRow], now: float) -> None:
        """Adds the rows of a batch that is about to be sent, and drops the oldest parts if there
        are too many. The store's `flush` writes that."""
        self._sent_at, self._batch = now, len(rows)
        self._batch_part = max(self._parts, default=1)
        self._add(rows)
        for number in list(self._parts)[:-(MOST_ROWS // _ROWS_A_PART)]:
            self._put(number, [])

    def end_batch(self, sent: Container[str], items: Mapping[str, UpmapItems],
                  epoch: int = 0) -> None:
        """Ends a batch, and removes rows of PGs that were not `sent` after all.

        `items`: the upmap items after the batch. The monitor may keep fewer pairs of a row.
        `epoch`: of their osdmap.
        """
        self.epoch = max(self.epoch, epoch)
        numbers = [number for number in self._parts if number >= self._batch_part]
        found: List[ChangeRow] = []
        for number in numbers:
            found += _unpacked(self._parts[number])
        earlier = len(found) - self._batch
        kept = found[:earlier] + [
            _as_kept(row, items) for row in found[earlier:] if row.pgid in sent]
        if kept != found:
            for number in numbers:
                self._put(number, [])
            self._add(kept)
        self._sent_at = None   # last: until then a reader sees that a batch is on its way

    def restore(self) -> None:
        """Reads the stored parts, except garbled ones."""
        names = [key.rpartition("/")[2] for key in self._store.keys(f"{CHANGES}/")]
        parts: Dict[int, str] = {}
        for number in sorted([int(one) for one in names if one.isdigit() and len(one) < 10]):
            part = (self._store.read(_key(number)) or {}).get("packed")
            if isinstance(part, str):
                parts[number] = part
        self._parts = parts

    def _add(self, rows: Sequence[ChangeRow]) -> None:
        number = max(self._parts, default=1)
        found = [*_unpacked(self._parts.get(number, "")), *rows]
        for start in range(0, len(found), _ROWS_A_PART):
            self._put(number + start // _ROWS_A_PART, found[start:start + _ROWS_A_PART])

    def _put(self, number: int, rows: Sequence[ChangeRow]) -> None:
        """Replaces a part, adds the newest, or removes one without rows."""
        parts = {one: part for one, part in self._parts.items() if one != number}
        if rows:
            parts[number] = packed([_stored(row) for row in rows])
        self._parts = dict(sorted(parts.items()))
        self._store.put(_key(number), {"packed": parts[number]} if rows else None)


def _as_kept(row: ChangeRow, items: Mapping[str, UpmapItems]) -> ChangeRow:
    present = items.get(row.pgid, ())
    if row.before == present or not set(present) < set(row.after):
        return row
    return row._replace(after=present)


def _stored(row: ChangeRow) -> Sequence[Any]:
    """Returns the fields of a row, without `held` if that is empty: so older versions read it."""
    return row if row.held else row[:-1]


def _key(number: int) -> str:
    return f"{CHANGES}/{number}"


def _unpacked(part: str, named: Optional[AbstractSet[str]] = None) -> List[ChangeRow]:
    """Returns the rows of a part, none if it names none of `named` or is garbled."""
    try:
        text = unpacked(part, _MOST_UNPACKED_BYTES)
        if named is not None and named.isdisjoint(_TEXTS.findall(text)):
            return []
        return [_row(*stored) for stored in json.loads(text)]
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, OverflowError,
            RecursionError):
        return []


def _row(at: Any, plan: Any, kind: Any, begun_at: Any, epoch: Any, pgid: Any, raw: Any,
         before: Any, after: Any, shards: Any, held: Any = ()) -> ChangeRow:
    return ChangeRow(
        at=float(at),
        plan=str(plan),
        kind=kind if kind in KINDS else BALANCE,
        begun_at=float(begun_at),
        epoch=int(epoch),
        pgid=str(pgid),
        raw=tuple(map(int, raw)),
        before=_items(before),
        after=_items(after),
        shards=int(shards),
        held=tuple(map(int, held)))


def _items(pairs: Sequence[Sequence[int]]) -> UpmapItems:
    return tuple([(int(source), int(target)) for source, target in pairs])


Chosen = Callable[[ChangeRow], bool]
#: `ChangeLog.newest_first`.
NewestFirst = Callable[[AbstractSet[str]], Iterator[ChangeRow]]
