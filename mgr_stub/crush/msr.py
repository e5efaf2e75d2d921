"""Multi-step retry rules (msr_firstn, msr_indep; Ceph 19 and later).

A pass goes down from the take for each position that is still empty: position by position, and for
each from the outermost choose step to the OSD. A bucket that another stride of the same step has is
drawn again at once; an OSD that is out is left for the next pass, which begins at the top and so
may find another host. Buckets under which nothing was found stay in the way until their pass is
over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .hashes import NONE
from .tree import Bucket, Tree

#: Types of rules in a dump.
MSR_FIRSTN = 4
MSR_INDEP = 5

_OSD_TYPE = 0
_WORD = 0xFFFFFFFF
_CONFIG = ("set_msr_descents", "set_msr_collision_tries")


def is_msr(rule: Mapping[str, Any]) -> bool:
    """Returns True if a dumped rule is of an MSR type."""
    return rule.get("type") in (MSR_FIRSTN, MSR_INDEP)


@dataclass(frozen=True)
class MsrRule:
    """A rule: passes at most, draws at most in one place, and per block (take, ((N, type id), …)).
    """

    in_order: bool
    passes: int
    draws: int
    blocks: Tuple[Tuple[int, Tuple[Tuple[int, int], ...]], ...]


def parse_msr(rule: Mapping[str, Any], tunables: Mapping[str, Any],
              type_ids: Mapping[str, int]) -> MsrRule:
    """Returns a dumped MSR rule; ValueError if it has not the form that Ceph wants."""
    found = {"set_msr_descents": int(tunables.get("msr_descents", 100)),
             "set_msr_collision_tries": int(tunables.get("msr_collision_tries", 100))}
    steps = list(rule["steps"])
    while steps and steps[0]["op"] in _CONFIG:
        step = steps.pop(0)
        found[step["op"]] = int(step["num"])
    blocks: List[Tuple[int, Tuple[Tuple[int, int], ...]]] = []
    while steps:
        ops = [step["op"] for step in steps]
        if ops[0] != "take" or "emit" not in ops:
            raise ValueError(f"rule {rule['rule_id']} is no MSR rule")
        end = ops.index("emit")
        levels = []
        for step in steps[1:end]:
            if step["op"] != "choosemsr" or step["type"] not in type_ids:
                raise ValueError(f"rule {rule['rule_id']} has a step that no MSR rule may have")
            levels.append((int(step["num"]), type_ids[step["type"]]))
        if not levels or [type_id for _, type_id in levels].index(_OSD_TYPE) != len(levels) - 1:
            raise ValueError(f"rule {rule['rule_id']} does not end at OSDs")
        blocks.append((int(steps[0]["item"]), tuple(levels)))
        steps = steps[end + 1:]
    return MsrRule(rule["type"] == MSR_INDEP, found[_CONFIG[0]], found[_CONFIG[1]], tuple(blocks))


def map_msr(rule: MsrRule, tree: Tree, x: int, count: int,
            is_out: Callable[[int], bool]) -> Tuple[int, ...]:
    """Returns the OSDs for `count` positions; msr_indep fills up with NONE."""
    in_order = [NONE] * count
    emitted = []
    start = 0
    for take, levels in rule.blocks:
        if start >= count:
            break
        block = _Block(rule, tree, x, count, is_out, [
            (number or count, type_id) for number, type_id in levels])
        end = min(count, start + block.width)
        block.fill(tree.bucket(take), start, end)
        for position, osd in block.found:
            in_order[position] = osd
            emitted.append(osd)
        start = end
    if rule.in_order:
        return tuple(in_order)
    return tuple(emitted)


class _Block:
    """One take … emit; positions are those of the whole mapping."""

    def __init__(self, rule: MsrRule, tree: Tree, x: int, count: int,
                 is_out: Callable[[int], bool], levels: Sequence[Tuple[int, int]]) -> None:
        self.found: List[Tuple[int, int]] = []   # (position, OSD) in the order of finding
        self.width = 1
        for number, _ in levels:
            self.width *= number
        self._rule, self._tree, self._x, self._count, self._is_out = rule, tree, x, count, is_out
        self._levels = levels
        #: per level: first position of a stride → what the stride uses
        self._used: List[Dict[int, List[int]]] = [{} for _ in levels]

    def fill(self, root: Bucket, start: int, end: int) -> None:
        """Makes passes until all positions are filled, or no more are allowed."""
        for attempt in range(self._rule.passes):
            if len(self.found) == end - start:
                break
            self._choose(root, 0, self.width, start, end, attempt)

    def _choose(self, bucket: Bucket, level: int, width: int, start: int, end: int,
                attempt: int) -> int:
        """Makes one pass below a bucket for the positions from `start` to `end`; returns how many
        it filled.
        """
        number, type_id = self._levels[level]
        length = width // number
        filled = 0
        useless = []
        for index, own in enumerate(range(start, end, length)):
            after = min(own + length, end)
            if all(position in self._used[-1] for position in range(own, after)):
                continue
            item = self._draw(bucket, level, type_id, range(start, end, length), own, index,
                              attempt)
            if item is None or (type_id == _OSD_TYPE and self._is_out(item)):
                continue
            below = 1
            if type_id == _OSD_TYPE:
                self.found.append((own, item))
            else:
                below = self._choose(self._tree.buckets[item], level + 1, length, own, after,
                                     attempt)
            filled += below
            used = self._used[level].setdefault(own, [])
            if item not in used:
                used.append(item)
                if not below:
                    useless.append((own, item))
        for own, item in useless:
            self._used[level][own].remove(item)
        return filled

    def _draw(self, bucket: Bucket, level: int, type_id: int, strides: Sequence[int], own: int,
              index: int, attempt: int) -> Optional[int]:
        """Returns an item of the type that no other stride uses, or None."""
        used = self._used[level]
        for again in range(self._rule.draws):
            trial = (((attempt * self._count + index) << 16) + again) & _WORD
            item = self._descend(bucket, type_id, trial, index)
            if item is None or all(item not in used.get(other, ())
                                   for other in strides if other != own):
                return item
        return None

    def _descend(self, bucket: Bucket, type_id: int, trial: int, index: int) -> Optional[int]:
        """Returns the item of the type at a trial number; None at a dead end."""
        while bucket.straws:
            item = bucket.draw(self._x, trial, index)
            if item >= 0:
                if type_id == _OSD_TYPE:
                    return item
                return None
            bucket = self._tree.buckets[item]
            if bucket.type_id == type_id:
                return item
        return None
