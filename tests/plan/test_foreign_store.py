"""Kept plans that somebody else has written, or that were damaged: left out or refused."""
from __future__ import annotations

import base64
import json
import zlib
from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.plan.model import BadPlan
from equilibrium_mgr.plan.store import PlanStore


def stored() -> Dict[str, str]:
    kv = KeyValueStore()
    PlanStore(kv).put("p", plan_of([change_of("1.0", [0], [1])]), 1000.0)
    return kv.values


@pytest.mark.parametrize("change", [
    {"parts": 10**12}, {"parts": -1}, {"parts": "1"}, {"name": "q"}, {"name": 5}, {"name": "a/b"},
    {"created_at": "x"}, {"created_at": float("nan")}, {"created_at": 1e300}, {"moves": None},
    {"bytes": "x"}, {"generation": True}, {"aim": []}, {"moves": 10**30}])
def test_a_head_that_cannot_be_is_no_plan(change: Dict[str, Any]) -> None:
    values = stored()
    values["plan/p/head"] = json.dumps({**json.loads(values["plan/p/head"]), **change})
    assert PlanStore(KeyValueStore(values)).heads() == {}


@pytest.mark.parametrize("key", ["version", "aim", "topology", "pool_pgs", "kind"])
def test_a_head_that_lacks_something_is_no_plan(key: str) -> None:
    values = stored()
    head = json.loads(values["plan/p/head"])
    del head[key]
    values["plan/p/head"] = json.dumps(head)
    assert PlanStore(KeyValueStore(values)).heads() == {}


@pytest.mark.parametrize("text", ["[" * 100000, '{"a":' * 50000, "null", "[]", "5"])
def test_a_head_of_another_kind_is_no_plan(text: str) -> None:
    values = dict(stored(), **{"plan/p/head": text})
    assert PlanStore(KeyValueStore(values)).heads() == {}


def _with_plan(text: bytes) -> PlanStore:
    values = stored()
    (key,) = [key for key in values if "/part/" in key]
    values[key] = base64.b64encode(zlib.compress(text)).decode()
    return PlanStore(KeyValueStore(values))


@pytest.mark.parametrize("row", [
    [5], ["1.0", [0], [0], [1], [[0, 1]], "1", 1, 1], ["1.0", ["0"], [0], [1], [[0, 1]], 1, 1, 1],
    ["1.0", [0], [0], [1], [["a", "b"]], 1, 1, 1], [7, [0], [0], [1], [[0, 1]], 1, 1, 1],
    ["no PG", [0], [0], [1], [[0, 1]], 1, 1, 1], ["1.0; rm", [0], [0], [1], [[0, 1]], 1, 1, 1],
    ["1.0", [0], [0], [1], [[0, 1]], 1, float("inf"), 1], ["1.0", 0, 0, 1, 2, 3, 4, 5],
    ["1.0", [0], [0], [1], [[0, 1]], 1, 10**400, 1]])
def test_a_change_of_wrong_types_is_refused(row: Any) -> None:
    dump = plan_of([change_of("1.0", [0], [1])]).to_dict()
    dump["changes"] = [row]
    with pytest.raises(BadPlan):
        _with_plan(json.dumps(dump).encode()).get("p")


def test_deep_json_and_what_unpacks_to_gigabytes_are_refused(mocker: Any) -> None:
    with pytest.raises(BadPlan):
        _with_plan(b"[" * 200000).get("p")
    mocker.patch("equilibrium_mgr.plan.store._MOST_UNPACKED_BYTES", 1000)
    with pytest.raises(BadPlan):
        _with_plan(b" " * 100000 + b"{}").get("p")


def test_a_good_one_is_read() -> None:
    plan_store = PlanStore(KeyValueStore(stored()))
    assert plan_store.get("p") == plan_of([change_of("1.0", [0], [1])])
