"""CRUSH by enumeration, and the monitor's check by its letter: both written apart from the package.

They read the dictionaries of a CRUSH dump and share no code with what they are compared with.
"""
from __future__ import annotations

from itertools import permutations, product
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

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
        picks = list(permutations(below, min(num, len(below))))
        if leaf:
            picks = [leafs for pick in picks for leafs in product(
                *[sorted(leaves(crush, n)) for n in pick])]
        options.append(picks)
    for combination in product(*options):
        yield tuple(n for pick in combination for n in pick)[:size]


def monitor_keeps(crush: Dump, rule: Dump, size: int, up: Sequence[int]) -> bool:
    """Appendix-style restatement of verify_upmap plus the weight test of the cleaner."""
    takes = sorted({s["item"] for s in rule["steps"] if s["op"] == "take"})
    if any(not any(osd in leaves(crush, take) for take in takes) for osd in up):
        return False
    cursor, root = 0, 0
    stack: Dict[str, int] = {}
    for step in rule["steps"]:
        op = step["op"]
        if op == "take":
            root = step["item"]
        elif op.startswith("choose") and op != "choosemsr":   # which the monitor does not know
            num = step["num"] if step["num"] > 0 else step["num"] + size
            stack.setdefault(step["type"], num)
            if not _buckets_kept(crush, takes, step["type"], num, op, up):
                return False
        elif op == "emit":
            if root < 0:
                count = 1
                for num in stack.values():
                    count *= num
                if not set(up[cursor:cursor + count]) <= leaves(crush, root):
                    return False
                cursor += count
            stack, root = {}, 0
    return True


def _buckets_kept(crush: Dump, takes: Sequence[int], type_name: str, num: int, op: str,
                  up: Sequence[int]) -> bool:
    if type_name == "osd":
        return True
    parents = [p for p in (_parent(crush, takes, type_name, osd) for osd in up) if p is not None]
    if op.startswith("chooseleaf"):
        return len(set(parents)) == len(parents)
    return len(set(parents)) <= num


def _parent(crush: Dump, takes: Sequence[int], type_name: str, osd: int) -> Optional[int]:
    for take in takes:
        for node in nodes_of_type(crush, take, type_name):
            if osd in leaves(crush, node):
                return node
    return None
