"""The buckets of a CRUSH dump, prepared for drawing items.

The shadow trees of device classes: copies of every tree with the OSDs of one class only.

Rules for a class take the shadow of a bucket, `default~hdd`. Buckets without OSDs of the class
have shadows without items.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .dump_editor import DumpEditor
from .hashes import WEIGHT_ONE, Straw2


#: The choose_args set of pools without one of their own.
_DEFAULT_SET = "-1"


class Bucket:
    """A bucket; `straws` has one entry per weight-set position, none without items."""

    __slots__ = ("type_id", "straws")

    def __init__(self, type_id: int, straws: List[Straw2]) -> None:
        self.type_id = type_id
        self.straws = straws

    def draw(self, x: int, r: int, position: int) -> int:
        """Returns the item that wins; positions after the last weight-set use the last one."""
        straws = self.straws
        if position >= len(straws):
            position = -1
        return straws[position].draw(x, r)


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
        """Returns True if a `take` of the item finds a device or a bucket."""
        if item < 0:
            return item in self._dumped
        return item < self._max_devices

    def bucket(self, bucket_id: int) -> Bucket:
        """Returns a bucket; ValueError if it, or one below it, is of a kind that is not computed
        here.
        """
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
    """Returns the choose_args set of that name (a pool id), else the default one, else none."""
    sets: Mapping[str, Sequence[Mapping[str, Any]]] = dump.get("choose_args") or {}
    if key is not None:
        chosen = sets.get(key)
        if chosen is not None:
            return chosen
    return sets.get(_DEFAULT_SET, ())


def _check_kind(dumped: Mapping[str, Any]) -> None:
    name = dumped.get("name", dumped["id"])
    algorithm = dumped.get("alg", "straw2")
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
    weight_sets = [list(map(_fixed, weights)) for weights in args.get("weight_set", ())]
    weight_sets = weight_sets or [[item["weight"] for item in items]]
    for weights in weight_sets:
        if not len(weights) == len(hash_ids) == len(ids):
            raise ValueError(f"choose_args of CRUSH bucket {args['bucket_id']} are not as many as "
                             "its items")
    return [Straw2(ids, weights, hash_ids) for weights in weight_sets]


def _fixed(weight: float) -> int:
    """Returns a weight-set's weight as 16.16; dumps give it as a number of ones."""
    return int(round(weight * WEIGHT_ONE))


_ShadowIds = Dict[Tuple[int, str], int]


def rebuild_shadow_trees(editor: DumpEditor) -> None:
    """Rebuilds all shadow trees from the plain trees, as Ceph does when an item is added.

    Existing shadows keep their ids; new ones get the first free ids, subtree by subtree.
    """
    old_ids = _shadow_ids(editor)
    classes = _classes(editor, old_ids)
    for shadow in old_ids.values():
        editor.remove_bucket(shadow)
    listed = {item["id"] for bucket in editor.buckets.values() for item in bucket["items"]}
    roots = sorted(number for number in editor.buckets if number not in listed)
    for root in roots:
        for device_class in classes:
            _Cloner(editor, device_class, old_ids).clone(root)


def _shadow_ids(editor: DumpEditor) -> _ShadowIds:
    """Returns {(bucket, class): shadow bucket}."""
    plain = {bucket["name"]: number for number, bucket in editor.buckets.items()}
    found: _ShadowIds = {}
    for number, bucket in editor.buckets.items():
        name, mark, device_class = bucket["name"].partition("~")
        if mark and name in plain:
            found[(plain[name], device_class)] = number
    return found


def _classes(editor: DumpEditor, old_ids: _ShadowIds) -> List[str]:
    """Returns the classes that need shadows, in Ceph's order: by age.

    Dumps do not contain the age, but older classes have ids closer to -1.
    """
    used: Set[str] = {device["class"] for device in editor.devices.values() if device.get("class")}
    takes = {step["item"] for rule in editor.rules for step in rule["steps"]
             if step.get("op") == "take"}
    used |= {device_class for (_, device_class), shadow in old_ids.items() if shadow in takes}
    newest: Dict[str, int] = {}
    for (_, device_class), shadow in old_ids.items():
        newest[device_class] = max(shadow, newest.get(device_class, shadow))
    return sorted(used, key=lambda name: (name not in newest, -newest.get(name, 0), name))


class _Cloner:
    """Copies trees for one class."""

    def __init__(self, editor: DumpEditor, device_class: str, old_ids: _ShadowIds) -> None:
        self._editor = editor
        self._class = device_class
        self._old_ids = old_ids
        self._taken = dict.fromkeys(old_ids.values())

    def clone(self, number: int) -> int:
        """Makes the shadow of a bucket and of its subtree; returns its id."""
        editor = self._editor
        original = editor.buckets[number]
        items = []
        places = []
        for place, item in enumerate(original["items"]):
            if item["id"] < 0:
                child = self._existing(item["id"]) or self.clone(item["id"])
                items.append({"id": child, "weight": editor.buckets[child]["weight"]})
            elif editor.devices.get(item["id"], {}).get("class") == self._class:
                items.append({"id": item["id"], "weight": item["weight"]})
            else:
                continue
            places.append(place)
        shadow = self._old_ids.get((number, self._class)) or editor.free_id(self._taken)
        editor.buckets[shadow] = {**original, "id": shadow, "items": items,
                                 "name": f"{original['name']}~{self._class}",
                                 "weight": sum(item["weight"] for item in items)}
        self._clone_arguments(number, shadow, places)
        return shadow

    def _existing(self, number: int) -> int:
        """Returns the shadow of a bucket that has two parents and is already copied, or 0."""
        return self._editor.find(f"{self._editor.buckets[number]['name']}~{self._class}") or 0

    def _clone_arguments(self, number: int, shadow: int, places: List[int]) -> None:
        """Makes the weight-sets of the shadow: those of its OSDs, and the sums of the shadows
        below.

        Ceph 16 loses the sums of all positions but the last one here. That is not simulated, since
        the balancer makes weight-sets of one position.
        """
        items = self._editor.buckets[shadow]["items"]
        for entries in self._editor.choose_args.values():
            weight_set = entries.get(number, {}).get("weight_set")
            if not weight_set:
                continue
            sets: List[List[float]] = []
            for position, weights in enumerate(weight_set):
                own = [weights[place] for place in places]
                for place, item in enumerate(items):
                    if item["id"] < 0:
                        own[place] = _total(entries, item["id"], position)
                sets.append(own)
            entries[shadow] = {"bucket_id": shadow, "weight_set": sets}


def _total(entries: Dict[int, Dict[str, List[List[float]]]], shadow: int, position: int) -> float:
    weight_set = entries.get(shadow, {}).get("weight_set", ())
    if position >= len(weight_set):
        return 0.0
    return sum(weight_set[position])
