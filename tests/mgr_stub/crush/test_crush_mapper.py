"""CRUSH mappings against those that crushtool and osdmaptool have recorded.

Small CRUSH maps whose mappings crushtool 16.2.15 has recorded in crush_golden.json.
"""
from __future__ import annotations

import json
import pytest
from pathlib import Path
from typing import Any, Dict, List, Tuple

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
ALL_IN = {osd: 0x10000 if osd not in (7, 18, 19) else 0 for osd in range(22)}
SOME_OUT = {**ALL_IN, 0: 0, 5: 0x8000, 12: 0x4000, 13: 0x4000, 14: 0xC000, 17: 0, 21: 0x2000}
OLD_TUNABLES = {"choose_total_tries": 19, "chooseleaf_descend_once": 0, "chooseleaf_vary_r": 0,
                "chooseleaf_stable": 0}

#: Pools of the map "plain", as in `ceph osd dump`; OSD 9 is not in the osdmap.
POOLS: List[Dict[str, Any]] = [
    {"pool": 1, "type": 1, "size": 3, "crush_rule": 0, "pg_num": 12, "pg_placement_num": 12,
     "flags": 1},
    {"pool": 2, "type": 1, "size": 3, "crush_rule": 0, "pg_num": 12, "pg_placement_num": 5,
     "flags": 0},
    {"pool": 3, "type": 3, "size": 5, "crush_rule": 1, "pg_num": 12, "pg_placement_num": 12,
     "flags": 1}]
MISSING = 9


def cases() -> Dict[str, Tuple[Dict[str, Any], Dict[int, int]]]:
    """{name: (CRUSH dump, reweights)}."""
    return {"plain": (crush_of(), ALL_IN), "reweighted": (crush_of(), SOME_OUT),
            "old tunables": (crush_of(tunables=OLD_TUNABLES), SOME_OUT),
            "weight-set": (crush_of(choose_args={"-1": _arguments(1)}), ALL_IN),
            "positions": (crush_of(choose_args={"-1": _arguments(1), "0": _arguments(3)}),
                          SOME_OUT)}


def crush_of(**parts: Any) -> Dict[str, Any]:
    """The dump of the tree, with other tunables or choose_args."""
    weights = {osd: (1.0, 2.0, 3.5, 7.25)[osd % 4] for osd in range(22)}
    return {**crush_map(TREE, RULES, {osd: "ssd" for osd in SSDS}, weights), **parts}


def _arguments(positions: int) -> List[Dict[str, Any]]:
    """Weights that differ from the CRUSH weights in every bucket; ids too with positions."""
    entries = []
    for bucket in crush_of()["buckets"]:
        factors = [[0.5 + (3 * place + 5 * position + bucket["id"]) % 4 / 4
                    for place in range(len(bucket["items"]))] for position in range(positions)]
        entry = {"bucket_id": bucket["id"], "weight_set": [
            [factor * item["weight"] / 0x10000 for factor, item in zip(row, bucket["items"])]
            for row in factors]}
        if positions > 1 and bucket["type_name"] == "host":
            entry["ids"] = [100 + item["id"] for item in bucket["items"]]
        entries.append(entry)
    return entries


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_as_crushtool(name: str, rule: int) -> None:
    dump, reweights = cases()[name]
    mapper = Mapper(dump)
    # crushtool maps as if for a pool 0
    mapped = [list(mapper.map(rule, x, COUNTS[rule], reweights, 0))
              for x in range(COUNT_OF_X)]
    assert mapped == GOLDEN["mappings"][name][str(rule)]


def test_pools_as_osdmaptool() -> None:
    dump, reweights = cases()["reweighted"]
    mapper = Mapper(dump)
    mapped = {f"{pool['pool']}.{seed:x}": list(raw_pg_to_osds(
        mapper, pool, seed, list(reweights.values()), lambda osd: osd != MISSING))
        for pool in POOLS for seed in range(pool["pg_num"])}
    assert mapped == GOLDEN["pools"]


def test_choose_args_of_a_pool_or_the_default_ones() -> None:
    both = Mapper(cases()["positions"][0])
    default = Mapper(cases()["weight-set"][0])
    plain = Mapper(crush_of())

    def maps(mapper: Mapper, key: Any) -> Tuple[Tuple[int, ...], ...]:
        return tuple(mapper.map(0, x, 3, ALL_IN, key) for x in range(50))
    assert maps(both, 5) == maps(both, None) == maps(default, 5) == maps(default, "0")
    assert maps(both, 0) == maps(both, "0")
    assert len({maps(both, 0), maps(both, 5), maps(plain, 5)}) == 3


def test_rules_of_old_dumps_serve_a_type_and_sizes() -> None:
    dump = crush_of()
    mapper = Mapper(dump)
    assert mapper.rule_for(1, 3, 99) == 1 and mapper.rule_for(44, 1, 3) is None
    masked = [{**rule, "ruleset": rule["rule_id"], "min_size": 1, "max_size": 3}
              for rule in dump["rules"]]
    mapper = Mapper({**dump, "rules": masked})
    assert mapper.rule_for(1, 1, 3) == 1
    assert mapper.rule_for(1, 3, 3) is None  # rules of crush_maps are of type 1
    assert mapper.rule_for(1, 1, 4) is None
    pool = {**POOLS[0], "size": 4}
    assert raw_pg_to_osds(mapper, pool, 0, ALL_IN, lambda osd: True) == ()


def _with_bucket(**changes: Any) -> Dict[str, Any]:
    dump = crush_of()
    return {**dump, "buckets": [{**bucket, **changes} if bucket["name"] == "e" else bucket
                                for bucket in dump["buckets"]]}


@pytest.mark.parametrize("dump, words", [
    (_with_bucket(alg="uniform"), "bucket e is of algorithm uniform"),
    (_with_bucket(alg="straw"), "bucket e is of algorithm straw;"),
    (_with_bucket(hash="other"), "bucket e has the hash other"),
    (_with_bucket(items=[{"id": -99, "weight": 65536, "pos": 0}]), "bucket -99 does not exist"),
    (crush_of(tunables={"choose_local_tries": 2}), "choose_local_tries is 2"),
    (crush_of(choose_args={"-1": [{"bucket_id": -1, "weight_set": [[1.0]]}]}),
     "choose_args of CRUSH bucket -1"),
    (crush_of(rules=[]), "rule 0 does not exist"),
    (crush_of(rules=[{"rule_id": 0, "steps": [{"op": "choose_msr"}]}]), "choose_msr"),
    (crush_of(rules=[{"rule_id": 0, "steps": [
        {"op": "choose_firstn", "num": 0, "type": "pod"}]}]), "pod, which is no CRUSH type"),
    (crush_of(rules=[{"rule_id": 0, "steps": [{"opcode": 11, "arg1": 5, "arg2": 0}]}]),
     "set_choose_local_fallback_tries is 5"),
])
def test_unsupported_features_raise(dump: Dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Mapper(dump).map(0, 1, 3, ALL_IN)


def test_steps_with_numeric_opcodes() -> None:
    steps = crush_of()["rules"][0]["steps"]
    rules = [{"rule_id": 0, "steps": [{"opcode": 12, "arg1": 0, "arg2": 0},
                                      {"opcode": 13, "arg1": 0, "arg2": 0}] + steps}]
    by_rule = Mapper(crush_of(rules=rules))
    by_tunables = Mapper(crush_of(tunables={"chooseleaf_vary_r": 0,
                                            "chooseleaf_stable": 0}))
    usual = Mapper(crush_of())
    mapped = [[mapper.map(0, x, 3, ALL_IN) for x in range(60)]
              for mapper in (by_rule, by_tunables, usual)]
    assert mapped[0] == mapped[1] != mapped[2]


def test_dumps_without_type_ids() -> None:
    dump = crush_of(types=[])
    dump["buckets"] = [{key: value for key, value in bucket.items() if key != "type_id"}
                       for bucket in dump["buckets"]]
    mapped = [list(Mapper(dump).map(2, x, 4, ALL_IN))
              for x in range(COUNT_OF_X)]
    assert mapped == GOLDEN["mappings"]["plain"]["2"]
