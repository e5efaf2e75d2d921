"""Runs CRUSH rules: from an input x to the items that a rule gives for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .choose import Chooser, is_out
from .msr import MsrRule, is_msr, map_msr, parse_msr
from .steps import Step, Tries, check_no_local_tries, steps_of, tries_of, type_ids_of
from .tree import Tree, choose_args_for

#: 16.16 reweights by OSD id (0x10000 = in, 0 = out); OSDs that are missing count as out.
Reweights = Union[Sequence[int], Mapping[int, int]]


class Mapper:
    """The rules of one CRUSH dump, which must not change afterwards.

    Buckets other than straw2, unknown steps and local tries raise ValueError when first used.
    """

    def __init__(self, dump: Mapping[str, Any]) -> None:
        self._dump = dump
        self._tries = tries_of(dump)
        self._type_ids = type_ids_of(dump)
        self._rules = {rule["rule_id"]: rule for rule in dump["rules"]}
        self._steps: Dict[int, Tuple[Step, ...]] = {}
        self._msr_rules: Dict[int, MsrRule] = {}
        self._trees: Dict[Optional[str], Tree] = {}

    def map(self, rule_id: int, x: int, count: int, reweights: Reweights,
            choose_args_key: Union[int, str, None] = None) -> Tuple[int, ...]:
        """Up to `count` items for an input x (32 bits), as `crushtool --test` shows them.

        A rule of indep steps has NONE where it finds nothing, one of firstn steps is shorter.
        `choose_args_key` is the pool id; a pool without choose_args uses those of key -1, if any.
        """
        x, reweight = x & 0xFFFFFFFF, _reader(reweights)
        if is_msr(self._rules.get(rule_id, {})):
            return map_msr(self._msr_rule(rule_id), self._tree(choose_args_key), x, count,
                           lambda osd: is_out(x, osd, reweight(osd)))
        run = _Run(self._tree(choose_args_key), x, count, reweight, self._tries)
        for step in self._steps_of(rule_id):
            run.step(step)
        return tuple(run.result)

    def rule_for(self, crush_rule: int, pool_type: int, size: int) -> Optional[int]:
        """The rule that serves pools of a `crush_rule`, type and size; None if there is none.

        Dumps of Ceph 16 and earlier have rules for a type and a range of sizes only.
        """
        for rule_id, rule in self._rules.items():
            if rule.get("ruleset", rule_id) != crush_rule:
                continue
            if "ruleset" not in rule or (
                    rule["type"] == pool_type and rule["min_size"] <= size <= rule["max_size"]):
                return int(rule_id)
        return None

    def _tree(self, choose_args_key: Union[int, str, None]) -> Tree:
        key = None if choose_args_key is None else str(choose_args_key)
        if key not in self._trees:
            # pools without their own set share one tree
            own = key is not None and key in (self._dump.get("choose_args") or {})
            self._trees[key] = self._tree(None) if key is not None and not own else Tree(
                self._dump, choose_args_for(self._dump, key), self._type_ids)
        return self._trees[key]

    def _msr_rule(self, rule_id: int) -> MsrRule:
        if rule_id not in self._msr_rules:
            self._msr_rules[rule_id] = parse_msr(
                self._rules[rule_id], self._dump.get("tunables") or {}, self._type_ids)
        return self._msr_rules[rule_id]

    def _steps_of(self, rule_id: int) -> Tuple[Step, ...]:
        if rule_id not in self._steps:
            if rule_id not in self._rules:
                raise ValueError(f"CRUSH rule {rule_id} does not exist")
            self._steps[rule_id] = steps_of(self._rules[rule_id], self._type_ids)
        return self._steps[rule_id]


class _Run:
    """Execution of one rule for one x: the working set of items, and the emitted ones."""

    def __init__(self, tree: Tree, x: int, count: int, reweight: Callable[[int], int],
                 tries: Tries) -> None:
        self.result: List[int] = []
        self._tree = tree
        self._count = count
        self._items: List[int] = []
        self._chooser = Chooser(tree, x, reweight, tries)

    def step(self, step: Step) -> None:
        if step.op == "take":
            if self._tree.has(step.number):
                self._items = [step.number]
        elif step.op == "emit":
            self.result += self._items[:self._count - len(self.result)]
            self._items = []
        elif step.op.startswith("choose"):
            self._items = self._choose(step)
        elif step.op != "noop":
            self._set(step.op, step.number)

    def _choose(self, step: Step) -> List[int]:
        """The items that a choose step finds below the items of the working set, in their order."""
        count = step.number if step.number > 0 else step.number + self._count
        chosen: List[int] = []
        for item in self._items:
            if item >= 0 or count <= 0:
                continue  # an OSD or a hole has no items below
            bucket, places = self._tree.bucket(item), self._count - len(chosen)
            to_leaf = step.op.startswith("chooseleaf")
            if step.op.endswith("firstn"):
                chosen += self._chooser.firstn(bucket, count, places, step.type_id, to_leaf)
            else:
                chosen += self._chooser.indep(bucket, count, min(count, places), step.type_id,
                                              to_leaf)
        return chosen

    def _set(self, op: str, value: int) -> None:
        tries = self._chooser.tries
        if op in ("set_choose_local_tries", "set_choose_local_fallback_tries"):
            check_no_local_tries(op, value)
        elif op == "set_choose_tries" and value > 0:
            self._chooser.tries = replace(tries, choose=value)
        elif op == "set_chooseleaf_tries" and value > 0:
            self._chooser.tries = replace(tries, leaf=value)
        elif op == "set_chooseleaf_vary_r" and value >= 0:
            self._chooser.tries = replace(tries, vary_r=value)
        elif op == "set_chooseleaf_stable" and value >= 0:
            self._chooser.tries = replace(tries, stable=bool(value))


def _reader(reweights: Reweights) -> Callable[[int], int]:
    if isinstance(reweights, Mapping):
        by_id = reweights
        return lambda osd: by_id.get(osd, 0)
    listed = reweights
    return lambda osd: listed[osd] if osd < len(listed) else 0
