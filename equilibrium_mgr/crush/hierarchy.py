"""The CRUSH hierarchy, read from the dictionary of `CRUSHMap.dump()`.

Device classes need no special case: Ceph keeps a shadow tree per class (`default~hdd`), and a rule
that takes a class takes the shadow bucket.
"""
from __future__ import annotations

from collections import defaultdict
from copy import copy
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..runtime.time_slice import piecewise

#: CRUSH weights in a dump are 16.16 fixed point; by convention 1.0 stands for 1 TiB.
WEIGHT_ONE = 0x10000

OSD_TYPE = "osd"

_BUCKETS_A_PIECE = 100   # before it gives way again: about a millisecond


class Bucket(NamedTuple):
    """An inner node of the hierarchy, such as a host or a rack."""

    id: int
    name: str
    type_name: str
    type_id: int
    items: Tuple[Tuple[int, float], ...]  # (item id, CRUSH weight)


class Subtree(NamedTuple):
    """The OSDs under one bucket, with their CRUSH weights and their ancestors by type.

    The weights below a bucket without weight are 0, because CRUSH places nothing there.
    """

    weights: Dict[int, float]
    ancestors: Dict[str, Dict[int, int]]   # type → OSD id → its bucket of that type

    def bucket_of(self, type_name: str) -> Dict[int, int]:
        """Returns OSD id → the bucket of that type above it; an OSD without one is absent."""
        if type_name == OSD_TYPE:
            return {osd: osd for osd in self.weights}
        return self.ancestors.get(type_name, {})


class CrushHierarchy:
    """Buckets, devices and rules of one CRUSH map. Collects each subtree once and keeps it."""

    def __init__(self, dump: Mapping[str, Any]) -> None:
        get = dump.get
        self.device_class: Dict[int, str] = {
            d["id"]: d.get("class", "") for d in get("devices", [])}
        self.buckets: Dict[int, Bucket] = {b["id"]: _bucket(b) for b in get("buckets", [])}
        self.rules: Dict[int, Mapping[str, Any]] = {r["rule_id"]: r for r in get("rules", [])}
        self.type_ids: Dict[str, int] = {t["name"]: t["type_id"] for t in get("types", [])}
        for bucket in self.buckets.values():
            self.type_ids.setdefault(bucket.type_name, bucket.type_id)
        self._subtrees: Dict[int, Subtree] = {}
        self._places: Optional[Dict[int, Tuple[Any, ...]]] = None

    def changed(self, buckets: Dict[int, Bucket],
                device_class: Dict[int, str]) -> CrushHierarchy:
        """Returns a map with other buckets and device classes, and the same rules and types."""
        other = copy(self)
        other.buckets = buckets
        other.device_class = device_class
        other._subtrees = {}
        other._places = None
        return other

    def name_of(self, item: int) -> str:
        """Returns the name of a bucket or OSD."""
        return f"osd.{item}" if item >= 0 else self.buckets[item].name

    def rule_name(self, rule_id: int) -> str:
        """Returns the name of a CRUSH rule, its id if it has none."""
        return str(self.rules[rule_id].get("rule_name") or rule_id)

    def subtree(self, root: int) -> Subtree:
        """Returns the subtree under a bucket, or of a single OSD, which a rule can take too."""
        if root not in self._subtrees:
            weights: Dict[int, float] = {}
            ancestors: Dict[str, Dict[int, int]] = {}
            if root >= 0:
                weights[root] = 1.0
            else:
                self._descend(root, {}, weights, ancestors, True)
            self._subtrees[root] = Subtree(weights, ancestors)
        return self._subtrees[root]

    def buckets_of_type(self, root: int, type_name: str) -> Iterator[int]:
        """Yields buckets of a type at or under `root`, in tree order, none inside another.

        A bucket with a lower type id than the wanted one hides the buckets under it, as in Ceph's
        CrushWrapper::get_children_of_type.
        """
        bucket = self.buckets.get(root)
        if bucket is None or bucket.type_id < self.type_ids.get(type_name, 0):
            return
        if bucket.type_name == type_name:
            yield root
            return
        for item, _ in bucket.items:
            yield from self.buckets_of_type(item, type_name)

    def places(self) -> Dict[int, Tuple[Any, ...]]:
        """Returns OSD id → its CRUSH weights and the buckets above it, all as nested tuples."""
        if self._places is None:
            parents: Dict[int, List[Tuple[int, float]]] = defaultdict(list)
            for bucket in piecewise(self.buckets.values(), _BUCKETS_A_PIECE):
                for item, weight in bucket.items:
                    parents[item].append((bucket.id, weight))

            def above(item: int) -> Tuple[Any, ...]:
                return tuple([(parent, above(parent)) for parent, _ in parents.get(item, ())])

            places: Dict[int, Tuple[Any, ...]] = {}
            for osd in self.device_class:
                places[osd] = tuple([
                    (weight, parent, above(parent)) for parent, weight in parents.get(osd, ())])
            self._places = places   # whole: other threads may read it
        return self._places

    def hosts(self) -> Dict[int, str]:
        """Returns OSD id → the name of its host bucket, without shadow trees. If an OSD is in
        several hosts, the first in the dump counts."""
        found: Dict[int, str] = {}
        for bucket in self.buckets.values():
            if bucket.type_name == "host" and "~" not in bucket.name:
                for osd in self.subtree(bucket.id).weights:
                    found.setdefault(osd, bucket.name)
        return found

    def _descend(self, bucket_id: int, path: Dict[str, int], weights: Dict[int, float],
                 ancestors: Dict[str, Dict[int, int]], has_weight: bool) -> None:
        """Adds the OSDs under a bucket. `path`: type → the bucket of this type above."""
        bucket = self.buckets.get(bucket_id)
        if bucket is None:
            return
        for item, weight in bucket.items:
            if item < 0 and item in self.buckets:
                # CRUSH stops at the first bucket of the wanted type, the outermost one
                type_name = self.buckets[item].type_name
                self._descend(item, {type_name: item, **path}, weights, ancestors,
                              has_weight and weight > 0.0)
            elif not weights.get(item):  # an OSD in several buckets counts in the first with weight
                weights[item] = weight if has_weight else 0.0
                for type_name, ancestor in path.items():
                    ancestors.setdefault(type_name, {})[item] = ancestor


def _bucket(dump: Mapping[str, Any]) -> Bucket:
    items = [(item["id"], item["weight"] / WEIGHT_ONE) for item in dump.get("items", [])]
    return Bucket(dump["id"], dump.get("name", ""), dump["type_name"], dump.get("type_id", 0),
                  tuple(items))
