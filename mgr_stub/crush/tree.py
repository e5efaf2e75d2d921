"""The buckets of a CRUSH dump, prepared for drawing items."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from .constants import WEIGHT_ONE
from .straw2 import Straw2

#: The choose_args set of pools without one of their own.
_DEFAULT_SET = "-1"


class Bucket:
    """A bucket; `straws` has one entry per weight-set position, none where there are no items."""

    __slots__ = ("type_id", "straws")

    def __init__(self, type_id: int, straws: List[Straw2]) -> None:
        self.type_id = type_id
        self.straws = straws

    def draw(self, x: int, r: int, position: int) -> int:
        """The item that wins; positions beyond the last weight-set use the last one."""
        straws = self.straws
        return straws[position if position < len(straws) else -1].draw(x, r)


class Tree:
    """All buckets under one set of choose_args; each is prepared at its first use."""

    def __init__(self, dump: Mapping[str, Any], choose_args: Sequence[Mapping[str, Any]],
                 type_ids: Mapping[str, int]) -> None:
        self._dumped = {bucket["id"]: bucket for bucket in dump["buckets"]}
        self._args = {args["bucket_id"]: args for args in choose_args}
        self._type_ids = type_ids
        self._max_devices = 1 + max((device["id"] for device in dump["devices"]), default=-1)
        #: The buckets asked for so far, with all below them.
        self.buckets: Dict[int, Bucket] = {}

    def has(self, item: int) -> bool:
        """True if a `take` of the item finds a device or a bucket."""
        return item < self._max_devices if item >= 0 else item in self._dumped

    def bucket(self, bucket_id: int) -> Bucket:
        """A bucket; ValueError if it, or one below it, is of a kind that is not computed here."""
        if bucket_id not in self.buckets:
            dumped = self._dumped.get(bucket_id)
            if dumped is None:
                raise ValueError(f"CRUSH bucket {bucket_id} does not exist")
            _check_kind(dumped)
            bucket = Bucket(self._type_ids[dumped["type_name"]],
                            _straws(dumped["items"], self._args.get(bucket_id)))
            for item in dumped["items"]:
                if item["id"] < 0:
                    self.bucket(item["id"])
            self.buckets[bucket_id] = bucket
        return self.buckets[bucket_id]


def choose_args_for(dump: Mapping[str, Any], key: Optional[str]) -> Sequence[Mapping[str, Any]]:
    """The choose_args set of that name (a pool id), else the default one, else none."""
    sets: Mapping[str, Sequence[Mapping[str, Any]]] = dump.get("choose_args") or {}
    chosen = sets.get(key) if key is not None else None
    return chosen if chosen is not None else sets.get(_DEFAULT_SET, ())


def _check_kind(dumped: Mapping[str, Any]) -> None:
    name, algorithm = dumped.get("name", dumped["id"]), dumped.get("alg", "straw2")
    if algorithm != "straw2":
        raise ValueError(f"CRUSH bucket {name} is of algorithm {algorithm}; only straw2 is "
                         "computed")
    if dumped.get("hash", "rjenkins1") != "rjenkins1":
        raise ValueError(f"CRUSH bucket {name} has the hash {dumped['hash']}; only rjenkins1 is "
                         "computed")


def _straws(items: Sequence[Mapping[str, Any]],
            args: Optional[Mapping[str, Any]]) -> List[Straw2]:
    if not items:
        return []
    ids = [item["id"] for item in items]
    args = args or {}
    hash_ids = args.get("ids") or ids
    weight_sets = [[_fixed(weight) for weight in weights] for weights in args.get("weight_set", ())]
    weight_sets = weight_sets or [[item["weight"] for item in items]]
    for weights in weight_sets:
        if not len(weights) == len(hash_ids) == len(ids):
            raise ValueError(f"choose_args of CRUSH bucket {args['bucket_id']} are not as many as "
                             "its items")
    return [Straw2(ids, weights, hash_ids) for weights in weight_sets]


def _fixed(weight: float) -> int:
    """A weight-set's weight, which dumps give as a number of ones, as 16.16."""
    return int(round(weight * WEIGHT_ONE))
