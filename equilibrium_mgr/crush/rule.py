"""A CRUSH rule as the take … emit blocks that a pool of a given size gets from it."""
from __future__ import annotations

from math import prod
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple

from .hierarchy import OSD_TYPE

#: Steps that tune CRUSH's search and do not change which results are legal.
_TUNING_STEPS = frozenset((
    "set_choose_tries", "set_chooseleaf_tries", "set_choose_local_tries",
    "set_choose_local_fallback_tries", "set_chooseleaf_vary_r", "set_chooseleaf_stable", "noop"))
#: Likewise, at the beginning of MSR rules.
_MSR_TUNING_STEPS = frozenset(("set_msr_descents", "set_msr_collision_tries"))
#: Types of MSR rules.
MSR_FIRSTN = 4
MSR_INDEP = 5
#: Types of rules that erasure-coded pools can have; replicated ones have the others.
ERASURE_TYPES = frozenset((3, MSR_INDEP))
#: Choose step → True if it goes down to OSDs without another step.
_CHOOSE_STEPS = {
    "choose_firstn": False, "choose_indep": False,
    "chooseleaf_firstn": True, "chooseleaf_indep": True}


class UnsupportedRule(ValueError):
    """A rule that equilibrium does not understand; the message is one sentence for operators."""


class ChooseStep(NamedTuple):
    """One choose step: `num` buckets (or OSDs) of `type_name` under each bucket chosen before."""

    type_name: str
    num: int


class TakeBlock(NamedTuple):
    """One take … emit of a rule: its positions in the up set and its choose steps."""

    take: int
    choose_steps: Tuple[ChooseStep, ...]
    start: int      # first position in the up set
    positions: int  # how many of the pool's shards it places
    is_msr: bool    # of choosemsr steps (crush/msr.py)

    def shards_below(self, number: int) -> int:
        """Returns the most shards of one PG in a bucket that this choose step chose."""
        return prod([deeper.num for deeper in self.choose_steps[number + 1:]])


class FailureDomain(NamedTuple):
    """One choose step above OSDs: its buckets, and how many shards and buckets it allows."""

    type_name: str
    bucket_of: Mapping[int, int]  # OSD → bucket of this type; CRUSH cannot choose other OSDs
    shards_per_bucket: int
    buckets_per_parent: int       # most buckets that a PG uses under one bucket of the step before


def resolved_num(num: int, pool_size: int) -> int:
    """Returns a choose step's count: 0 means the pool's size, -n the size less n
    (crush_do_rule)."""
    return num if num > 0 else num + pool_size


def parse_rule(rule: Mapping[str, Any], pool_size: int) -> List[TakeBlock]:
    """Splits a rule's dump into its take blocks for a pool of `pool_size` shards.

    Raises UnsupportedRule for unknown steps, for an emit without a take, and for choose steps of no
    bucket or below OSDs. Also for rules that do not end at OSDs, or that place too few shards.
    """
    is_msr = rule.get("type") in (MSR_FIRSTN, MSR_INDEP)
    blocks: List[TakeBlock] = []
    take: Optional[int] = None
    chosen: List[ChooseStep] = []
    placed = 0
    for step in rule.get("steps", []):
        op = step.get("op", "")
        can_choose = op in _CHOOSE_STEPS
        can_emit = op == "emit"
        if is_msr:
            can_choose = op == "choosemsr" and take is not None
            can_emit = can_emit and take is not None and take < 0
        if op == "take":
            take = step["item"]
            chosen = []
        elif can_emit:
            if take is None:
                raise UnsupportedRule("the rule emits before it takes")
            steps = _emitted_steps(take, chosen)
            positions = min(prod([level.num for level in steps]), pool_size - placed)
            if positions > 0:
                blocks.append(TakeBlock(take, steps, placed, positions, is_msr))
                placed += positions
            take = None
            chosen = []
        elif can_choose:
            if is_msr and step["num"] < 0:
                raise UnsupportedRule(_NO_BUCKET)
            _add_step(chosen, step, pool_size)
        elif is_msr:
            if op not in _MSR_TUNING_STEPS or take is not None or blocks:
                raise UnsupportedRule(f"the rule has the step {op} where no MSR rule has one")
        elif op not in _TUNING_STEPS:
            raise UnsupportedRule(f"the rule has the unknown step {op}")
    if placed < pool_size:
        raise UnsupportedRule(f"the rule places {placed} of {pool_size} shards")
    return blocks


_NO_BUCKET = "the rule has a choose step for no bucket at all"


def _emitted_steps(take: int, chosen: List[ChooseStep]) -> Tuple[ChooseStep, ...]:
    """Returns the choose steps of an emit; a step of one OSD if the rule takes a single OSD."""
    if not chosen:
        if take < 0:
            raise UnsupportedRule("the rule emits a bucket instead of OSDs")
        return (ChooseStep(OSD_TYPE, 1),)
    last = chosen[-1].type_name
    if last != OSD_TYPE:
        raise UnsupportedRule(f"the rule emits buckets of type {last} instead of OSDs")
    return tuple(chosen)


def _add_step(chosen: List[ChooseStep], step: Mapping[str, Any], pool_size: int) -> None:
    """Adds a choose step; a chooseleaf step adds one for its OSDs as well."""
    num = resolved_num(step["num"], pool_size)
    if num <= 0:
        raise UnsupportedRule(_NO_BUCKET)
    if chosen and chosen[-1].type_name == OSD_TYPE:
        raise UnsupportedRule("the rule chooses again below OSDs")
    chosen.append(ChooseStep(step["type"], num))
    if _CHOOSE_STEPS.get(step["op"]) and step["type"] != OSD_TYPE:
        chosen.append(ChooseStep(OSD_TYPE, 1))
