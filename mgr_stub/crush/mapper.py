"""Runs CRUSH rules: from an input x to the items that a rule gives for it.

CRUSH rules and tunables, parsed from a dump.

The choose steps of CRUSH: several distinct items of a type from below one bucket.

Both modes descend the tree with a trial number r, which differs by position and by retry. They
retry if the item is already chosen or out. `firstn` fills position after position and leaves out
positions that it cannot fill; `indep` keeps the positions and leaves holes.

The raw mapping of a pool's PGs: the result of CRUSH before upmap items.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .hashes import NONE, WEIGHT_ONE, has_hashpspool, hash2, placement_seed
from .msr import MsrRule, is_msr, map_msr, parse_msr
from .tree import Bucket, Tree, choose_args_for


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
    """Returns the tunables of a dump, the missing ones as in the profile `jewel`."""
    tunables = dump.get("tunables") or {}
    for name in ("choose_local_tries", "choose_local_fallback_tries"):
        check_no_local_tries(name, int(tunables.get(name, 0)))
    return Tries(choose=int(tunables.get("choose_total_tries", 50)) + 1, leaf=0,
                 descend_once=bool(tunables.get("chooseleaf_descend_once", 1)),
                 vary_r=int(tunables.get("chooseleaf_vary_r", 1)),
                 stable=bool(tunables.get("chooseleaf_stable", 1)))


def check_no_local_tries(name: str, value: int) -> None:
    """Raises ValueError for retries within a bucket, which no profile since 2012 uses."""
    if value > 0:
        raise ValueError(f"{name} is {value}; CRUSH is computed here only with 0")


def steps_of(rule: Mapping[str, Any], type_ids: Mapping[str, int]) -> Tuple[Step, ...]:
    """Returns the steps of a dumped rule; ValueError for an unknown step."""
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
    """Returns {name: id} of the CRUSH types; includes `osd` and bucket types missing in `types`."""
    known = {"osd": 0, **{entry["name"]: entry["type_id"] for entry in dump.get("types", ())}}
    for bucket in dump["buckets"]:
        known.setdefault(bucket["type_name"], bucket.get("type_id", -1 - len(known)))
    return known


#: A position of indep that is still to be filled.
_UNDEFINED = 0x7FFFFFFE


class Chooser:
    """Chooses for one CRUSH input x.

    `reweight` gives the 16.16 reweight of an OSD, 0 for an OSD that is out or does not exist.
    """

    def __init__(self, tree: Tree, x: int, reweight: Callable[[int], int], tries: Tries) -> None:
        self._tree = tree
        self._x = x
        self._reweight = reweight
        self.tries = tries

    def firstn(self, bucket: Bucket, count: int, limit: int, type_id: int,
               to_leaf: bool) -> List[int]:
        """Returns up to `limit` items for `count` positions; with `to_leaf` an OSD below each
        instead.
        """
        chosen: List[int] = []
        leaves: List[int] = []
        for position in range(count):
            if len(chosen) >= limit:
                break
            found = self._one_of_firstn(bucket, position, type_id, to_leaf, chosen, leaves)
            if found is not None:
                chosen.append(found[0])
                leaves.append(found[1])
        if to_leaf:
            return leaves
        return chosen

    def _one_of_firstn(self, bucket: Bucket, position: int, type_id: int, to_leaf: bool,
                       chosen: List[int], leaves: List[int]) -> Optional[Tuple[int, int]]:
        """Returns an item and its OSD (or the item again); None if all tries fail."""
        for trial in range(position, position + self.tries.choose):
            item = self._descend(bucket, trial, type_id, len(chosen))
            if item == NONE:
                return None
            if item is None or item in chosen:
                continue
            leaf: Optional[int] = item
            if to_leaf and item < 0:
                leaf = self._leaf_of_firstn(self._tree.buckets[item], trial, leaves)
            if leaf is not None and not (type_id == 0 and self._is_out(item)):
                return item, leaf
        return None

    def _leaf_of_firstn(self, bucket: Bucket, trial: int, leaves: List[int]) -> Optional[int]:
        tries = self.tries
        attempts = tries.choose
        if tries.leaf:
            attempts = tries.leaf
        elif tries.descend_once:
            attempts = 1
        first = 0
        if tries.vary_r:
            first = trial >> (tries.vary_r - 1)
        if not tries.stable:
            first += len(leaves)
        for r in range(first, first + attempts):
            osd = self._descend(bucket, r, 0, len(leaves))
            if osd == NONE:
                return None
            if osd is not None and osd not in leaves and not self._is_out(osd):
                return osd
        return None

    def indep(self, bucket: Bucket, count: int, places: int, type_id: int,
              to_leaf: bool) -> List[int]:
        """Returns `places` of `count` positions, NONE at empty positions."""
        chosen = [_UNDEFINED] * places
        # a leaf that is out stays here when the tries are used up: Ceph returns it
        leaves = [_UNDEFINED] * places
        for attempt in range(self.tries.choose):
            if _UNDEFINED not in chosen:
                break
            for position in range(places):
                if chosen[position] == _UNDEFINED:
                    self._try_position(bucket, position, position + count * attempt, count,
                                       type_id, to_leaf, chosen, leaves)
        found = chosen
        if to_leaf:
            found = leaves
        return [NONE if item == _UNDEFINED else item for item in found]

    def _try_position(self, bucket: Bucket, position: int, trial: int, count: int, type_id: int,
                      to_leaf: bool, chosen: List[int], leaves: List[int]) -> None:
        """Makes one attempt to fill a position of indep; puts the result into the two lists."""
        item = self._descend(bucket, trial, type_id, 0)
        if item == NONE:
            chosen[position] = leaves[position] = NONE
        elif item is not None and item not in chosen:
            if to_leaf:
                leaf = item
                if item < 0:
                    leaf = self._leaf_of_indep(
                        self._tree.buckets[item], position, trial, count)
                leaves[position] = leaf
                if leaf == NONE:
                    return
            if not (type_id == 0 and self._is_out(item)):
                chosen[position] = item

    def _leaf_of_indep(self, bucket: Bucket, position: int, trial: int, count: int) -> int:
        for attempt in range(self.tries.leaf or 1):
            osd = self._descend(bucket, position + trial + count * attempt, 0, position)
            if osd == NONE:
                return NONE
            if osd is not None and not self._is_out(osd):
                return osd
        return NONE

    def _descend(self, bucket: Bucket, r: int, type_id: int, position: int) -> Optional[int]:
        """Returns the item of the type at trial number r; None at an empty bucket, NONE at a dead
        end.
        """
        buckets = self._tree.buckets
        x = self._x
        while bucket.straws:
            item = bucket.draw(x, r, position)
            if item >= 0:
                if type_id == 0:
                    return item
                return NONE
            bucket = buckets[item]
            if bucket.type_id == type_id:
                return item
        return None

    def _is_out(self, osd: int) -> bool:
        return is_out(self._x, osd, self._reweight(osd))


def is_out(x: int, osd: int, reweight: int) -> bool:
    """Returns True if its reweight (16.16) excludes an OSD for an input x."""
    if reweight >= WEIGHT_ONE:
        return False
    return reweight <= 0 or hash2(x, osd) & 0xFFFF >= reweight


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
        """Returns up to `count` items for an input x (32 bits), as `crushtool --test` shows them.

        A rule of indep steps fills up with NONE, a rule of firstn steps is shorter.
        `choose_args_key` is the pool id; a pool without choose_args uses those of key -1, if any.
        """
        x = x & 0xFFFFFFFF
        reweight = _reader(reweights)
        if is_msr(self._rules.get(rule_id, {})):
            return map_msr(self._msr_rule(rule_id), self._tree(choose_args_key), x, count,
                           lambda osd: is_out(x, osd, reweight(osd)))
        run = _Run(self._tree(choose_args_key), x, count, reweight, self._tries)
        for step in self._steps_of(rule_id):
            run.step(step)
        return tuple(run.result)

    def rule_for(self, crush_rule: int, pool_type: int, size: int) -> Optional[int]:
        """Returns the rule that serves pools of a `crush_rule`, type and size; None if there is
        none.

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
        key = None
        if choose_args_key is not None:
            key = str(choose_args_key)
        if key not in self._trees:
            if key is None or key in (self._dump.get("choose_args") or {}):
                self._trees[key] = Tree(
                    self._dump, choose_args_for(self._dump, key), self._type_ids)
            else:   # pools without their own set share one tree
                self._trees[key] = self._tree(None)
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
        """Returns the items that a choose step finds below the items of the working set, in their
        order.
        """
        count = step.number
        if count <= 0:
            count += self._count
        chosen: List[int] = []
        for item in self._items:
            if item >= 0 or count <= 0:
                continue  # an OSD or a hole has no items below
            bucket = self._tree.bucket(item)
            places = self._count - len(chosen)
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


#: Type of a replicated pool in the osdmap: missing OSDs are left out; in others they are holes.
_REPLICATED = 1


def raw_pg_to_osds(mapper: Mapper, pool: Mapping[str, Any], seed: int, reweights: Reweights,
                   exists: Callable[[int], bool]) -> Tuple[int, ...]:
    """Returns the raw mapping of PG number `seed` of a pool (an entry of `pools` of `ceph osd
    dump`).

    As `osdmaptool --test-map-pgs-dump-all` shows it: it includes OSDs that are down but exist.
    Empty if the pool's rule is missing.
    """
    rule_id = mapper.rule_for(int(pool["crush_rule"]), int(pool["type"]), int(pool["size"]))
    if rule_id is None:
        return ()
    pool_id = int(pool["pool"])
    pgp_num = int(pool.get("pg_placement_num") or pool["pg_num"])
    x = placement_seed(pool_id, seed, pgp_num, has_hashpspool(pool))
    mapped = mapper.map(rule_id, x, int(pool["size"]), reweights, pool_id)
    there = {osd for osd in mapped if osd != NONE and exists(osd)}
    found = tuple(osd if osd in there else NONE for osd in mapped)
    if int(pool["type"]) == _REPLICATED:
        return tuple(osd for osd in found if osd != NONE)
    return found
