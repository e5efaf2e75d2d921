"""CRUSH mappings against those that crushtool and osdmaptool have recorded."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest

from mgr_stub.crush.mapper import Mapper, raw_pg_to_osds
from tests.support.clusters import crush_cases

GOLDEN = crush_cases.golden()


@pytest.mark.parametrize("name", crush_cases.cases())
@pytest.mark.parametrize("rule", crush_cases.RULES)
def test_every_rule_as_crushtool(name: str, rule: int) -> None:
    dump, reweights = crush_cases.cases()[name]
    mapper = Mapper(dump)
    # crushtool maps as if for a pool 0
    mapped = [list(mapper.map(rule, x, crush_cases.COUNTS[rule], reweights, 0))
              for x in range(crush_cases.COUNT_OF_X)]
    assert mapped == GOLDEN["mappings"][name][str(rule)]


def test_pools_as_osdmaptool() -> None:
    dump, reweights = crush_cases.cases()["reweighted"]
    mapper = Mapper(dump)
    mapped = {f"{pool['pool']}.{seed:x}": list(raw_pg_to_osds(
        mapper, pool, seed, list(reweights.values()), lambda osd: osd != crush_cases.MISSING))
        for pool in crush_cases.POOLS for seed in range(pool["pg_num"])}
    assert mapped == GOLDEN["pools"]


def test_choose_args_of_a_pool_or_the_default_ones() -> None:
    both = Mapper(crush_cases.cases()["positions"][0])
    default = Mapper(crush_cases.cases()["weight-set"][0])
    plain = Mapper(crush_cases.dump())

    def maps(mapper: Mapper, key: Any) -> Tuple[Tuple[int, ...], ...]:
        return tuple(mapper.map(0, x, 3, crush_cases.ALL_IN, key) for x in range(50))
    assert maps(both, 5) == maps(both, None) == maps(default, 5) == maps(default, "0")
    assert maps(both, 0) == maps(both, "0")
    assert len({maps(both, 0), maps(both, 5), maps(plain, 5)}) == 3


def test_rules_of_old_dumps_serve_a_type_and_sizes() -> None:
    dump = crush_cases.dump()
    mapper = Mapper(dump)
    assert mapper.rule_for(1, 3, 99) == 1 and mapper.rule_for(44, 1, 3) is None
    masked = [{**rule, "ruleset": rule["rule_id"], "min_size": 1, "max_size": 3}
              for rule in dump["rules"]]
    mapper = Mapper({**dump, "rules": masked})
    assert mapper.rule_for(1, 1, 3) == 1
    assert mapper.rule_for(1, 3, 3) is None  # rules of crush_maps are of type 1
    assert mapper.rule_for(1, 1, 4) is None
    pool = {**crush_cases.POOLS[0], "size": 4}
    assert raw_pg_to_osds(mapper, pool, 0, crush_cases.ALL_IN, lambda osd: True) == ()


def _with_bucket(**changes: Any) -> Dict[str, Any]:
    dump = crush_cases.dump()
    return {**dump, "buckets": [{**bucket, **changes} if bucket["name"] == "e" else bucket
                                for bucket in dump["buckets"]]}


@pytest.mark.parametrize("dump, words", [
    (_with_bucket(alg="uniform"), "bucket e is of algorithm uniform"),
    (_with_bucket(alg="straw"), "bucket e is of algorithm straw;"),
    (_with_bucket(hash="other"), "bucket e has the hash other"),
    (_with_bucket(items=[{"id": -99, "weight": 65536, "pos": 0}]), "bucket -99 does not exist"),
    (crush_cases.dump(tunables={"choose_local_tries": 2}), "choose_local_tries is 2"),
    (crush_cases.dump(choose_args={"-1": [{"bucket_id": -1, "weight_set": [[1.0]]}]}),
     "choose_args of CRUSH bucket -1"),
    (crush_cases.dump(rules=[]), "rule 0 does not exist"),
    (crush_cases.dump(rules=[{"rule_id": 0, "steps": [{"op": "choose_msr"}]}]), "choose_msr"),
    (crush_cases.dump(rules=[{"rule_id": 0, "steps": [
        {"op": "choose_firstn", "num": 0, "type": "pod"}]}]), "pod, which is no CRUSH type"),
    (crush_cases.dump(rules=[{"rule_id": 0, "steps": [{"opcode": 11, "arg1": 5, "arg2": 0}]}]),
     "set_choose_local_fallback_tries is 5"),
])
def test_unsupported_features_raise(dump: Dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Mapper(dump).map(0, 1, 3, crush_cases.ALL_IN)


def test_steps_with_numeric_opcodes() -> None:
    steps = crush_cases.dump()["rules"][0]["steps"]
    rules = [{"rule_id": 0, "steps": [{"opcode": 12, "arg1": 0, "arg2": 0},
                                      {"opcode": 13, "arg1": 0, "arg2": 0}] + steps}]
    by_rule = Mapper(crush_cases.dump(rules=rules))
    by_tunables = Mapper(crush_cases.dump(tunables={"chooseleaf_vary_r": 0,
                                                    "chooseleaf_stable": 0}))
    usual = Mapper(crush_cases.dump())
    mapped = [[mapper.map(0, x, 3, crush_cases.ALL_IN) for x in range(60)]
              for mapper in (by_rule, by_tunables, usual)]
    assert mapped[0] == mapped[1] != mapped[2]


def test_dumps_without_type_ids() -> None:
    dump = crush_cases.dump(types=[])
    dump["buckets"] = [{key: value for key, value in bucket.items() if key != "type_id"}
                       for bucket in dump["buckets"]]
    mapped = [list(Mapper(dump).map(2, x, 4, crush_cases.ALL_IN))
              for x in range(crush_cases.COUNT_OF_X)]
    assert mapped == GOLDEN["mappings"]["plain"]["2"]
