"""The CRUSH tree and rules of the simulated cluster, from a `ceph osd crush dump`.

No mapping is computed here (cluster/raw_mapping.py does that); this is what the monitor's upmap
checks need.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ..crush.hashes import WEIGHT_ONE

#: Rule keys that a dump has up to Ceph 16 only.
_OLD_RULE_KEYS = ("ruleset", "min_size", "max_size")


class CrushMap:
    """One CRUSH map; treat it as immutable."""

    def __init__(self, dump: Dict[str, Any]) -> None:
        self._dump = dump
        self.buckets: Dict[int, Dict[str, Any]] = {b["id"]: b for b in dump["buckets"]}
        self.rules: Dict[int, Dict[str, Any]] = {r["rule_id"]: r for r in dump["rules"]}
        self.classes: Dict[int, str] = {
            d["id"]: d["class"] for d in dump["devices"] if d.get("class")}
        self._type_ids: Dict[str, int] = {t["name"]: t["type_id"] for t in dump.get("types", [])}
        self._below: Dict[int, Dict[int, float]] = {}
        self._serving: Dict[int, Dict[int, float]] = {}
        self._device_weights: Dict[int, float] = {}
        for bucket in dump["buckets"]:
            for item in bucket["items"]:
                if item["id"] >= 0:
                    self._device_weights.setdefault(item["id"], item["weight"] / WEIGHT_ONE)
        self._parents: Dict[Tuple[int, str], Dict[int, int]] = {}

    def as_dump(self) -> Dict[str, Any]:
        """Returns the dump that the map was made of; callers must not change it."""
        return self._dump

    def shape_below(self, rule_id: int) -> Dict[int, Any]:
        """Returns the inputs of a rule's mappings: its steps, and items and weights of its buckets.
        """
        shape: Dict[int, Any] = {0: self.rules.get(rule_id, {}).get("steps")}
        waiting = self.takes(rule_id)
        all_entries = (self._dump.get("choose_args") or {}).values()
        while waiting:
            number = waiting.pop()
            if number >= 0 or number in shape or number not in self.buckets:
                continue
            items = self.buckets[number]["items"]
            sets = [[entry for entry in entries if entry["bucket_id"] == number]
                    for entries in all_entries]
            shape[number] = ([(item["id"], item["weight"]) for item in items], sets)
            waiting += [item["id"] for item in items]
        return shape

    def weights_below(self, item: int) -> Dict[int, float]:
        """Returns {osd: CRUSH weight} of all OSDs in the subtree of a bucket, or of the OSD itself.
        """
        if item >= 0:
            return {item: self.osd_weight(item)}
        if item not in self._below:
            found: Dict[int, float] = {}
            for child in self.buckets.get(item, {}).get("items", []):
                if child["id"] >= 0:
                    found[child["id"]] = found.get(child["id"], 0.0) + child["weight"] / WEIGHT_ONE
                else:
                    for osd, weight in self.weights_below(child["id"]).items():
                        found[osd] = found.get(osd, 0.0) + weight
            self._below[item] = found
        return self._below[item]

    def osd_weight(self, osd: int) -> float:
        """Returns the CRUSH weight of an OSD in the first bucket that lists it; 0 if none does."""
        return self._device_weights.get(osd, 0.0)

    def takes(self, rule_id: int) -> List[int]:
        """Returns the items that the `take` steps of a rule start from, in order."""
        steps = self.rules.get(rule_id, {}).get("steps", ())
        return [step["item"] for step in steps if step["op"] == "take"]

    def rule_weights(self, rule_id: int) -> Dict[int, float]:
        """Returns {osd: CRUSH weight} of the OSDs below all takes of a rule: those it can choose.
        """
        if rule_id not in self._serving:
            union: Dict[int, float] = {}
            for take in self.takes(rule_id):
                for osd, weight in self.weights_below(take).items():
                    union[osd] = union.get(osd, 0.0) + weight
            self._serving[rule_id] = union
        return self._serving[rule_id]

    def parent_of_type(self, osd: int, type_name: str, rule_id: int) -> int:
        """Returns the first bucket of a type under the takes of the rule that holds the OSD; 0 if
        none does.

        Mirrors CrushWrapper::get_parent_of_type with a rule: shadow trees count apart.
        """
        key = (rule_id, type_name)
        if key not in self._parents:
            found: Dict[int, int] = {}
            for take in self.takes(rule_id):
                self._collect_parents(take, type_name, found)
            self._parents[key] = found
        return self._parents[key].get(osd, 0)

    def _collect_parents(self, item: int, type_name: str, found: Dict[int, int]) -> None:
        if item >= 0 or item not in self.buckets:
            return
        bucket = self.buckets[item]
        if bucket.get("type_id", 0) < self._type_ids.get(type_name, 0):
            return  # Ceph does not descend below a bucket of a lower type
        if bucket["type_name"] == type_name:
            for osd in self.weights_below(item):
                found.setdefault(osd, item)
            return
        for child in self.buckets[item]["items"]:
            self._collect_parents(child["id"], type_name, found)

    def host_of(self, osd: int) -> Optional[str]:
        """Returns the name of the host bucket that lists the OSD (shadow trees aside)."""
        for bucket in self.buckets.values():
            if bucket["type_name"] == "host" and "~" not in bucket["name"]:
                if any(item["id"] == osd for item in bucket["items"]):
                    return str(bucket["name"])
        return None

    def dump(self, release: int) -> Dict[str, Any]:
        """Returns the dump in the shape of a release: rules lost three keys after Ceph 16."""
        rules = []
        for rule in self._dump["rules"]:
            steps = list(map(dict, rule["steps"]))
            shaped = {k: v for k, v in rule.items() if k not in _OLD_RULE_KEYS and k != "steps"}
            if release < 18:
                shaped["ruleset"] = rule.get("ruleset", rule["rule_id"])
                shaped["min_size"] = rule.get("min_size", 1)
                shaped["max_size"] = rule.get("max_size", 10)
            rules.append({**shaped, "steps": steps})
        buckets = [{**b, "items": list(map(dict, b["items"]))} for b in self._dump["buckets"]]
        devices = list(map(dict, self._dump["devices"]))
        rest: Dict[str, Any] = {"choose_args": {}, "types": [], "tunables": {}}
        return {**rest, **self._dump, "devices": devices, "buckets": buckets, "rules": rules}
