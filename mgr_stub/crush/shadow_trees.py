"""The shadow trees of device classes: a copy of every tree that holds the OSDs of one class only.

Rules for a class take the shadow of a bucket, `default~hdd`. Shadows of buckets without OSDs of
the class exist too, without items.
"""

from __future__ import annotations

from typing import Dict, List, Set, Tuple

from .draft import Draft

_ShadowIds = Dict[Tuple[int, str], int]


def rebuild_shadow_trees(draft: Draft) -> None:
    """Makes all shadow trees anew from the plain trees, as Ceph does when an item is added.

    Shadows that were there keep their ids; new ones get the first free ids, subtree by subtree.
    """
    old_ids = _shadow_ids(draft)
    classes = _classes(draft, old_ids)
    for shadow in old_ids.values():
        draft.remove_bucket(shadow)
    listed = {item["id"] for bucket in draft.buckets.values() for item in bucket["items"]}
    roots = sorted(number for number in draft.buckets if number not in listed)
    for root in roots:
        for device_class in classes:
            _Cloner(draft, device_class, old_ids).clone(root)


def _shadow_ids(draft: Draft) -> _ShadowIds:
    """{(bucket, class): shadow bucket}."""
    plain = {bucket["name"]: number for number, bucket in draft.buckets.items()}
    found: _ShadowIds = {}
    for number, bucket in draft.buckets.items():
        name, mark, device_class = bucket["name"].partition("~")
        if mark and name in plain:
            found[(plain[name], device_class)] = number
    return found


def _classes(draft: Draft, old_ids: _ShadowIds) -> List[str]:
    """The classes that need shadows, in Ceph's order: by age.

    Dumps do not tell the age, but the first class to come got the ids next to -1.
    """
    used: Set[str] = {device["class"] for device in draft.devices.values() if device.get("class")}
    takes = {step["item"] for rule in draft.rules for step in rule["steps"]
             if step.get("op") == "take"}
    used |= {device_class for (_, device_class), shadow in old_ids.items() if shadow in takes}
    newest: Dict[str, int] = {}
    for (_, device_class), shadow in old_ids.items():
        newest[device_class] = max(shadow, newest.get(device_class, shadow))
    return sorted(used, key=lambda name: (name not in newest, -newest.get(name, 0), name))


class _Cloner:
    """Copies trees for one class."""

    def __init__(self, draft: Draft, device_class: str, old_ids: _ShadowIds) -> None:
        self._draft = draft
        self._class = device_class
        self._old_ids = old_ids
        self._taken = dict.fromkeys(old_ids.values())

    def clone(self, number: int) -> int:
        """Makes the shadow of a bucket and of all below it; its id."""
        draft = self._draft
        original = draft.buckets[number]
        items, places = [], []
        for place, item in enumerate(original["items"]):
            if item["id"] < 0:
                child = self._existing(item["id"]) or self.clone(item["id"])
                items.append({"id": child, "weight": draft.buckets[child]["weight"]})
            elif draft.devices.get(item["id"], {}).get("class") == self._class:
                items.append({"id": item["id"], "weight": item["weight"]})
            else:
                continue
            places.append(place)
        shadow = self._old_ids.get((number, self._class)) or draft.free_id(self._taken)
        draft.buckets[shadow] = {**original, "id": shadow, "items": items,
                                 "name": f"{original['name']}~{self._class}",
                                 "weight": sum(item["weight"] for item in items)}
        self._clone_arguments(number, shadow, places)
        return shadow

    def _existing(self, number: int) -> int:
        """The shadow of a bucket that stands below two others and is copied already, or 0."""
        return self._draft.find(f"{self._draft.buckets[number]['name']}~{self._class}") or 0

    def _clone_arguments(self, number: int, shadow: int, places: List[int]) -> None:
        """Weight-sets of the shadow: those of its OSDs, and the sums of the shadows below.

        Ceph 16 loses the sums of all positions but the last one here. The balancer makes one
        position only, so that is not simulated.
        """
        items = self._draft.buckets[shadow]["items"]
        for entries in self._draft.choose_args.values():
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
