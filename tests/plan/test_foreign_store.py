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

PLAN = plan_of([change_of("1.0", [0], [1])])
HEAD = "plan/p/head"
HUGE = 10**400


def stored() -> Dict[str, str]:
    kv = KeyValueStore()
    PlanStore(kv).put("p", PLAN, 1000.0)
    return kv.values


def assert_no_plan(head: str) -> None:
    values = stored()
    values[HEAD] = head
    assert PlanStore(KeyValueStore(values)).heads() == {}


@pytest.mark.parametrize("damage", [
    '{"parts": 1000000000000}', '{"parts": -1}', '{"parts": "1"}', '{"name": "q"}', '{"name": 5}',
    '{"name": "a/b"}', '{"created_at": "x"}', '{"created_at": NaN}', '{"created_at": 1e300}',
    '{"moves": null}', '{"bytes": "x"}', '{"generation": true}', '{"aim": []}',
    '{"moves": 1000000000000000000000000000000}'])
def test_a_head_that_cannot_be_is_no_plan(damage: str) -> None:
    head = json.loads(stored()[HEAD])
    head.update(json.loads(damage))
    assert_no_plan(json.dumps(head))


@pytest.mark.parametrize("key", ["version", "aim", "topology", "pool_pgs", "kind"])
def test_a_head_that_lacks_something_is_no_plan(key: str) -> None:
    head = json.loads(stored()[HEAD])
    del head[key]
    assert_no_plan(json.dumps(head))


@pytest.mark.parametrize("text", ["[" * 100000, '{"a":' * 50000])
def test_a_deep_head_is_no_plan(text: str) -> None:
    assert_no_plan(text)


def _with_plan(text: bytes) -> PlanStore:
    values = stored()
    (key,) = [key for key in values if "/part/" in key]
    values[key] = base64.b64encode(zlib.compress(text)).decode()
    return PlanStore(KeyValueStore(values))


def assert_refused(dump: Any) -> None:
    with pytest.raises(BadPlan) as bad:
        _with_plan(json.dumps(dump).encode()).get("p")
    assert "\n" not in str(bad.value) and str(bad.value)


@pytest.mark.parametrize("key", [
    "moves", "version", "before", "changes", "osdmap_epoch", "aim", "bounds", "kind", "topology"])
def test_a_plan_that_lacks_something_is_refused(key: str) -> None:
    dump = PLAN.to_dict()
    del dump[key]
    assert_refused(dump)


@pytest.mark.parametrize("damage", [
    '{"version": 99}', '{"version": 1}', '{"moves": [[1, 2]]}', '{"moves": null}',
    '{"changes": [["1.0", [0]]]}', '{"changes": 7}', '{"before": {"classes": {}}}',
    '{"before": {"classes": {"hdd": {}}, "pools": {}}}', '{"after": []}', '{"skipped": 5}'])
def test_a_damaged_plan_is_refused(damage: str) -> None:
    assert_refused({**PLAN.to_dict(), **json.loads(damage)})


@pytest.mark.parametrize("text", ["[]", "null", '"plan"', "7"])
def test_what_is_no_plan_at_all_is_refused(text: str) -> None:
    assert_refused(json.loads(text))


@pytest.mark.parametrize("row", [
    '[5]', '["1.0", 0, 0, 1, 2, 3, 4, 5]', '["1.0", [0], [0], [1], [[0]], 1, 1, 1]',
    '["1.0", [0], [0], [1], [[0, 1]], "1", 1, 1]', '["1.0", ["0"], [0], [1], [[0, 1]], 1, 1, 1]',
    '["1.0", [0], [0], [1], [["a", "b"]], 1, 1, 1]', '[7, [0], [0], [1], [[0, 1]], 1, 1, 1]',
    '["no PG", [0], [0], [1], [[0, 1]], 1, 1, 1]', '["1.0; rm", [0], [0], [1], [[0, 1]], 1, 1, 1]',
    '["1.0", [0], [0], [1], [[0, 1]], 1, Infinity, 1]',
    f'["1.0", [0], [0], [1], [[0, 1]], 1, {HUGE}, 1]'])
def test_a_change_of_wrong_types_is_refused(row: str) -> None:
    dump = PLAN.to_dict()
    dump["changes"] = [json.loads(row)]
    assert_refused(dump)


def test_deep_json_and_what_unpacks_to_gigabytes_are_refused(mocker: Any) -> None:
    with pytest.raises(BadPlan):
        _with_plan(b"[" * 200000).get("p")
    mocker.patch("equilibrium_mgr.plan.store._MOST_UNPACKED_BYTES", 1000)
    with pytest.raises(BadPlan):
        _with_plan(b" " * 100000 + b"{}").get("p")


def test_a_good_one_is_read() -> None:
    assert PlanStore(KeyValueStore(stored())).get("p") == PLAN
