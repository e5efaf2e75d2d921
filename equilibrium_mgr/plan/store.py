"""Plans kept in the mgr's key-value store, so that they survive a mgr failover.

A value in the store is limited in size (runtime/kv_store.py), so a plan is compressed and split
into parts. The head is written last and names its parts. Parts without a head that names them come
from an interrupted write, and are deleted.
"""
from __future__ import annotations

import json
import re
import threading
import zlib
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..runtime.kv_store import MAX_PART_BYTES, KeyValueStore, packed, unpacked
from .model import BadPlan, Plan, plan_from_dict, typed


MAX_PLANS = 100
_HEAD_VERSION = 1
#: A plan of a million moves has 200 parts and unpacks to 200 MB.
_MOST_PARTS = 10_000
_MOST_UNPACKED_BYTES = 1 << 30
_LATEST = 1e11   # seconds since the epoch
_PREFIX = "plan/"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class PlanHead(NamedTuple):
    """The figures of a kept plan that need no unpacking."""

    name: str
    created_at: float      # seconds since the epoch
    osdmap_epoch: int
    moves: int
    bytes: int
    generation: int        # the parts of a replaced plan have another one
    parts: int
    aim: str               # this and the following: as in Plan
    topology: str
    pool_pgs: Dict[str, int]
    room_gained_bytes: Optional[int]
    kind: str

    def to_json(self) -> str:
        """Returns the form in which it is stored."""
        return json.dumps({"version": _HEAD_VERSION, **self._asdict()}, sort_keys=True)


def valid_plan_name(name: str) -> bool:
    """Returns True if this is a valid name of a plan."""
    return _NAME.fullmatch(name) is not None


class PlanStore:
    """The kept plans.

    Every write waits for a monitor, so no command writes: the job thread puts plans, and the serve
    loop calls `tidy`, which deletes removed plans.
    """

    _heads: Optional[Dict[str, PlanHead]] = None
    _unpacked: Optional[Tuple[PlanHead, Plan]] = None
    _untidy = True

    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv
        self._lock = threading.Lock()
        self._removed: Set[str] = set()
        self._being_written: Set[str] = set()

    def heads(self) -> Dict[str, PlanHead]:
        """Returns name → head of every kept plan."""
        with self._lock:
            return dict(self._loaded())

    def put(self, name: str, plan: Plan, created_at: float) -> PlanHead:
        """Keeps a plan under a name, in place of an older one; waits for a monitor."""
        text = packed(plan.to_dict())
        parts = [text[i:i + MAX_PART_BYTES] for i in range(0, len(text), MAX_PART_BYTES)]
        with self._lock:
            self._being_written.add(name)  # tidy must not delete parts while the head is missing
        try:
            return self._write(name, plan, parts, created_at)
        finally:
            with self._lock:
                self._being_written.discard(name)

    def _write(self, name: str, plan: Plan, parts: List[str], created_at: float) -> PlanHead:
        """Writes the parts and then the head."""
        known = self._generations(name)
        old = self.heads().get(name)
        if old is not None:
            known.append(old.generation)
        generation = 1 + max(known, default=0)
        for index, part in enumerate(parts):
            self._kv.set_store(_part_key(name, generation, index), part)
        head = PlanHead(
            name=name,
            created_at=created_at,
            osdmap_epoch=plan.epoch,
            moves=len(plan.moves),
            bytes=plan.bytes,
            generation=generation,
            parts=len(parts),
            aim=plan.aim,
            topology=plan.topology,
            pool_pgs=plan.pool_pgs,
            room_gained_bytes=plan.room_gained_bytes,
            kind=plan.kind)
        self._kv.set_store(_head_key(name), head.to_json())
        with self._lock:
            self._loaded()[name] = head
            self._removed.discard(name)
            self._unpacked = (head, plan)
            self._untidy = True
        return head

    def get(self, name: str) -> Plan:
        """Unpacks a plan. Raises KeyError for an unknown name and BadPlan for a damaged one."""
        with self._lock:
            head = self._loaded()[name]
            if self._unpacked is not None and self._unpacked[0] == head:
                return self._unpacked[1]
        parts: List[str] = []
        for index in range(head.parts):
            part = self._kv.get_store(_part_key(name, head.generation, index))
            if part is None:
                raise BadPlan(f"plan '{name}' is incomplete in the key-value store")
            parts.append(part)
        try:
            plan = plan_from_dict(json.loads(unpacked("".join(parts), _MOST_UNPACKED_BYTES)))
        except (zlib.error, ValueError, RecursionError) as error:
            raise BadPlan(f"plan '{name}' is damaged in the key-value store ({error})") from error
        with self._lock:
            self._unpacked = (head, plan)
        return plan

    def remove(self, name: str) -> None:
        """Removes a plan; `tidy` deletes it from the store. Raises KeyError for an unknown name."""
        with self._lock:
            del self._loaded()[name]
            self._removed.add(name)
            self._untidy = True

    def tidy(self) -> None:
        """Deletes removed plans, and parts that no head names, from the store.

        Cheap if nothing has changed. Plans with an unreadable head stay, because a newer release
        may have written them.
        """
        with self._lock:
            if not self._untidy:
                return
            removed, self._removed = self._removed, set()
            heads = dict(self._loaded())
            writing = set(self._being_written)
            self._untidy = bool(writing)
        try:
            self._delete_stale(removed, heads, writing)
        except BaseException:
            with self._lock:   # for the next round
                self._removed |= removed
                self._untidy = True
            raise

    def _delete_stale(self, removed: Set[str], heads: Mapping[str, PlanHead],
                      writing: Set[str]) -> None:
        """Deletes the keys of removed plans, and of parts that no head names."""
        stored = self._kv.get_store_prefix(_PREFIX)
        gone = removed - set(heads)
        for key in sorted(stored):  # heads sort before parts
            name, _, rest = key[len(_PREFIX):].partition("/")
            if name in writing:
                continue
            if name in heads:
                stale = rest.startswith("part/") and not _belongs(rest, heads[name])
            else:
                stale = name in gone or _head_key(name) not in stored
            if stale and not self._is_new(name, heads):
                self._kv.set_store(key, None)

    def _is_new(self, name: str, heads: Mapping[str, PlanHead]) -> bool:
        """Returns True if the job thread has put the plan again, or begun to. `heads`: those before
        that."""
        with self._lock:
            if name in self._being_written:
                return True
            return name not in heads and name in self._loaded()

    def _loaded(self) -> Dict[str, PlanHead]:
        """Returns the heads, read from the store once. The caller holds the lock."""
        if self._heads is None:
            heads: Dict[str, PlanHead] = {}
            for key, value in self._kv.get_store_prefix(_PREFIX).items():
                if key.endswith("/head"):
                    head = _parse_head(value)
                    if head is not None and key == _head_key(head.name):
                        heads[head.name] = head
            self._heads = heads
        return self._heads

    def _generations(self, name: str) -> List[int]:
        """Returns the generations of this plan that still have parts in the store."""
        prefix = f"{_PREFIX}{name}/part/"
        generations = [key[len(prefix):].split("/")[0]
                       for key in self._kv.get_store_prefix(prefix)]
        return [int(generation) for generation in generations if generation.isdigit()]


def _head_key(name: str) -> str:
    return f"{_PREFIX}{name}/head"


def _part_key(name: str, generation: int, index: int) -> str:
    return f"{_PREFIX}{name}/part/{generation}/{index}"


def _belongs(rest: str, head: PlanHead) -> bool:
    """Returns True if `part/GENERATION/INDEX` of a key is a part of the head."""
    generation, _, index = rest[len("part/"):].partition("/")
    if generation != str(head.generation) or not index.isdigit():
        return False
    return int(index) < head.parts


def _parse_head(value: str) -> Optional[PlanHead]:
    """Returns a head, or None if it cannot be read: a damaged value must not stop the module."""
    try:
        dump: Mapping[str, Any] = json.loads(value)
        if dump["version"] != _HEAD_VERSION:
            return None
        head: PlanHead = typed(dump, PlanHead)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    if not valid_plan_name(head.name) or head.generation < 0:
        return None
    if not 0 <= head.created_at <= _LATEST or not 0 <= head.parts <= _MOST_PARTS:
        return None
    return head
