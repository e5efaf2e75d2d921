"""Editing a CRUSH dump; weights and weight-sets stay consistent up the tree."""

from __future__ import annotations

import copy
import struct
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from .hashes import WEIGHT_ONE

#: choose_args of one bucket: weight_set (weights per position) and ids, both optional.
Arguments = Dict[str, Any]


def to_fixed_point(weight: float) -> int:
    """Returns a CRUSH weight (TiB, by custom) as 16.16, rounded down as Ceph's commands do."""
    single: float = struct.unpack("<f", struct.pack("<f", weight))[0]
    return int(single * WEIGHT_ONE)


class DumpEditor:
    """A copy of a dump that is changed step by step; `dump` gives the result."""

    def __init__(self, dump: Mapping[str, Any]) -> None:
        self._dump: Dict[str, Any] = copy.deepcopy(dict(dump))
        self.buckets: Dict[int, Dict[str, Any]] = {b["id"]: b for b in self._dump["buckets"]}
        self.devices: Dict[int, Dict[str, Any]] = {d["id"]: d for d in self._dump["devices"]}
        self.rules: List[Dict[str, Any]] = self._dump["rules"]
        #: choose_args by set and bucket id
        sets = self._dump.get("choose_args") or {}
        self.choose_args: Dict[str, Dict[int, Arguments]] = {
            key: {entry["bucket_id"]: entry for entry in entries}
            for key, entries in sets.items()}

    def dump(self) -> Dict[str, Any]:
        """Returns the changed dump, in the order in which Ceph writes it."""
        self._sum_weight_sets()
        for bucket in self.buckets.values():
            for position, item in enumerate(bucket["items"]):
                item["pos"] = position
        self._dump["devices"] = [self.devices[osd] for osd in sorted(self.devices)]
        self._dump["buckets"] = [self.buckets[number] for number in _downwards(self.buckets)]
        self._dump["choose_args"] = {
            key: [entries[number] for number in _downwards(entries)]
            for key, entries in self.choose_args.items()}
        return self._dump

    def find(self, name_or_id: Union[int, str]) -> Optional[int]:
        """Returns the id of a bucket by name or id; None if there is none."""
        for number, bucket in self.buckets.items():
            if name_or_id in (number, bucket["name"]):
                return number
        return None

    def free_id(self, taken: Mapping[int, Any]) -> int:
        """Returns the first bucket id from -1 down that is neither in use nor `taken`."""
        number = -1
        while number in self.buckets or number in taken:
            number -= 1
        return number

    def parents(self, item: int) -> Iterator[int]:
        """Yields the ids of the buckets that list an item, shadow ones too."""
        for number, bucket in self.buckets.items():
            if any(entry["id"] == item for entry in bucket["items"]):
                yield number

    def add_bucket(self, name: str, type_name: str, type_id: int) -> int:
        """Adds a straw2 bucket, empty and below nothing yet; returns its id."""
        number = self.free_id({})
        self.buckets[number] = {
            "id": number, "name": name, "type_id": type_id, "type_name": type_name, "weight": 0,
            "alg": "straw2", "hash": "rjenkins1", "items": []}
        for entries in self.choose_args.values():
            positions = _positions(entries)
            if positions:
                entries[number] = {"bucket_id": number,
                                   "weight_set": [[] for _ in range(positions)]}
        return number

    def remove_bucket(self, number: int) -> None:
        """Removes a bucket that no other one lists."""
        del self.buckets[number]
        for entries in self.choose_args.values():
            entries.pop(number, None)

    def add_item(self, number: int, item: int) -> None:
        """Puts an item at the end of a bucket, without weight."""
        self.buckets[number]["items"].append({"id": item, "weight": 0, "pos": 0})
        for args in self._arguments(number):
            for weights in args.get("weight_set", ()):
                weights.append(0.0)
            if args.get("ids"):
                args["ids"].append(item)

    def remove_item(self, number: int, item: int) -> None:
        """Removes an item from a bucket."""
        self.set_weight(number, item, 0)
        items = self.buckets[number]["items"]
        position = [entry["id"] for entry in items].index(item)
        del items[position]
        for args in self._arguments(number):
            for row in args.get("weight_set", []) + [args.get("ids")]:
                if row:
                    del row[position]

    def set_weight(self, number: int, item: int, weight: int) -> None:
        """Gives an item a 16.16 weight in one bucket, and in the weight-sets of that bucket."""
        for position, entry in enumerate(self.buckets[number]["items"]):
            if entry["id"] == item:
                entry["weight"] = weight
                for args in self._arguments(number):
                    for weights in args.get("weight_set", ()):
                        weights[position] = weight / WEIGHT_ONE
        self._update_weights_above(number)

    def _update_weights_above(self, number: int) -> None:
        """Sets the weight of a bucket and of its ancestors to the sum of their items' weights."""
        bucket = self.buckets[number]
        bucket["weight"] = sum(entry["weight"] for entry in bucket["items"])
        for parent in self.parents(number):
            for entry in self.buckets[parent]["items"]:
                if entry["id"] == number:
                    entry["weight"] = bucket["weight"]
            self._update_weights_above(parent)

    def _sum_weight_sets(self) -> None:
        """Gives every bucket a weight-set if any has one, and sums them up the tree.

        Ceph does so at every change of a weight, not only above the changed item.
        """
        for entries in self.choose_args.values():
            positions = _positions(entries)
            summed: Dict[int, List[float]] = {}
            if not positions:
                continue
            for number in self.buckets:
                self._sum_weight_set(entries, number, positions, summed)

    def _sum_weight_set(self, entries: Dict[int, Arguments], number: int, positions: int,
                        summed: Dict[int, List[float]]) -> List[float]:
        """Returns a bucket's weight by position, after those below it have been summed."""
        if number not in summed:
            items = self.buckets[number]["items"]
            args = entries.setdefault(number, {"bucket_id": number})
            if not args.get("weight_set"):
                args["weight_set"] = [[entry["weight"] / WEIGHT_ONE for entry in items]
                                      for _ in range(positions)]
            for place, entry in enumerate(items):
                if entry["id"] < 0:
                    below = self._sum_weight_set(entries, entry["id"], positions, summed)
                    for position, weights in enumerate(args["weight_set"]):
                        weights[place] = below[position]
            summed[number] = list(map(sum, args["weight_set"]))
        return summed[number]

    def _arguments(self, number: int) -> List[Arguments]:
        return [entries[number] for entries in self.choose_args.values() if number in entries]


def _positions(entries: Mapping[int, Arguments]) -> int:
    """Returns the number of positions of the weight-sets of a set of choose_args."""
    return max((len(args.get("weight_set", ())) for args in entries.values()), default=0)


def _downwards(numbered: Mapping[int, Any]) -> List[int]:
    return sorted(numbered, reverse=True)
