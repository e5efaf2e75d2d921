"""The log of changed upmap items, in the key-value store: what `undo` takes back.

A row is written before its change is sent, so that nothing is sent that a successor does not know
of; the osdmap tells which of them the monitor has kept. Rows stand in packed parts, of which each
batch rewrites the newest alone. Of too many the oldest part is dropped.
"""
from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.kinds import BALANCE, KINDS
from ..runtime.buffered_kv_store import CHANGES, BufferedKvStore
from ..runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints
from ..snapshot.model import UpmapItems

MOST_ROWS = 50_000
#: Packed, so many rows of erasure-coded pools with 20 shards stay below the store's limit.
_ROWS_A_PART = 250
_MOST_PARTS = 2 * MOST_ROWS // _ROWS_A_PART
_MOST_UNPACKED_BYTES = 4 << 20
#: Seconds after which a batch whose map could not be read counts as sent.
_SENDING_SECONDS = 60.0


class ChangeRow(NamedTuple):
    """One change of a PG's upmap items that was sent."""

    at: float             # seconds since the epoch
    plan: str             # by its name; empty for automatic balancing
    kind: str             # of the plan
    begun_at: float       # when its episode began, seconds since the epoch
    pgid: str
    raw: Tuple[int, ...]  # what CRUSH alone gave
    before: UpmapItems
    after: UpmapItems     # as it was sent, or what the monitor has kept of that


class _Part(NamedTuple):
    """Rows that are stored together."""

    number: int
    rows: int
    packed: str


class ChangeLog:
    """Used under the journal's lock, but for `rows`, which any thread may call."""

    def __init__(self, store: BufferedKvStore) -> None:
        self._store = store
        self._parts: Tuple[_Part, ...] = ()   # replaced whole; the newest last
        self._newest: List[ChangeRow] = []    # rows of the last part
        self._batch: List[ChangeRow] = []     # those of them, and before, that are being sent
        self._sent_at: Optional[float] = None   # when that began

    def is_sending(self, now: float) -> bool:
        """True while a batch is on its way to the monitors."""
        return self._sent_at is not None and 0.0 <= now - self._sent_at < _SENDING_SECONDS

    def rows(self, checkpoint: Checkpoint = no_checkpoint) -> List[ChangeRow]:
        """All rows, the oldest first. `checkpoint` is called every few milliseconds."""
        return [row for part in with_checkpoints(self._parts, 1, checkpoint)
                for row in _unpacked(part.packed)]

    def append(self, rows: Sequence[ChangeRow], now: float) -> None:
        """Adds the rows of a batch that is about to be sent; the store's `flush` writes them."""
        self._batch, self._sent_at = list(rows), now
        left = self._batch
        while left:
            number = self._parts[-1].number if self._parts else 1
            if len(self._newest) >= _ROWS_A_PART:
                number, self._newest = number + 1, []
            room = _ROWS_A_PART - len(self._newest)
            self._newest, left = self._newest + left[:room], left[room:]
            self._put(number)
        self._drop_oldest()

    def settle(self, items: Optional[Mapping[str, UpmapItems]]) -> None:
        """Ends a batch by the upmap items that followed it, of which the monitor may have kept
        fewer pairs; None where nothing was sent."""
        self._sent_at, batch, self._batch = None, self._batch, []
        kept = {row: row._replace(after=items[row.pgid]) for row in batch
                if items is not None and row.pgid in items
                and row.before != items[row.pgid] and set(items[row.pgid]) < set(row.after)}
        if kept and any(row in kept for row in self._newest):
            self._newest = [kept.get(row, row) for row in self._newest]
            self._put(self._parts[-1].number)

    def restore(self) -> None:
        """Reads what is stored, as far as it can be understood."""
        head = self._store.read(CHANGES) or {}
        first, last = head.get("first"), head.get("last")
        if not isinstance(first, int) or not isinstance(last, int):
            first, last = 1, 0
        first = max(first, last - _MOST_PARTS)
        parts = []
        for number in range(first, last + 2):   # the last mgr may have died between two writes
            value = self._store.read(_key(number)) or {}
            packed = value.get("packed")
            rows = _unpacked(packed) if isinstance(packed, str) else []
            if rows:
                parts.append(_Part(number, len(rows), str(packed)))
        self._parts = tuple(parts)
        self._newest = _unpacked(parts[-1].packed) if parts else []

    def _put(self, number: int) -> None:
        """Replaces or adds the newest part."""
        part = _Part(number, len(self._newest), _packed(self._newest))
        others = tuple(one for one in self._parts if one.number != number)
        self._parts = (*others, part)
        self._store.put(_key(number), {"packed": part.packed})
        self._put_head()

    def _put_head(self) -> None:
        self._store.put(CHANGES, {"first": self._parts[0].number, "last": self._parts[-1].number})

    def _drop_oldest(self) -> None:
        while sum(part.rows for part in self._parts) > MOST_ROWS:
            self._store.put(_key(self._parts[0].number), None)
            self._parts = self._parts[1:]
            self._put_head()


def _key(number: int) -> str:
    return f"{CHANGES}/{number}"


def _packed(rows: Sequence[ChangeRow]) -> str:
    """A text for the key-value store: what rows of a batch share stands once."""
    batches: List[List[Any]] = []
    plain: List[List[Any]] = []
    for row in rows:
        shared = [row.at, row.plan, row.kind, row.begun_at]
        if not batches or batches[-1] != shared:
            batches.append(shared)
        plain.append([len(batches) - 1, row.pgid, row.raw, row.before, row.after])
    text = json.dumps({"batches": batches, "rows": plain}, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _unpacked(packed: str) -> List[ChangeRow]:
    """The reverse of `_packed`; empty for what cannot be understood."""
    try:
        text = zlib.decompressobj().decompress(base64.b64decode(packed.encode()),
                                               _MOST_UNPACKED_BYTES)
        value = json.loads(text)
        batches = [(float(at), str(plan), kind if kind in KINDS else BALANCE, float(begun_at))
                   for at, plan, kind, begun_at in value["batches"]]
        return [ChangeRow(at, plan, kind, begun_at, str(pgid), tuple(map(int, raw)),
                          _items(before), _items(after))
                for batch, pgid, raw, before, after in value["rows"]
                for at, plan, kind, begun_at in (batches[batch],)]
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, IndexError,
            RecursionError):
        return []


def _items(pairs: Sequence[Sequence[int]]) -> UpmapItems:
    return tuple((int(source), int(target)) for source, target in pairs)


def rows_by_pg(rows: Sequence[ChangeRow]) -> Dict[str, List[ChangeRow]]:
    """pgid → its rows, the oldest first."""
    found: Dict[str, List[ChangeRow]] = {}
    for row in rows:
        found.setdefault(row.pgid, []).append(row)
    return found


Chosen = Callable[[ChangeRow], bool]
