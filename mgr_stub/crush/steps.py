"""CRUSH rules and tunables, parsed from a dump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Tuple

#: Step opcodes that a dump contains as numbers only.
_OPCODES = {8: "set_choose_tries", 9: "set_chooseleaf_tries", 10: "set_choose_local_tries",
            11: "set_choose_local_fallback_tries", 12: "set_chooseleaf_vary_r",
            13: "set_chooseleaf_stable"}

_PLAIN = ("take", "emit", "noop") + tuple(_OPCODES.values())
_CHOOSE = ("choose_firstn", "choose_indep", "chooseleaf_firstn", "chooseleaf_indep")


@dataclass(frozen=True)
class Step:
    """One step. `number` is the item of a take, the count of a choose, the value of a set."""

    op: str
    number: int = 0
    type_id: int = 0


@dataclass(frozen=True)
class Tries:
    """Numbers of tries of CRUSH: the tunables, or the values that a rule sets.

    `choose` counts attempts, not retries; `leaf` is 0 unless a rule sets it.
    """

    choose: int
    leaf: int
    descend_once: bool
    vary_r: int
    stable: bool


def tries_of(dump: Mapping[str, Any]) -> Tries:
    """The tunables of a dump, the missing ones as in the profile `jewel`."""
    tunables = dump.get("tunables") or {}
    for name in ("choose_local_tries", "choose_local_fallback_tries"):
        check_no_local_tries(name, int(tunables.get(name, 0)))
    return Tries(choose=int(tunables.get("choose_total_tries", 50)) + 1, leaf=0,
                 descend_once=bool(tunables.get("chooseleaf_descend_once", 1)),
                 vary_r=int(tunables.get("chooseleaf_vary_r", 1)),
                 stable=bool(tunables.get("chooseleaf_stable", 1)))


def check_no_local_tries(name: str, value: int) -> None:
    """ValueError for retries within a bucket, which no profile since 2012 uses."""
    if value > 0:
        raise ValueError(f"{name} is {value}; CRUSH is computed here only with 0")


def steps_of(rule: Mapping[str, Any], type_ids: Mapping[str, int]) -> Tuple[Step, ...]:
    """The steps of a dumped rule; ValueError for an unknown step."""
    return tuple(_step(step, rule, type_ids) for step in rule["steps"])


def _step(step: Mapping[str, Any], rule: Mapping[str, Any], type_ids: Mapping[str, int]) -> Step:
    op = step.get("op") or _OPCODES.get(step.get("opcode", -1), "")
    number = int(step.get("item", step.get("num", step.get("arg1", 0))))
    if op in _PLAIN:
        return Step(op, number)
    if op not in _CHOOSE:
        raise ValueError(f"rule {rule['rule_id']} has a step that is not computed: {dict(step)}")
    if step["type"] not in type_ids:
        raise ValueError(f"rule {rule['rule_id']} chooses {step['type']}, which is no CRUSH type")
    return Step(op, number, type_ids[step["type"]])


def type_ids_of(dump: Mapping[str, Any]) -> Dict[str, int]:
    """{name: id} of the CRUSH types; includes `osd` and bucket types missing in `types`."""
    known = {"osd": 0, **{entry["name"]: entry["type_id"] for entry in dump.get("types", ())}}
    for bucket in dump["buckets"]:
        known.setdefault(bucket["type_name"], bucket.get("type_id", -1 - len(known)))
    return known
