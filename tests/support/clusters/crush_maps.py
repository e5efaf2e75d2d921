"""CRUSH dumps, in the shape of `CRUSHMap.dump()`, from a compact description.

    crush_map({"root default": {"rack a": {"host a1": [0, 1]}, "host lone": [2]}},
              {0: "take default~hdd; chooseleaf firstn 0 host; emit"})

OSDs stand in lists, or under the key "osds" beside other buckets. Every device class in use gets
its shadow tree, named as Ceph names it (`default~hdd`).
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

TYPE_IDS = {"osd": 0, "host": 1, "chassis": 2, "rack": 3, "row": 4, "room": 7, "datacenter": 8,
            "zone": 9, "root": 11}
Branch = Union[Sequence[int], Mapping[str, Any]]


def hosts(count: int, osds_each: int = 1) -> Dict[str, Branch]:
    """A root over `count` hosts with neighboring OSD numbers."""
    return {"root default": {f"host h{h}": list(range(h * osds_each, (h + 1) * osds_each))
                             for h in range(count)}}


def racks(count: int, hosts_each: int = 2, osds_each: int = 1) -> Dict[str, Branch]:
    """A root over racks of hosts with neighboring OSD numbers."""
    tree: Dict[str, Dict[str, Branch]] = {f"rack r{rack}": {} for rack in range(count)}
    for rack, below in enumerate(tree.values()):
        for host in range(rack * hosts_each, (rack + 1) * hosts_each):
            below[f"host h{host}"] = list(range(host * osds_each, (host + 1) * osds_each))
    return {"root default": tree}


def crush_map(tree: Mapping[str, Branch], rules: Mapping[int, str],
              classes: Optional[Mapping[int, str]] = None,
              weights: Optional[Mapping[int, float]] = None) -> Dict[str, Any]:
    """The dump of a whole CRUSH map. OSDs are of class hdd and weight 1.0 unless told."""
    writer = _BucketWriter(classes or {}, weights or {})
    for name, branch in tree.items():
        writer.add(name, branch, "")
    for device_class in sorted({writer.class_of(osd) for osd in writer.osds} - {""}):
        for name, branch in tree.items():
            writer.add(name, branch, device_class)
    devices = []
    for osd in sorted(writer.osds):
        device = {"id": osd, "name": f"osd.{osd}"}
        if writer.class_of(osd):
            device["class"] = writer.class_of(osd)
        devices.append(device)
    return {"devices": devices, "buckets": writer.buckets, "choose_args": {},
            "types": [{"type_id": number, "name": name} for name, number in TYPE_IDS.items()],
            "rules": [rule_dump(rule_id, text, writer.ids) for rule_id, text in rules.items()]}


_RULE_TYPES = {"msr_firstn": 4, "msr_indep": 5}


def rule_dump(rule_id: int, text: str, ids: Mapping[str, int]) -> Dict[str, Any]:
    """One rule from text like `take default; choose indep 2 rack; emit`; MSR rules begin with their
    type, as in `msr_indep; take default; choosemsr 2 host; choosemsr 2 osd; emit`."""
    parts = [words.split() for words in text.split(";") if words.strip()]
    kind = 1
    if parts and parts[0][0] in _RULE_TYPES:
        kind = _RULE_TYPES[parts.pop(0)[0]]
    steps = [_step(words, ids) for words in parts]
    return {"rule_id": rule_id, "rule_name": f"rule{rule_id}", "type": kind, "steps": steps}


def _step(words: Sequence[str], ids: Mapping[str, int]) -> Dict[str, Any]:
    if words[0] == "take":
        name = words[1]
        item = int(name[4:]) if name.startswith("osd.") else ids[name]
        return {"op": "take", "item": item, "item_name": name}
    if words[0] == "choosemsr" and len(words) == 3:
        return {"op": words[0], "num": int(words[1]), "type": words[2]}
    if words[0].startswith("choose"):
        return {"op": f"{words[0]}_{words[1]}", "num": int(words[2]), "type": words[3]}
    if len(words) > 1:
        return {"op": words[0], "num": int(words[1])}
    return {"op": words[0]}


class _BucketWriter:
    """Numbers buckets as they come and collects their dumps."""

    def __init__(self, classes: Mapping[int, str], weights: Mapping[int, float]) -> None:
        self.buckets: List[Dict[str, Any]] = []
        self.ids: Dict[str, int] = {}
        self.osds: Set[int] = set()
        self._classes = classes
        self._weights = weights

    def class_of(self, osd: int) -> str:
        return self._classes.get(osd, "hdd")

    def add(self, title: str, branch: Branch, device_class: str) -> Tuple[int, float]:
        """Adds a bucket (with `device_class`, its shadow) and all below; (id, weight)."""
        type_name, _, name = title.partition(" ")
        bucket_id = -1 - len(self.buckets)
        dump: Dict[str, Any] = {}
        self.buckets.append(dump)
        full_name = name + ("~" + device_class if device_class else "")
        self.ids[full_name] = bucket_id
        items = self._items(branch, device_class)
        total = sum(w for _, w in items)
        dump.update(id=bucket_id, name=full_name, type_name=type_name,
                    type_id=TYPE_IDS[type_name], alg="straw2", hash="rjenkins1",
                    weight=int(total * 0x10000),
                    items=[{"id": item, "weight": int(weight * 0x10000), "pos": pos}
                           for pos, (item, weight) in enumerate(items)])
        return bucket_id, total

    def _items(self, branch: Branch, device_class: str) -> List[Tuple[int, float]]:
        items: List[Tuple[int, float]] = []
        below = branch.items() if isinstance(branch, Mapping) else [("osds", branch)]
        for title, deeper in below:
            if title != "osds":
                items.append(self.add(title, deeper, device_class))
                continue
            for osd in deeper:
                self.osds.add(osd)
                if not device_class or self.class_of(osd) == device_class:
                    items.append((osd, self._weights.get(osd, 1.0)))
        return items
