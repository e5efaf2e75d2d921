"""The monitor's own check of upmaps, which differs from what CRUSH can produce.

The rules are those of CrushWrapper::verify_upmap and OSDMap::check_pg_upmaps (Ceph 16 to 20). They
are more lenient than CRUSH in places: they do not check the number of shards per bucket of a
`choose` step. They are stricter in others: they count buckets over the whole up set, so they reject
what most nested and hybrid `choose` rules place. In MSR rules the monitor only reads takes, each
for one position. If there is one take, it allows all OSDs that have weight under it. If there are
two, it wants position 0 under the first and position 1 under the second.
"""
from __future__ import annotations

from math import prod
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .hierarchy import OSD_TYPE, CrushHierarchy
from .rule import resolved_num


class UpmapCheck:
    """The check for up sets of pools of `pool_size` shards that use one rule."""

    def __init__(self, crush: CrushHierarchy, rule: Mapping[str, Any], pool_size: int) -> None:
        self._crush = crush
        self._steps: List[Mapping[str, Any]] = list(rule.get("steps", []))
        self._size = pool_size
        self._takes = sorted({s["item"] for s in self._steps if s.get("op") == "take"})
        self._parents: Dict[str, Dict[int, int]] = {}
        for step in self._steps:
            name = str(step.get("type"))
            if _is_checked(step) and name != OSD_TYPE:
                self._parents[name] = self._parents_of_type(name)
        self._weights: Dict[int, float] = {}
        for take in self._takes:
            self._weights.update(crush.subtree(take).weights)

    def rejection(self, up: Sequence[int]) -> Optional[str]:
        """Returns why the monitor would cancel an upmap with this result, or None."""
        for osd in up:
            if self._weights.get(osd, 0.0) <= 0.0:
                return f"osd.{osd} has no weight under the rule"
        cursor = 0
        take = 0
        nums: Dict[str, int] = {}
        for step in self._steps:
            op = step.get("op", "")
            if op == "take":
                take = step["item"]
            elif _is_checked(step):
                # two choose steps of one type count once: the monitor keeps the first
                name = step["type"]
                most = resolved_num(step["num"], self._size)
                nums.setdefault(name, most)
                # a chooseleaf step forbids two shards in one bucket; a choose step forbids more
                # buckets than it names
                parent_of = self._parents.get(name, {})
                parents = [parent_of[osd] for osd in up if osd in parent_of]
                distinct = len(set(parents))
                if op.startswith("chooseleaf"):
                    if distinct < len(parents):
                        return f"two shards in one {name}"
                elif distinct > most:
                    return (f"shards in {distinct} buckets of type {name},"
                            f" the monitor allows {most}")
            elif op == "emit":
                if take < 0:
                    count = prod(nums.values())
                    inside = self._crush.subtree(take).weights
                    for osd in up[cursor:cursor + count]:
                        if osd not in inside:
                            return (f"osd.{osd} is outside the part of the tree that the rule"
                                    " takes")
                    cursor = min(len(up), cursor + count)
                take = 0
                nums = {}
        return None

    def _parents_of_type(self, type_name: str) -> Dict[int, int]:
        """Returns OSD → its bucket of the type under any take.

        The first one counts, as in CrushWrapper::get_parent_of_type.
        """
        parents: Dict[int, int] = {}
        for take in self._takes:
            for bucket in self._crush.buckets_of_type(take, type_name):
                for osd in self._crush.subtree(bucket).weights:
                    parents.setdefault(osd, bucket)
        return parents


def _is_checked(step: Mapping[str, Any]) -> bool:
    """Returns True if the monitor checks the step: a choose step, except one of an MSR rule."""
    op = str(step.get("op", ""))
    return op.startswith("choose") and op != "choosemsr"


def kept_rule(crush: CrushHierarchy, rule: Mapping[str, Any], up: Sequence[int]) -> Optional[str]:
    """Returns the steps of an equivalent rule whose upmaps the monitor keeps, or None.

    The steps are as `crushtool -d` prints them. A `chooseleaf` step is equivalent to a step that
    chooses buckets and one that chooses one leaf of each.
    """
    steps: List[Mapping[str, Any]] = []
    for step in rule.get("steps", []):
        before = str(steps[-1].get("op", "")) if steps else ""
        is_single = str(step.get("op", "")).startswith("choose") and step.get("num") == 1
        if is_single and before in ("choose_firstn", "choose_indep"):
            steps[-1] = {**steps[-1], "op": before.replace("choose_", "chooseleaf_")}
        else:
            steps.append(step)
    if UpmapCheck(crush, {**rule, "steps": steps}, len(up)).rejection(up) is not None:
        return None
    return "; ".join(map(_step_text, steps))


def _step_text(step: Mapping[str, Any]) -> str:
    op = str(step.get("op", "")).replace("_firstn", " firstn").replace("_indep", " indep")
    if op == "take":
        return f"take {str(step.get('item_name')).replace('~', ' class ')}"
    if "num" not in step:
        return op
    kind = f" type {step['type']}" if "type" in step else ""
    return f"{op} {step['num']}{kind}"
