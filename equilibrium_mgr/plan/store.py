"""Plans kept in the mgr's key-value store, so that they survive a mgr failover.

A value in the store is limited in size (runtime/kv_store.py), so a plan is compressed and split.
Its head is written last and names the parts that belong to it; parts without a head that names them
are left over from a plan that was replaced or removed, or from an interrupted write. They are
deleted after the next plan that is put.
"""
from __future__ import annotations

import base64
import binascii
import json
import re
import threading
import zlib
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from ..runtime.kv_store import MAX_PART_BYTES, KeyValueStore
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
    """The figures of a kept plan that are known without unpacking it."""

    name: str
    created_at: float      # seconds since the epoch
    osdmap_epoch: int
    moves: int
    bytes: int
    gained_bytes: int
    stop_reason: str
    generation: int        # tells the parts of this plan from those of one it replaced
    parts: int
    aim: str               # as Plan.aim, and so are:
    topology: str
    pool_pgs: Dict[str, int]
    room_gained_bytes: Optional[int]
    kind: str

    def to_json(self) -> str:
        """The form in which it is kept."""
        return json.dumps({"version": _HEAD_VERSION, **self._asdict()}, sort_keys=True)


def valid_plan_name(name: str) -> bool:
    """True for a name that a plan may be kept under."""
    return _NAME.fullmatch(name) is not None


class PlanStore:
    """The kept plans.

    Every write waits for a monitor: plans are put by the job thread, and a command that removes one
    waits for a single write.
    """

    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv
        self._lock = threading.Lock()
        self._heads: Optional[Dict[str, PlanHead]] = None
        self._unpacked: Optional[Tuple[PlanHead, Plan]] = None

    def heads(self) -> Dict[str, PlanHead]:
        """Name → head of every kept plan."""
        with self._lock:
            return dict(self._loaded())

    def put(self, name: str, plan: Plan, created_at: float) -> PlanHead:
        """Keeps a plan under a name, in place of an older one; waits for a monitor."""
        packed = base64.b64encode(zlib.compress(
            json.dumps(plan.to_dict(), separators=(",", ":")).encode())).decode()
        parts = [packed[i:i + MAX_PART_BYTES] for i in range(0, len(packed), MAX_PART_BYTES)]
        old = self.heads().get(name)
        generation = 1 if old is None else old.generation + 1
        for index, part in enumerate(parts):
            self._kv.set_store(_part_key(name, generation, index), part)
        head = PlanHead(name, created_at, plan.epoch, len(plan.moves), plan.bytes,
                        plan.gained_bytes, plan.stop_reason, generation, len(parts), plan.aim,
                        plan.topology, plan.pool_pgs, plan.room_gained_bytes, plan.kind)
        self._kv.set_store(_head_key(name), head.to_json())
        with self._lock:
            self._loaded()[name] = head
            self._unpacked = (head, plan)
        self._delete_stale_parts()
        return head

    def get(self, name: str) -> Plan:
        """Unpacks a plan. Raises KeyError for an unknown name and BadPlan for a damaged one."""
        with self._lock:
            head = self._loaded()[name]
            if self._unpacked is not None and self._unpacked[0] == head:
                return self._unpacked[1]
        stored = (self._kv.get_store(_part_key(name, head.generation, i))
                  for i in range(head.parts))
        parts = [part for part in stored if part is not None]
        if len(parts) < head.parts:
            raise BadPlan(f"plan '{name}' is incomplete in the key-value store")
        try:
            unpacker = zlib.decompressobj()
            plain = unpacker.decompress(base64.b64decode("".join(parts).encode()),
                                        _MOST_UNPACKED_BYTES)
            if not unpacker.eof:
                raise zlib.error("it is cut off or far too large")
            plan = plan_from_dict(json.loads(plain))
        except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
            raise BadPlan(f"plan '{name}' is damaged in the key-value store ({error})") from error
        with self._lock:
            self._unpacked = (head, plan)
        return plan

    def remove(self, name: str) -> None:
        """Removes a plan; waits for a monitor. Raises KeyError for an unknown name."""
        with self._lock:
            del self._loaded()[name]
        self._kv.set_store(_head_key(name), None)

    def _delete_stale_parts(self) -> None:
        """Deletes the parts that no head names. Those of a head that cannot be read are left alone:
        a newer release may have written it."""
        heads, stored = self.heads(), self._kv.get_store_prefix(_PREFIX)
        parts = {_part_key(head.name, head.generation, index)
                 for head in heads.values() for index in range(head.parts)}
        for key in sorted(stored):
            name, _, rest = key[len(_PREFIX):].partition("/")
            if rest.startswith("part/") and key not in parts and (
                    name in heads or _head_key(name) not in stored):
                self._kv.set_store(key, None)

    def _loaded(self) -> Dict[str, PlanHead]:
        """The heads, read from the store once; call it with the lock held."""
        if self._heads is None:
            self._heads = {}
            for key, value in self._kv.get_store_prefix(_PREFIX).items():
                head = _parse_head(value) if key.endswith("/head") else None
                if head is not None and key == _head_key(head.name):
                    self._heads[head.name] = head
        return self._heads


def _head_key(name: str) -> str:
    return f"{_PREFIX}{name}/head"


def _part_key(name: str, generation: int, index: int) -> str:
    return f"{_PREFIX}{name}/part/{generation}/{index}"


def _parse_head(value: str) -> Optional[PlanHead]:
    """A head, or None for one that cannot be read: a damaged value must not stop the module."""
    try:
        dump: Mapping[str, Any] = json.loads(value)
        if dump["version"] != _HEAD_VERSION:
            return None
        head: PlanHead = typed(dump, PlanHead)
        sound = valid_plan_name(head.name) and (
            0 <= head.created_at <= _LATEST and 0 <= head.parts <= _MOST_PARTS
            and head.generation >= 0)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    return head if sound else None
