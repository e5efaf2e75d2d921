"""Drains that would leave no OSD to take what has to move."""
from __future__ import annotations

from typing import Collection, Optional

from ..crush.hierarchy import CrushHierarchy


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
