"""Checks up sets against CRUSH rules, from the simulated map and without the module's code."""
from __future__ import annotations

from math import prod
from typing import List, Optional, Sequence, Tuple

from tests.oracle import msr_rule

from mgr_stub.osdmap.crush_map import CrushMap

_OSD = "osd"


def breaks(crush: CrushMap, rule_id: int, size: int, up: Sequence[int]) -> Optional[str]:
    """What is wrong with an up set of a rule, or None; take … emit by take … emit."""
    if msr_rule.is_msr(crush.rules[rule_id]):
        return _breaks_msr(crush, rule_id, size, up)
    levels: List[Tuple[str, int]] = []
    take, start, indep = 0, 0, False
    for step in crush.rules[rule_id]["steps"]:
        op = str(step["op"])
        if op == "take":
            take, levels = int(step["item"]), []
        elif op.startswith("choose"):
            num, indep = int(step["num"]), op.endswith("indep")
            levels.append((step["type"], num if num > 0 else num + size))
        elif op == "emit":
            end = min(size, start + prod(num for _, num in levels))
            wrong = _block(crush, rule_id, take, levels, indep, up[start:end])
            if wrong:
                return wrong
            start = end
    return f"osds {tuple(up)} hold two shards" if len(set(up)) < len(up) else None


def _breaks_msr(crush: CrushMap, rule_id: int, size: int, up: Sequence[int]) -> Optional[str]:
    rule, start = crush.rules[rule_id], 0
    for take, levels, length in msr_rule.blocks(rule, size):
        members = up[start:start + length]
        start += length
        weights = crush.weights_below(take)
        for osd in members:
            if weights.get(osd, 0.0) <= 0.0:
                return f"osd.{osd} is not below what the rule takes"
        if not msr_rule.is_possible(levels, members, rule["type"] == msr_rule.MSR_INDEP,
                                    lambda osd, kind: crush.parent_of_type(osd, kind, rule_id)):
            return f"osds {tuple(members)} are not what an MSR rule gives"
    return None


def _block(crush: CrushMap, rule_id: int, take: int, levels: Sequence[Tuple[str, int]],
           indep: bool, members: Sequence[int]) -> Optional[str]:
    weights = crush.weights_below(take)
    for osd in members:
        if weights.get(osd, 0.0) <= 0.0:
            return f"osd.{osd} is not below what the rule takes"
    for level, (kind, _) in enumerate(levels):
        if kind == _OSD:
            continue
        buckets = [crush.parent_of_type(osd, kind, rule_id) for osd in members]
        below = prod(num for _, num in levels[level + 1:])
        most = prod(num for _, num in levels[:level + 1])
        if len(set(buckets)) > most:
            return f"{len(set(buckets))} buckets of type {kind}, the rule chooses {most}"
        if max(map(buckets.count, buckets)) > below:
            return f"more than {below} shards in one bucket of type {kind}"
        groups = [set(buckets[i:i + below]) for i in range(0, len(buckets), below)]
        if indep and max(map(len, groups)) > 1:
            return f"neighboring shards in different buckets of type {kind}"
    return None
