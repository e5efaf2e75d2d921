"""CRUSH by enumeration, and the monitor's check as it is simulated: both apart from the package.

`tests/oracle` holds the simulated check to Ceph's own.
"""
from __future__ import annotations

from itertools import permutations, product
from typing import Any, Iterator, List, Mapping, Sequence, Set, Tuple

from mgr_stub.osdmap.crush_map import CrushMap
from mgr_stub.osdmap.upmap import verify

Dump = Mapping[str, Any]


def leaves(crush: Dump, node: int) -> Set[int]:
    """OSDs of positive weight under a node."""
    if node >= 0:
        return {node}
    found: Set[int] = set()
    for item in bucket(crush, node)["items"]:
        if item["id"] < 0:
            found |= leaves(crush, item["id"])
        elif item["weight"] > 0:
            found.add(item["id"])
    return found


def bucket(crush: Dump, node: int) -> Dump:
    return next(b for b in crush["buckets"] if b["id"] == node)


def nodes_of_type(crush: Dump, node: int, type_name: str) -> List[int]:
    """Topmost nodes of the type at or under a node that hold at least one usable OSD."""
    if node >= 0 or bucket(crush, node)["type_name"] == type_name:
        wanted = type_name == "osd" if node >= 0 else True
        return [node] if wanted and leaves(crush, node) else []
    found: List[int] = []
    for item in bucket(crush, node)["items"]:
        if item["id"] < 0 or item["weight"] > 0:
            found += nodes_of_type(crush, item["id"], type_name)
    return found


def possible_up_sets(crush: Dump, rule: Dump, size: int) -> Iterator[Tuple[int, ...]]:
    """Every complete up set that the rule can give a pool of this size, in CRUSH's order."""
    chains: List[List[Tuple[int, ...]]] = []
    current: List[Tuple[int, ...]] = []
    for step in rule["steps"]:
        op = step["op"]
        if op == "take":
            current = [(step["item"],)]
        elif op.startswith("choose") and op != "choosemsr":   # which the monitor does not know
            num = step["num"] if step["num"] > 0 else step["num"] + size
            current = [wider for nodes in current
                       for wider in _choose(crush, nodes, step["type"], num,
                                            op.startswith("chooseleaf"), size)]
        elif op == "emit":
            chains.append(current)
    for parts in product(*chains):
        up: Tuple[int, ...] = ()
        for part in parts:
            up += part[:size - len(up)]
        if len(up) == size and len(set(up)) == size:
            yield up


def _choose(crush: Dump, nodes: Sequence[int], type_name: str, num: int, leaf: bool,
            size: int) -> Iterator[Tuple[int, ...]]:
    """One choose step: `num` nodes under each node chosen before, all in all at most `size`."""
    options = []
    for node in nodes:
        below = nodes_of_type(crush, node, type_name)
        picks: List[Tuple[int, ...]] = []
        for pick in permutations(below, min(num, len(below))):
            if leaf:
                picks += product(*[sorted(leaves(crush, n)) for n in pick])
            else:
                picks.append(pick)
        options.append(picks)
    for combination in product(*options):
        yield tuple(n for pick in combination for n in pick)[:size]


def monitor_keeps(crush: CrushMap, rule_id: int, size: int, up: Sequence[int]) -> bool:
    """Whether a monitor leaves the upmap items that give this up set."""
    weights = crush.rule_weights(rule_id)
    return verify(crush, rule_id, size, up) is None and all(
        weights.get(osd, 0.0) > 0.0 for osd in up)
