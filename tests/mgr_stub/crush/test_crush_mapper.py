"""CRUSH mappings against those that crushtool and osdmaptool have recorded.

Small CRUSH maps whose mappings crushtool 16.2.15 has recorded in crush_golden.json.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from mgr_stub.crush.mapper import Mapper, raw_pg_to_osds
from tests.support.clusters.crush_maps import crush_map


#: What crushtool and osdmaptool gave: {"mappings": {case: {rule: [...]}}, "pools": ...}.
GOLDEN: Dict[str, Any] = json.loads(Path(__file__).with_name("crush_golden.json").read_text())
COUNT_OF_X = 16

TREE = {"root default": {
    "rack r1": {"host a": [0, 1, 2], "host b": [3, 4], "host c": [5, 6]},
    "rack r2": {"host d": [8, 9, 10, 11], "host e": [12, 13]},
    "rack r3": {"host f": [14, 15, 16], "host g": [17], "host h": [20, 21]}}}
SSDS = (2, 4, 6, 11, 13, 16, 21)
RULES = {
    0: "take default; chooseleaf firstn 0 host; emit",
    1: "take default~hdd; chooseleaf indep 0 host; emit",
    2: "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit",
    3: "take default; choose indep 3 rack; chooseleaf indep 2 host; emit",
    4: "take default~ssd; choose firstn 0 osd; emit",
    5: "take default~ssd; chooseleaf firstn 1 host; emit;"
       "take default~hdd; chooseleaf firstn -1 host; emit",
    6: "set_chooseleaf_tries 5; set_choose_tries 100; take default; chooseleaf indep 0 rack; emit",
}
COUNTS = {0: 3, 1: 5, 2: 4, 3: 6, 4: 3, 5: 3, 6: 4}

#: Reweights 16.16 by OSD id; ids in no bucket are out, as crushtool has them.
ALL_IN = {**dict.fromkeys(range(22), 0x10000), 7: 0, 18: 0, 19: 0}
SOME_OUT = {**ALL_IN, 0: 0, 5: 0x8000, 12: 0x4000, 13: 0x4000, 14: 0xC000, 17: 0, 21: 0x2000}
OLD_TUNABLES = {"choose_total_tries": 19, "chooseleaf_descend_once": 0, "chooseleaf_vary_r": 0,
                "chooseleaf_stable": 0}
WEIGHTS = (1.0, 2.0, 3.5, 7.25)


def pool_of(pool: int, **fields: int) -> Dict[str, Any]:
    """As in `ceph osd dump`."""
    return {"pool": pool, "type": 1, "size": 3, "crush_rule": 0, "pg_num": 12,
            "pg_placement_num": 12, "flags": 1, **fields}


#: Pools of the map "plain"; OSD 9 is not in the osdmap.
POOLS = [pool_of(1), pool_of(2, pg_placement_num=5, flags=0),
         pool_of(3, type=3, size=5, crush_rule=1)]
MISSING = 9


def crush_of(**parts: Any) -> Dict[str, Any]:
    """The dump of the tree, with other tunables or choose_args."""
    weights = {osd: WEIGHTS[osd % 4] for osd in range(22)}
    return {**crush_map(TREE, RULES, dict.fromkeys(SSDS, "ssd"), weights), **parts}


def _arguments(positions: int) -> List[Dict[str, Any]]:
    """Weights that differ from the CRUSH weights in every bucket; ids too with positions."""
    entries = []
    for bucket in crush_of()["buckets"]:
        items, weight_set = bucket["items"], []
        for position in range(positions):
            first = 5 * position + bucket["id"]
            weight_set.append([item["weight"] * (0.5 + (first + 3 * place) % 4 / 4) / 0x10000
                               for place, item in enumerate(items)])
        entry = {"bucket_id": bucket["id"], "weight_set": weight_set}
        if positions > 1 and bucket["type_name"] == "host":
            entry["ids"] = [100 + item["id"] for item in items]
        entries.append(entry)
    return entries


PLAIN = crush_of()
WEIGHT_SET = crush_of(choose_args={"-1": _arguments(1)})
POSITIONS = crush_of(choose_args={"-1": _arguments(1), "0": _arguments(3)})
CASES = {
    "plain": (PLAIN, ALL_IN),
    "reweighted": (PLAIN, SOME_OUT),
    "old tunables": (crush_of(tunables=OLD_TUNABLES), SOME_OUT),
    "weight-set": (WEIGHT_SET, ALL_IN),
    "positions": (POSITIONS, SOME_OUT)}


def mapped(dump: Dict[str, Any], rule: int = 0, reweights: Any = None, key: Any = None,
           count: int = COUNT_OF_X) -> List[List[int]]:
    """What a rule gives for the first inputs; all OSDs are in unless told."""
    mapper = Mapper(dump)
    return [list(mapper.map(rule, x, COUNTS[rule], reweights or ALL_IN, key))
            for x in range(count)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_as_crushtool(name: str, rule: int) -> None:
    """It maps as if for a pool 0."""
    dump, reweights = CASES[name]
    assert mapped(dump, rule, reweights, 0) == GOLDEN["mappings"][name][str(rule)]


@pytest.mark.parametrize("pool", POOLS)
def test_pools_as_osdmaptool(pool: Dict[str, Any]) -> None:
    mapper, weights = Mapper(PLAIN), list(SOME_OUT.values())
    for seed in range(12):
        osds = raw_pg_to_osds(mapper, pool, seed, weights, lambda osd: osd != MISSING)
        assert list(osds) == GOLDEN["pools"][f"{pool['pool']}.{seed:x}"]


def test_choose_args_of_a_pool_or_the_default_ones() -> None:
    def maps(dump: Dict[str, Any], key: Any) -> List[List[int]]:
        return mapped(dump, 0, None, key, 50)
    default = maps(WEIGHT_SET, 5)
    assert maps(POSITIONS, 5) == maps(POSITIONS, None) == default == maps(WEIGHT_SET, "0")
    own, plain = maps(POSITIONS, 0), maps(PLAIN, 5)
    assert own == maps(POSITIONS, "0")
    assert own != default != plain != own


def test_rules_of_old_dumps_serve_a_type_and_sizes() -> None:
    mapper = Mapper(PLAIN)
    assert mapper.rule_for(1, 3, 99) == 1 and mapper.rule_for(44, 1, 3) is None
    masked = crush_of()
    for rule in masked["rules"]:   # rules of crush_maps are of type 1
        rule.update(ruleset=rule["rule_id"], min_size=1, max_size=3)
    mapper = Mapper(masked)
    found = [mapper.rule_for(1, kind, size) for kind, size in ((1, 3), (3, 3), (1, 4))]
    assert found == [1, None, None]
    assert raw_pg_to_osds(mapper, pool_of(1, size=4), 0, ALL_IN, lambda osd: True) == ()


def _with_bucket(**changes: Any) -> Dict[str, Any]:
    dump = crush_of()
    for bucket in dump["buckets"]:
        if bucket["name"] == "e":
            bucket.update(changes)
    return dump


def _with_step(**step: Any) -> Dict[str, Any]:
    return crush_of(rules=[{"rule_id": 0, "steps": [step]}])


@pytest.mark.parametrize("dump, words", [
    (_with_bucket(alg="uniform"), "bucket e is of algorithm uniform"),
    (_with_bucket(alg="straw"), "bucket e is of algorithm straw;"),
    (_with_bucket(hash="other"), "bucket e has the hash other"),
    (_with_bucket(items=[{"id": -99, "weight": 65536, "pos": 0}]), "bucket -99 does not exist"),
    (crush_of(tunables={"choose_local_tries": 2}), "choose_local_tries is 2"),
    (crush_of(choose_args={"-1": [{"bucket_id": -1, "weight_set": [[1.0]]}]}),
     "choose_args of CRUSH bucket -1"),
    (crush_of(rules=[]), "rule 0 does not exist"),
    (_with_step(op="choose_msr"), "choose_msr"),
    (_with_step(op="choose_firstn", num=0, type="pod"), "pod, which is no CRUSH type"),
    (_with_step(opcode=11, arg1=5, arg2=0), "set_choose_local_fallback_tries is 5"),
])
def test_unsupported_features_raise(dump: Dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mapped(dump)


def test_steps_with_numeric_opcodes() -> None:
    """They set the same as tunables of the whole map."""
    by_rule = crush_of()
    by_rule["rules"][0]["steps"][:0] = [
        {"opcode": 12, "arg1": 0, "arg2": 0}, {"opcode": 13, "arg1": 0, "arg2": 0}]
    by_tunables = crush_of(tunables={"chooseleaf_vary_r": 0, "chooseleaf_stable": 0})
    assert mapped(by_rule, count=60) == mapped(by_tunables, count=60) != mapped(PLAIN, count=60)


def test_dumps_without_type_ids() -> None:
    dump = crush_of(types=[])
    for bucket in dump["buckets"]:
        del bucket["type_id"]
    assert mapped(dump, 2) == GOLDEN["mappings"]["plain"]["2"]
