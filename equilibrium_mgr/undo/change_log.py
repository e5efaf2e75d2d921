"""The log of changed upmap items, in the key-value store: what `undo` takes back.

A row is written before its change is sent, so that nothing is sent that a successor does not know
of; the osdmap tells which of them the monitor has kept. Rows stand in packed parts, of which each
batch rewrites the newest alone. Of too many the oldest part is dropped. What parts are about is
known without unpacking them, so that commands unpack those alone that they need.
"""
from __future__ import annotations

import base64
import binascii
import json
import zlib
from itertools import dropwhile
from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..plan.kinds import BALANCE, KINDS
from ..runtime.buffered_kv_store import CHANGES, BufferedKvStore
from ..runtime.time_slice import piecewise
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


class LoggedEpisode(NamedTuple):
    """What rows of one execution, or of one time of automatic balancing, share."""

    plan: str
    kind: str
    begun_at: float


class PartIndex(NamedTuple):
    """What the rows of one part are about."""

    last_at: float                       # of its newest row, seconds since the epoch
    episodes: Tuple[LoggedEpisode, ...]  # by their last row, the oldest first

    def has(self, plan: str, begun_at: float) -> bool:
        """True where a row is of this episode."""
        return any((one.plan, one.begun_at) == (plan, begun_at) for one in self.episodes)


class _Part(NamedTuple):
    """Rows that are stored together."""

    number: int
    rows: int
    packed: str
    about: PartIndex


class ChangeLog:
    """Used under the journal's lock, but for what only reads, which any thread may call."""

    def __init__(self, store: BufferedKvStore) -> None:
        self._store = store
        self._parts: Tuple[_Part, ...] = ()   # replaced whole; the newest last
        self._newest: List[ChangeRow] = []    # rows of the last part
        self._batch: List[ChangeRow] = []     # those of them, and before, that are being sent
        self._batch_part = 0                  # number of the part that has the first of these
        self._sent_at: Optional[float] = None   # when that began
        self._dropped: FrozenSet[Tuple[str, float]] = frozenset()   # (plan, begun_at), see below
        self._dropped_at = 0.0   # of the newest row that was dropped, seconds since the epoch
        #: of the osdmap that followed the last batch; 0 where a former mgr has sent it
        self.epoch = 0

    def is_sending(self, now: float) -> bool:
        """True while a batch is on its way to the monitors."""
        return self._sent_at is not None and 0.0 <= now - self._sent_at < _SENDING_SECONDS

    def rows(self, may_begin: Callable[[PartIndex], bool] = lambda index: True) -> List[ChangeRow]:
        """All rows, the oldest first, from the first part on of which `may_begin` holds."""
        parts = dropwhile(lambda part: not may_begin(part.about), self._parts)
        return [row for part in piecewise(parts, 1) for row in _unpacked(part.packed)]

    def episodes(self) -> List[LoggedEpisode]:
        """What there are rows of, by the last row of each, the oldest first."""
        found: Dict[LoggedEpisode, None] = {}
        for part in self._parts:
            for episode in part.about.episodes:
                found.pop(episode, None)
                found[episode] = None
        return list(found)

    def lacks_beginning(self, plan: str, begun_at: float) -> bool:
        """True where the first rows of an episode have been dropped."""
        return (plan, begun_at) in self._dropped

    @property
    def dropped_at(self) -> float:
        """When the newest row was written that has been dropped, seconds since the epoch; 0.0 where
        none has."""
        return self._dropped_at

    def append(self, rows: Sequence[ChangeRow], now: float) -> None:
        """Adds the rows of a batch that is about to be sent; the store's `flush` writes them."""
        self._batch, self._sent_at = list(rows), now
        left, self._batch_part = self._batch, 0
        while left:
            number = self._parts[-1].number if self._parts else 1
            if len(self._newest) >= _ROWS_A_PART:
                number, self._newest = number + 1, []
            room = _ROWS_A_PART - len(self._newest)
            self._newest, left = self._newest + left[:room], left[room:]
            self._batch_part = self._batch_part or number
            self._put(number, self._newest)
        self._drop_oldest()

    def settle(self, items: Optional[Mapping[str, UpmapItems]], epoch: int = 0) -> None:
        """Ends a batch by the upmap items that followed it, of which the monitor may have kept
        fewer pairs, or none; None where nothing was sent. `epoch`: of the osdmap that has these."""
        self._sent_at, batch, self._batch = None, self._batch, []
        self.epoch = max(self.epoch, epoch)
        kept = {row: row._replace(after=present) for row in batch if items is not None
                for present in (items.get(row.pgid, ()),)
                if row.before != present and set(present) < set(row.after)}
        for part in self._parts if kept else ():
            if part.number < self._batch_part:
                continue
            rows = _unpacked(part.packed)
            if any(row in kept for row in rows):
                self._put(part.number, [kept.get(row, row) for row in rows])
        if kept:
            self._newest = [kept.get(row, row) for row in self._newest]

    def restore(self) -> None:
        """Reads what is stored, as far as it can be understood."""
        head = self._store.read(CHANGES) or {}
        last = head.get("last")
        parts: List[_Part] = []
        for number in self._stored_numbers():
            value = self._store.read(_key(number)) or {}
            packed = value.get("packed")
            rows = _unpacked(packed) if isinstance(packed, str) else []
            if not rows:
                continue
            part = _Part(number, len(rows), str(packed), _index(rows))
            if isinstance(last, int) and number > last and not _follows(parts, part, last):
                self._store.put(_key(number), None)   # left over of a log that was lost
            else:
                parts.append(part)
        self._parts = tuple(parts)
        self._newest = _unpacked(parts[-1].packed) if parts else []
        self._dropped, self._dropped_at = _dropped(head)

    def _stored_numbers(self) -> List[int]:
        """Of the parts in the store, in order: its keys tell them, whatever became of the head."""
        names = (key.rpartition("/")[2] for key in self._store.keys(f"{CHANGES}/"))
        numbers = sorted(int(name) for name in names if name.isdigit() and len(name) < 10)
        return numbers[-_MOST_PARTS:]

    def _put(self, number: int, rows: Sequence[ChangeRow]) -> None:
        """Replaces a part, or adds the newest."""
        part = _Part(number, len(rows), _packed(rows), _index(rows))
        others = [one for one in self._parts if one.number != number]
        self._parts = tuple(sorted([*others, part]))
        self._store.put(_key(number), {"packed": part.packed})
        self._put_head()

    def _put_head(self) -> None:
        self._store.put(CHANGES, {
            "first": self._parts[0].number, "last": self._parts[-1].number,
            **({"dropped": sorted(map(list, self._dropped)), "dropped_at": self._dropped_at}
               if self._dropped_at else {})})

    def _drop_oldest(self) -> None:
        while sum(part.rows for part in self._parts) > MOST_ROWS:
            gone, self._parts = self._parts[0], self._parts[1:]
            self._store.put(_key(gone.number), None)
            left = {(one.plan, one.begun_at) for part in self._parts for one in part.about.episodes}
            self._dropped = frozenset(left) & self._dropped.union(
                (one.plan, one.begun_at) for one in gone.about.episodes)
            self._dropped_at = max(self._dropped_at, gone.about.last_at)
            self._put_head()


def _index(rows: Sequence[ChangeRow]) -> PartIndex:
    episodes: Dict[LoggedEpisode, None] = {}
    for row in rows:
        episode = LoggedEpisode(row.plan, row.kind, row.begun_at)
        episodes.pop(episode, None)
        episodes[episode] = None
    return PartIndex(max((row.at for row in rows), default=0.0), tuple(episodes))


def _follows(parts: Sequence[_Part], part: _Part, last: int) -> bool:
    """True for the part that the last mgr wrote, and died before it wrote the head."""
    return part.number == last + 1 and (
        not parts or part.about.last_at >= parts[-1].about.last_at)


def _dropped(head: Mapping[str, Any]) -> Tuple[FrozenSet[Tuple[str, float]], float]:
    try:
        return (frozenset((str(plan), float(begun_at)) for plan, begun_at in head["dropped"]),
                float(head["dropped_at"]))
    except (KeyError, TypeError, ValueError):
        return frozenset(), 0.0


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
