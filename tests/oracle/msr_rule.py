"""What may come of a multi-step retry rule, by brute force and from its documentation alone.

Pair by pair: two shards whose groups part at a choose step are in different buckets of that step's
type. A rule of type msr_firstn may have found its OSDs in any order. Shares no code with the
package.
"""

from __future__ import annotations

from itertools import permutations
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
    """Whether a block gives these members; `bucket_of`: (OSD, type) → the bucket above it."""
    if len(set(members)) < len(members):
        return False
    orders = [members] if in_order else permutations(members)
    return any(_keeps_apart(levels, order, bucket_of) for order in orders)


def _keeps_apart(levels: Levels, order: Sequence[int],
                 bucket_of: Callable[[int, str], object]) -> bool:
    numbers = [number for number, _ in levels]
    for one in range(len(order)):
        for other in range(one):
            for depth, (_, kind) in enumerate(levels):
                below = prod(numbers[depth + 1:])
                if one // below != other // below:   # here the two part
                    if kind != "osd" and (
                            bucket_of(order[one], kind) == bucket_of(order[other], kind)):
                        return False
                    break
    return True
