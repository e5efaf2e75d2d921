"""What may come of a multi-step retry rule, by brute force and from its documentation alone.

Pair by pair: two shards whose groups part at a choose step are in different buckets of that step's
type. A rule of type msr_firstn may have found its OSDs in any order, and most codes' chunks are all
alike to it. Shares no code with the package.
"""

from __future__ import annotations

from math import prod
from typing import Any, Callable, List, Mapping, Sequence, Tuple

MSR_FIRSTN, MSR_INDEP = 4, 5

#: (N, type) of each choose step, the outermost first; 0 is the pool's size.
Levels = Sequence[Tuple[int, str]]


def is_msr(rule: Mapping[str, Any]) -> bool:
    """Whether a dumped rule is of such a type."""
    return rule.get("type") in (MSR_FIRSTN, MSR_INDEP)


def blocks(rule: Mapping[str, Any], size: int) -> List[Tuple[int, Levels, int]]:
    """(take, levels, positions) of each take … emit for a pool of `size`."""
    found: List[Tuple[int, Levels, int]] = []
    left = size
    for step in rule["steps"]:
        if step["op"] == "take":
            take, levels = step["item"], []
        elif step["op"] == "choosemsr":
            levels.append((step["num"] or size, step["type"]))
        elif step["op"] == "emit":
            length = min(left, prod(number for number, _ in levels))
            found.append((take, levels, length))
            left -= length
    return found


def is_possible(levels: Levels, members: Sequence[int], in_order: bool,
                bucket_of: Callable[[int, str], object]) -> bool:
    """Whether a block gives these members; `bucket_of`: (OSD, type) → the bucket above it. Not
    `in_order`: on any of the places of the groups that it fills."""
    if len(set(members)) < len(members):
        return False
    below, alike = prod(number for number, _ in levels[1:]), levels[-1][0]
    places = range(-(-len(members) // below) * below)

    def is_free(place: int, taken: Tuple[int, ...]) -> bool:
        """Whether it is the next one, or the first of those that are alike."""
        if in_order or place in taken:
            return in_order and place == len(taken)
        return place % alike == 0 or place - 1 in taken

    def fits(taken: Tuple[int, ...]) -> bool:
        """Whether the members that have no place yet find one."""
        if len(taken) == len(members):
            return True
        for place in places:
            if is_free(place, taken) and is_apart(place, taken) and fits((*taken, place)):
                return True
        return False

    def is_apart(place: int, taken: Tuple[int, ...]) -> bool:
        """Whether the next member may be there."""
        one = place, members[len(taken)]
        return all(_are_apart(levels, one, other, bucket_of) for other in zip(taken, members))
    return fits(())


def _are_apart(levels: Levels, one: Tuple[int, int], other: Tuple[int, int],
               bucket_of: Callable[[int, str], object]) -> bool:
    """Whether two (place, OSD) may be together."""
    numbers = [number for number, _ in levels]
    for depth, (_, kind) in enumerate(levels):
        below = prod(numbers[depth + 1:])
        if one[0] // below != other[0] // below:   # here the two part
            return kind == "osd" or bucket_of(one[1], kind) != bucket_of(other[1], kind)
    return True
