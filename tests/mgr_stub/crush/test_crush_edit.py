"""Changes of a CRUSH dump keep sums, shadow trees and weight-sets, and the old dump."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Optional

import pytest

from mgr_stub.crush.edit import with_host, with_osd_weight
from mgr_stub.crush.mapper import Mapper
from tests.support.clusters import crush_cases

ONE = 0x10000


def buckets(dump: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    return {bucket["name"]: bucket for bucket in dump["buckets"]}


def items(dump: Dict[str, Any], name: str) -> Dict[int, float]:
    return {item["id"]: item["weight"] / ONE for item in buckets(dump)[name]["items"]}


def check(dump: Dict[str, Any], classes: Optional[List[str]] = None) -> None:
    """Weights and weight-sets sum up the tree, every bucket has a shadow for every class."""
    by_id = {bucket["id"]: bucket for bucket in dump["buckets"]}
    assert len(by_id) == len(dump["buckets"])
    for bucket in dump["buckets"]:
        assert bucket["weight"] == sum(item["weight"] for item in bucket["items"])
        assert [item["pos"] for item in bucket["items"]] == list(range(len(bucket["items"])))
        for item in bucket["items"]:
            assert item["id"] >= 0 or item["weight"] == by_id[item["id"]]["weight"]
    for entries in dump["choose_args"].values():
        sets = {entry["bucket_id"]: entry["weight_set"] for entry in entries}
        assert set(sets) == set(by_id)
        for number, weight_set in sets.items():
            for position, row in enumerate(weight_set):
                for weight, item in zip(row, by_id[number]["items"]):
                    assert item["id"] >= 0 or weight == sum(sets[item["id"]][position])
    names = set(buckets(dump))
    plain = {name for name in names if "~" not in name}
    assert names - plain == {f"{name}~{word}" for name in plain
                             for word in classes or ["hdd", "ssd"]}


def test_new_host() -> None:
    before = crush_cases.dump()
    kept = copy.deepcopy(before)
    after = with_host(before, "new", {30: ("hdd", 4.0), 31: ("ssd", 1.5), 18: ("hdd", 4.0)},
                      under="r2")
    assert before == kept
    check(after)
    assert items(after, "new") == {30: 4.0, 31: 1.5, 18: 4.0}
    assert items(after, "new~ssd") == {31: 1.5} and items(after, "new~hdd") == {30: 4.0, 18: 4.0}
    new, grown = buckets(after)["new"], buckets(after)["r2"]
    assert grown["items"][-1]["id"] == new["id"] == min(buckets(before)[n]["id"]
                                                        for n in buckets(before)) - 1
    assert buckets(after)["default"]["weight"] - buckets(before)["default"]["weight"] == 9.5 * ONE
    assert {name: bucket["id"] for name, bucket in buckets(after).items()
            if name in buckets(before)} == {n: b["id"] for n, b in buckets(before).items()}
    assert {d["id"]: d.get("class") for d in after["devices"]}[31] == "ssd"
    mapper, everybody = Mapper(after), [ONE] * 32
    assert {18, 30, 31} <= {osd for x in range(300) for osd in mapper.map(0, x, 3, everybody)}
    assert 31 in {osd for x in range(300) for osd in mapper.map(4, x, 3, everybody)}


def test_more_osds_on_a_host_and_a_new_class() -> None:
    after = with_host(crush_cases.dump(), "g", {18: ("nvme", 2.0), 19: (None, 1.0)})
    check(after, ["hdd", "ssd", "nvme"])
    assert items(after, "g") == {17: 2.0, 18: 2.0, 19: 1.0}
    assert items(after, "g~nvme") == {18: 2.0} and items(after, "g~hdd") == {17: 2.0}
    assert items(after, "a~nvme") == {}


def test_weight_of_an_osd() -> None:
    after = with_osd_weight(crush_cases.dump(), 13, 0.5)
    check(after)
    assert items(after, "e")[13] == items(after, "e~ssd")[13] == 0.5
    assert with_osd_weight(after, 13, 2.0) == crush_cases.dump()


def test_weight_sets_follow() -> None:
    dump = crush_cases.cases()["positions"][0]
    grown = with_host(dump, "new", {30: ("ssd", 4.0)}, under="r1")
    check(grown)
    check(with_host(dump, "g", {30: ("hdd", 4.0)}))
    lighter = with_osd_weight(dump, 3, 0.25)
    check(lighter)
    entry = {e["bucket_id"]: e for e in lighter["choose_args"]["0"]}[buckets(dump)["b"]["id"]]
    assert [row[0] for row in entry["weight_set"]] == [0.25] * 3 and entry["ids"] == [103, 104]


@pytest.mark.parametrize("change, words", [
    (lambda dump: with_osd_weight(dump, 18, 1.0), "osd.18 is not in"),
    (lambda dump: with_host(dump, "new", {30: ("hdd", 1.0)}), "under None"),
    (lambda dump: with_host(dump, "new", {30: ("hdd", 1.0)}, under="r9"), "under r9"),
    (lambda dump: with_host(dump, "r1", {30: ("hdd", 1.0)}), "r1 is a rack, not a host"),
    (lambda dump: with_host(dump, "a", {17: ("hdd", 1.0)}), "osd.17 is in the CRUSH map already"),
])
def test_invalid_changes(change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        change(crush_cases.dump())
