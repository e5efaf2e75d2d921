"""Plans in the key-value store: small values, whole or not at all, nothing left lying about."""
from __future__ import annotations

import random
from typing import Dict, List

import pytest
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.plan.model import BadPlan, Plan
from equilibrium_mgr.plan.store import PlanStore, valid_plan_name
from equilibrium_mgr.planner.planner import make_plan

LIMIT = 60000


def big_plan(changes: int = 4000, seed: int = 1) -> Plan:
    """Random OSD numbers hardly compress."""
    rng = random.Random(seed)
    return plan_of([change_of(f"1.{ps:x}", rng.sample(range(5000), 6), rng.sample(range(5000), 6),
                              shard_bytes=rng.randrange(1 << 40)) for ps in range(changes)])


BIG = big_plan()


def keys_of(kv: KeyValueStore, name: str) -> List[str]:
    return sorted(key for key in kv.values if f"/{name}/" in key)


def test_small_plan_comes_back() -> None:
    kv = KeyValueStore()
    plan = make_plan(random_cluster(1).snapshot())
    PlanStore(kv).put("p", plan, 5.0)
    assert PlanStore(kv).get("p") == plan
    head = PlanStore(kv).heads()["p"]
    assert (head.name, head.created_at, head.moves, head.bytes) == (
        "p", 5.0, len(plan.moves), plan.bytes)
    assert head.osdmap_epoch == plan.epoch and head.kind == plan.kind


def test_big_plan_is_split_below_the_monitor_s_limit() -> None:
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    plan_store.put("big", BIG, 5.0)
    sizes = [len(value.encode()) for _, value in kv.writes if value is not None]
    assert sum(sizes) > 2 * 65536 and max(sizes) <= LIMIT
    assert plan_store.get("big") == BIG
    assert PlanStore(kv).get("big") == BIG


def test_replacement_is_whole_at_every_moment() -> None:
    """A mgr that dies between any two writes leaves the old plan or the new one."""
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    old, new = big_plan(1500, seed=2), big_plan(2500, seed=3)
    plan_store.put("p", old, 1.0)
    seen = []

    def look(_key: str) -> None:
        seen.append(PlanStore(KeyValueStore(kv.values)).get("p") == old)
    kv.before_write = look
    plan_store.put("p", new, 2.0)
    assert len(seen) > 2 and all(seen)
    assert PlanStore(kv).get("p") == new


def test_replacement_removes_stale_parts() -> None:
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    plan_store.put("p", BIG, 1.0)
    before = set(keys_of(kv, "p"))
    plan_store.put("p", plan_of([change_of("1.0", [0], [1])]), 2.0)
    plan_store.tidy()
    assert len(keys_of(kv, "p")) == 2
    assert len(set(keys_of(kv, "p")) & before) == 1      # only the head has the same key
    assert PlanStore(kv).get("p").changes == (change_of("1.0", [0], [1]),)


def interrupted(kv: KeyValueStore, name: str, plan: Plan, writes: int) -> None:
    """The mgr dies before write number `writes`."""
    def die(_key: str) -> None:
        nonlocal writes
        writes -= 1
        if writes < 0:
            raise KeyboardInterrupt
    kv.before_write = die
    with pytest.raises(KeyboardInterrupt):
        PlanStore(kv).put(name, plan, 1.0)
    kv.before_write = lambda key: None


@pytest.mark.parametrize("writes", [1, 3])
def test_parts_of_an_interrupted_write_are_removed(writes: int) -> None:
    kv = KeyValueStore({"other": "x"})
    interrupted(kv, "p", BIG, writes)
    assert len(keys_of(kv, "p")) == writes
    plan_store = PlanStore(kv)
    assert plan_store.heads() == {}
    with pytest.raises(KeyError):
        plan_store.get("p")
    plan_store.tidy()
    assert kv.values == {"other": "x"}


def shelf_with(kv: KeyValueStore, *names: str) -> Dict[str, str]:
    """Puts plans and returns the key of each one's head."""
    plan_store = PlanStore(kv)
    for name in names:
        plan_store.put(name, plan_of([change_of("1.0", [0], [1])]), 1.0)
    return {name: next(k for k in keys_of(kv, name) if k.endswith("/head")) for name in names}


@pytest.mark.parametrize("head", [
    '{"version": 99, "name": "odd"}', '{"version": 1', "", "[]", "7", "null",
    '{"version": 1, "name": "odd"}', '"text"'])
def test_unreadable_head_is_left_alone_and_stops_nobody(head: str) -> None:
    kv = KeyValueStore()
    kv.values[shelf_with(kv, "good", "odd")["odd"]] = head
    before = {key: kv.values[key] for key in keys_of(kv, "odd")}
    plan_store = PlanStore(kv)
    assert set(plan_store.heads()) == {"good"} and plan_store.get("good").changes
    plan_store.tidy()
    assert {key: kv.values[key] for key in keys_of(kv, "odd")} == before


@pytest.mark.parametrize("damage", ["lost", "cut", "no base64", "other text"])
def test_damaged_part_is_a_bad_plan(damage: str) -> None:
    kv = KeyValueStore()
    PlanStore(kv).put("p", BIG, 1.0)
    part = next(key for key in keys_of(kv, "p") if "/part/" in key)
    text = kv.values.pop(part)
    changed = {"cut": text[:50], "no base64": "é" + text[1:], "other text": "QUJD" * 9}
    if damage in changed:
        kv.values[part] = changed[damage]
    with pytest.raises(BadPlan) as bad:
        PlanStore(kv).get("p")
    assert "\n" not in str(bad.value) and "'p'" in str(bad.value)
    assert set(PlanStore(kv).heads()) == {"p"}


def test_remove_forgets_at_once_and_tidy_cleans() -> None:
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    plan_store.put("p", BIG, 1.0)
    plan_store.put("q", plan_of(), 1.0)
    writes = len(kv.writes)
    plan_store.remove("p")
    assert set(plan_store.heads()) == {"q"} and len(kv.writes) == writes   # no command waits
    with pytest.raises(KeyError):
        plan_store.get("p")
    with pytest.raises(KeyError):
        plan_store.remove("p")
    plan_store.tidy()
    assert keys_of(kv, "p") == [] and set(PlanStore(kv).heads()) == {"q"}


def test_removal_of_an_interrupted_tidy_is_done_later() -> None:
    """The mgr dies while it takes a removed plan out: what is left is no plan with lost parts."""
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    plan_store.put("p", BIG, 1.0)
    plan_store.remove("p")
    left = 1

    def die(_key: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
    kv.before_write = die
    with pytest.raises(KeyboardInterrupt):
        plan_store.tidy()
    kv.before_write = lambda key: None
    second = PlanStore(kv)
    assert second.heads() == {}
    second.tidy()
    assert kv.values == {}


def test_tidy_leaves_the_parts_of_a_plan_that_is_being_written() -> None:
    """The job thread writes; the serve loop tidies between its writes."""
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    calls = []

    def tidy_between(key: str) -> None:
        kv.before_write = lambda _key: None
        plan_store.tidy()
        calls.append(key)
        kv.before_write = tidy_between
    kv.before_write = tidy_between
    plan_store.put("p", BIG, 1.0)
    kv.before_write = lambda key: None
    assert len(calls) > 3
    plan_store.tidy()
    assert PlanStore(kv).get("p") == BIG


def test_tidy_leaves_a_plan_that_is_put_again_while_it_deletes() -> None:
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    for name in ("a", "p"):
        plan_store.put(name, BIG, 1.0)
        plan_store.remove(name)

    def put_again(_key: str) -> None:
        kv.before_write = lambda _key: None
        plan_store.put("p", BIG, 2.0)
    kv.before_write = put_again
    plan_store.tidy()
    assert PlanStore(kv).get("p") == BIG


def test_tidy_is_idle_when_nothing_has_changed() -> None:
    kv = KeyValueStore()
    plan_store = PlanStore(kv)
    plan_store.put("p", BIG, 1.0)
    plan_store.tidy()
    writes, kv.values["plan/stray/part/1/0"] = len(kv.writes), "x"
    plan_store.tidy()
    assert len(kv.writes) == writes


def test_odd_keys_of_others_do_no_harm() -> None:
    kv = KeyValueStore({"plan/p/part/x/y": "1", "plan/": "2", "plan/p": "3"})
    plan_store = PlanStore(kv)
    plan_store.put("p", plan_of([change_of("1.0", [0], [1])]), 1.0)
    plan_store.tidy()
    assert PlanStore(kv).get("p").changes


@pytest.mark.parametrize("name, valid", [
    ("p", True), ("a.b_c-1", True), ("x" * 64, True), ("x" * 65, False), ("", False),
    ("a/b", False), ("a b", False), ("p\n", False), ("é", False), ("..", True)])
def test_plan_names(name: str, valid: bool) -> None:
    assert valid_plan_name(name) == valid
