"""The shadow trees of device classes: copies of every tree with the OSDs of one class only.

Rules for a class take the shadow of a bucket, `default~hdd`. Buckets without OSDs of the class
have shadows without items.
"""

from __future__ import annotations

from typing import Dict, List, Set, Tuple

from .dump_editor import DumpEditor

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
    """{(bucket, class): shadow bucket}."""
    plain = {bucket["name"]: number for number, bucket in editor.buckets.items()}
    found: _ShadowIds = {}
    for number, bucket in editor.buckets.items():
        name, mark, device_class = bucket["name"].partition("~")
        if mark and name in plain:
            found[(plain[name], device_class)] = number
    return found


def _classes(editor: DumpEditor, old_ids: _ShadowIds) -> List[str]:
    """The classes that need shadows, in Ceph's order: by age.

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
        items, places = [], []
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
        """The shadow of a bucket that has two parents and is already copied, or 0."""
        return self._editor.find(f"{self._editor.buckets[number]['name']}~{self._class}") or 0

    def _clone_arguments(self, number: int, shadow: int, places: List[int]) -> None:
        """Weight-sets of the shadow: those of its OSDs, and the sums of the shadows below.

        Ceph 16 loses the sums of all positions but the last one here. That is not simulated, since
        the balancer makes weight-sets of one position.
        """
        items = self._editor.buckets[shadow]["items"]
        for entries in self._editor.choose_args.values():
            weight_set = entries.get(number, {}).get("weight_set")
            if not weight_set:
                continue
            entries[shadow] = {"bucket_id": shadow, "weight_set": [
                [weights[place] if item["id"] >= 0 else _total(entries, item["id"], position)
                 for place, item in zip(places, items)]
                for position, weights in enumerate(weight_set)]}


def _total(entries: Dict[int, Dict[str, List[List[float]]]], shadow: int, position: int) -> float:
    weight_set = entries.get(shadow, {}).get("weight_set", ())
    return sum(weight_set[position]) if position < len(weight_set) else 0.0
