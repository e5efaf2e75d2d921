"""Drains that would leave no OSD to take what has to move."""
from __future__ import annotations

from typing import Collection, FrozenSet, Optional

from ..crush.hierarchy import CrushHierarchy


def weighed_osds(crush: CrushHierarchy) -> FrozenSet[int]:
    """The OSDs that CRUSH places on: those with a weight."""
    return frozenset(item for bucket in crush.buckets.values() for item, weight in bucket.items
                     if item >= 0 and weight > 0.0)


def rule_without_osds(drained: Collection[int], usable: Collection[int], crush: CrushHierarchy,
                      rule_ids: Collection[int]) -> Optional[str]:
    """Name of a CRUSH rule that takes OSDs which are to be drained, and whose other OSDs are not
    among the usable ones; None where there is none. `rule_ids`: of the rules that pools have."""
    for rule_id in sorted(rule_ids):
        rule = crush.rules.get(rule_id, {})
        for step in rule.get("steps", ()):
            if step.get("op") != "take":
                continue
            taken = frozenset(crush.subtree(step["item"]).weights)
            if taken.intersection(drained) and not taken.intersection(usable).difference(drained):
                return str(rule.get("rule_name", rule_id))
    return None
