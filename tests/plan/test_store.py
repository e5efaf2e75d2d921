"""Plans in the key-value store: small values, whole or not at all, nothing left lying about."""
from __future__ import annotations

import random
from typing import Dict, List, Optional

import pytest
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.unit_cluster import change_of, plan_of
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.store import PlanStore, valid_plan_name
from equilibrium_mgr.planner.planner import make_plan

LIMIT = 60000


def big_plan(changes: int = 4000, seed: int = 1) -> Plan:
    """Random OSD numbers hardly compress."""
    rng, osds = random.Random(seed), range(5000)
    return plan_of([change_of(f"1.{ps:x}", rng.sample(osds, 6), rng.sample(osds, 6))
                    for ps in range(changes)])


BIG = big_plan()
SMALL = plan_of([change_of("1.0", [0], [1])])


class Killed(KeyValueStore):
    """The mgr dies before the write after so many."""

    def __init__(self, values: Optional[Dict[str, str]] = None) -> None:
        super().__init__(values)
        self.left = 0
        self.before_write = self._count

    def _count(self, _key: str) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1


@pytest.fixture
def kv() -> KeyValueStore:
    return KeyValueStore()


@pytest.fixture
def plan_store(kv: KeyValueStore) -> PlanStore:
    return PlanStore(kv)


def keys_of(kv: KeyValueStore, name: str) -> List[str]:
    return sorted(key for key in kv.values if f"/{name}/" in key)


def test_small_plan_comes_back(kv: KeyValueStore) -> None:
    plan = make_plan(random_cluster(1).snapshot())
    assert plan.changes and plan.skipped is not None
    PlanStore(kv).put("p", plan, 5.0)
    assert PlanStore(kv).get("p") == plan
    head = PlanStore(kv).heads()["p"]
    assert (head.name, head.created_at, head.moves, head.bytes, head.osdmap_epoch, head.kind) == (
        "p", 5.0, len(plan.moves), plan.bytes, plan.epoch, plan.kind)


def test_big_plan_is_split_below_the_monitor_s_limit(kv: KeyValueStore,
                                                     plan_store: PlanStore) -> None:
    plan_store.put("big", BIG, 5.0)
    sizes = [len(value.encode()) for _, value in kv.writes if value is not None]
    assert sum(sizes) > 2 * 65536 and max(sizes) <= LIMIT
    assert plan_store.get("big") == PlanStore(kv).get("big") == BIG


def test_replacement_is_whole_at_every_moment(kv: KeyValueStore, plan_store: PlanStore) -> None:
    """A mgr that dies between any two writes leaves the old plan or the new one."""
    old, new = big_plan(1500, seed=2), big_plan(2500, seed=3)
    plan_store.put("p", old, 1.0)
    seen = []

    def look(_key: str) -> None:
        seen.append(PlanStore(KeyValueStore(kv.values)).get("p") == old)
    kv.before_write = look
    plan_store.put("p", new, 2.0)
    assert len(seen) > 2 and all(seen)
    assert PlanStore(kv).get("p") == new


def test_replacement_removes_stale_parts(kv: KeyValueStore, plan_store: PlanStore) -> None:
    plan_store.put("p", BIG, 1.0)
    before = keys_of(kv, "p")
    plan_store.put("p", SMALL, 2.0)
    plan_store.tidy()
    (head, part) = keys_of(kv, "p")
    assert head in before and part not in before
    assert PlanStore(kv).get("p") == SMALL


@pytest.mark.parametrize("writes", [1, 3])
def test_parts_of_an_interrupted_write_are_removed(writes: int) -> None:
    kv = Killed({"other": "x"})
    kv.left = writes
    with pytest.raises(KeyboardInterrupt):
        PlanStore(kv).put("p", BIG, 1.0)
    assert len(keys_of(kv, "p")) == writes
    assert_gone(kv, {"other": "x"})


def assert_gone(kv: Killed, values: Dict[str, str]) -> None:
    """The next mgr finds no plan p, and leaves these values."""
    plan_store = PlanStore(kv)
    assert plan_store.heads() == {}
    with pytest.raises(KeyError):
        plan_store.get("p")
    kv.left = 100
    plan_store.tidy()
    assert kv.values == values


@pytest.mark.parametrize("head", [
    '{"version": 99, "name": "odd"}', '{"version": 1', "", "[]", "7", "null",
    '{"version": 1, "name": "odd"}', '"text"'])
def test_unreadable_head_is_left_alone_and_stops_nobody(head: str, kv: KeyValueStore) -> None:
    for name in ("good", "odd"):
        PlanStore(kv).put(name, SMALL, 1.0)
    kv.values["plan/odd/head"] = head
    before, plan_store = dict(kv.values), PlanStore(kv)
    assert set(plan_store.heads()) == {"good"} and plan_store.get("good") == SMALL
    plan_store.tidy()
    assert kv.values == before


def test_remove_forgets_at_once_and_tidy_cleans(kv: KeyValueStore, plan_store: PlanStore) -> None:
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
    kv = Killed()
    kv.left, plan_store = 100, PlanStore(kv)
    plan_store.put("p", BIG, 1.0)
    plan_store.remove("p")
    kv.left = 1
    with pytest.raises(KeyboardInterrupt):
        plan_store.tidy()
    assert_gone(kv, {})


def test_tidy_leaves_the_parts_of_a_plan_that_is_being_written(kv: KeyValueStore,
                                                               plan_store: PlanStore) -> None:
    """The job thread writes; the serve loop tidies between its writes."""
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


def test_tidy_leaves_a_plan_that_is_put_again_while_it_deletes(kv: KeyValueStore,
                                                               plan_store: PlanStore) -> None:
    for name in ("a", "p"):
        plan_store.put(name, BIG, 1.0)
        plan_store.remove(name)

    def put_again(_key: str) -> None:
        kv.before_write = lambda _key: None
        plan_store.put("p", BIG, 2.0)
    kv.before_write = put_again
    plan_store.tidy()
    assert PlanStore(kv).get("p") == BIG


def test_tidy_is_idle_when_nothing_has_changed(kv: KeyValueStore, plan_store: PlanStore) -> None:
    plan_store.put("p", BIG, 1.0)
    plan_store.tidy()
    writes, kv.values["plan/stray/part/1/0"] = len(kv.writes), "x"
    plan_store.tidy()
    assert len(kv.writes) == writes


def test_odd_keys_of_others_do_no_harm() -> None:
    kv = KeyValueStore({"plan/p/part/x/y": "1", "plan/": "2", "plan/p": "3"})
    plan_store = PlanStore(kv)
    plan_store.put("p", SMALL, 1.0)
    plan_store.tidy()
    assert PlanStore(kv).get("p") == SMALL


@pytest.mark.parametrize("name", ["p", "a.b_c-1", "x" * 64, ".."])
def test_plan_names(name: str) -> None:
    assert valid_plan_name(name)


@pytest.mark.parametrize("name", ["x" * 65, "", "a/b", "a b", "p\n", "é"])
def test_what_is_no_plan_name(name: str) -> None:
    assert not valid_plan_name(name)
