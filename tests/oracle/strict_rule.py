"""Could an up set have come from its pool's CRUSH rule? An answer of the tests' own.

The monitor tolerates sets that CRUSH would never give (three shards in a rack where the rule
gives two, a host outside every rack where the rule chooses racks). This check takes the rule at
its word: it splits the set into the groups that each choose step must have made and counts
them: a rule gives places, so many buckets with so many members each, and which of them stay empty
where there are more places than members is all the same. It shares no code with the package.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import msr_rule
from .ceph_tools import ITEM_NONE

Shape = Tuple[Any, ...]  # nested, sorted group sizes


class Level(NamedTuple):
    """A choose step: so many buckets of a type under each bucket of the step before."""

    kind: str
    number: int


class Block(NamedTuple):
    """What stands between a take and its emit; `length` positions of the up set are its."""

    take: int
    levels: Tuple[Level, ...]
    length: int


class StrictRules:
    """The rules of one CRUSH map."""

    def __init__(self, crush_dump: Mapping[str, Any]) -> None:
        self._buckets = {bucket["id"]: bucket for bucket in crush_dump["buckets"]}
        self._rules = {rule["rule_id"]: rule for rule in crush_dump["rules"]}
        self._paths: Dict[int, Dict[int, List[Tuple[str, int]]]] = {}

    def blocks(self, rule_id: int, size: int) -> List[Block]:
        """The take/emit blocks of a rule for a pool of `size`."""
        blocks: List[Block] = []
        take, left = 0, size
        levels: List[Level] = []
        for step in self._rules[rule_id]["steps"]:
            operation = step["op"]
            if operation == "take":
                take, levels = step["item"], []
            elif operation.startswith("choose"):
                number = step["num"] if step["num"] > 0 else size + step["num"]
                levels.append(Level(step["type"], number))
            elif operation == "emit":
                length = min(left, _product(levels))
                blocks.append(Block(take, tuple(levels), length))
                left -= length
            elif not operation.startswith("set_"):
                raise ValueError(f"a step this check does not know: {operation}")
        return blocks

    def fault(self, rule_id: int, size: int, raw: Sequence[int], wanted: Sequence[int],
              positional: bool = False) -> Optional[str]:
        """Why `wanted` could not have come from the rule, or None.

        Where CRUSH found fewer buckets than the rule asks for (`raw` shows it), the set may keep
        the shape of `raw`. `positional`: neighboring positions make a group, as those of a locally
        repairable code; else any order of the members of a block will do.
        """
        if len(wanted) != size or ITEM_NONE in wanted:
            return "a member is missing"
        if len(set(wanted)) != size:
            return "an OSD twice"
        if msr_rule.is_msr(self._rules[rule_id]):
            return self._msr_fault(rule_id, size, wanted, positional)
        position = 0
        for block in self.blocks(rule_id, size):
            members = wanted[position:position + block.length]
            before = raw[position:position + block.length]
            position += block.length
            fault = self._block_fault(block, members, before, positional)
            if fault:
                return fault
        return None if position == size else f"the rule gives {position} members"

    def _msr_fault(self, rule_id: int, size: int, wanted: Sequence[int],
                   positional: bool) -> Optional[str]:
        rule, position = self._rules[rule_id], 0
        in_order = positional and rule["type"] == msr_rule.MSR_INDEP
        for take, levels, length in msr_rule.blocks(rule, size):
            members = wanted[position:position + length]
            position += length
            for osd in members:
                if osd not in self._under(take) or not self._weight(take, osd):
                    return f"osd.{osd} has no weight under the take"
                if any(self._above(take, osd, kind) is None for _, kind in levels):
                    return f"osd.{osd} is not in all buckets of the rule"
            if not msr_rule.is_possible(levels, members, in_order, partial(self._above, take)):
                return f"{list(members)} is not what the MSR rule gives"
        return None if position == size else f"the rule gives {position} members"

    def _block_fault(self, block: Block, members: Sequence[int], before: Sequence[int],
                     positional: bool) -> Optional[str]:
        for osd in members:
            if osd not in self._under(block.take):
                return f"osd.{osd} is not under the take"
            if not self._weight(block.take, osd):
                return f"osd.{osd} has no weight under the take"
        shape = self._shape(block.take, block.levels, members)
        if shape is None:
            return f"{list(members)}: a bucket of the rule is missing above an OSD"
        if not _on_places(block.levels, shape, block.length) and (
                shape != self._shape(block.take, block.levels, before)):
            return f"{list(members)} is grouped as {shape}, too many for {block.levels}"
        if positional and not self._in_order(block.take, block.levels, members):
            if self._in_order(block.take, block.levels, before):
                return f"{list(members)}: positions of one bucket do not stand together"
        return None

    def _in_order(self, parent: int, levels: Sequence[Level], members: Sequence[int]) -> bool:
        """Whether every run of positions that belongs together is in one bucket of its own."""
        if not levels or not members:
            return True
        below = _product(levels[1:])
        seen: List[Optional[int]] = []
        for start in range(0, len(members), below):
            run = members[start:start + below]
            buckets = {self._above(parent, osd, levels[0].kind) for osd in run}
            bucket = buckets.pop()
            if buckets or bucket is None or bucket in seen:
                return False
            seen.append(bucket)
            if bucket < 0 and not self._in_order(bucket, levels[1:], run):
                return False
        return True

    def _shape(self, parent: int, levels: Sequence[Level],
               members: Sequence[int]) -> Optional[Shape]:
        """Nested group sizes of the members below `parent`; None where one fits no bucket."""
        if not levels:
            return (len(members),)
        groups: Dict[int, List[int]] = {}
        for osd in members:
            bucket = self._above(parent, osd, levels[0].kind)
            if bucket is None:
                return None
            groups.setdefault(bucket, []).append(osd)
        shapes = []
        for bucket, group in groups.items():
            if len(levels) == 1 or bucket >= 0:
                shapes.append((len(group),))
                continue
            inner = self._shape(bucket, levels[1:], group)
            if inner is None:
                return None
            shapes.append(inner)
        return tuple(sorted(shapes))

    def _above(self, parent: int, osd: int, kind: str) -> Optional[int]:
        """The topmost bucket of a type on the way from `parent` down to the OSD."""
        if kind == "osd":
            return osd if osd in self._under(parent) else None
        for bucket_kind, bucket in self._under(parent).get(osd, ()):
            if bucket_kind == kind:
                return bucket
        return None

    def _under(self, parent: int) -> Dict[int, List[Tuple[str, int]]]:
        """OSD -> (type, bucket) from below `parent` downwards, for all OSDs under it."""
        if parent not in self._paths:
            found: Dict[int, List[Tuple[str, int]]] = {}
            if parent >= 0:
                found[parent] = []
            else:
                for item in self._buckets[parent]["items"]:
                    child = item["id"]
                    step = [] if child >= 0 else [(self._buckets[child]["type_name"], child)]
                    for osd, path in self._under(child).items():
                        found[osd] = step + path
            self._paths[parent] = found
        return self._paths[parent]

    def _weight(self, take: int, osd: int) -> int:
        if take >= 0:
            return 1
        way = [take] + [bucket for _, bucket in self._under(take)[osd]] + [osd]
        return min(int(item["weight"]) for parent, child in zip(way, way[1:])
                   for item in self._buckets[parent]["items"] if item["id"] == child)


def _product(levels: Sequence[Level]) -> int:
    return prod(level.number for level in levels)


def _on_places(levels: Sequence[Level], shape: Shape, length: int) -> bool:
    """Whether groups are no larger, and no more, than CRUSH makes of `length` members."""
    if not levels or not isinstance(shape[0], tuple):
        return True
    below = _product(levels[1:])
    for group in shape:
        if _members(group) > below or not _on_places(levels[1:], group, min(length, below)):
            return False
    return len(shape) <= -(-length // below)


def _members(shape: Any) -> int:
    return sum(map(_members, shape)) if isinstance(shape, tuple) else shape
