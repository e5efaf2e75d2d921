"""The lowest possible highest utilization: closed forms, hand-made cases, certificates."""
from __future__ import annotations

import random
from typing import Dict, FrozenSet, List, Sequence, Tuple

import pytest
from tests.support.random_clusters import random_cluster, shuffled
from tests.support.unit_cluster import GIB, HOST_RULE, OSD_RULE, Cluster, hosts

from equilibrium_mgr.crush.placement import PlacementBlock, PlacementRule
from equilibrium_mgr.planner.bound.lower_bound import OsdSet, UtilizationBounds, describe, utilization_bounds
from equilibrium_mgr.snapshot.model import Snapshot

SKEWED_RULES = {
    0: HOST_RULE,
    1: "take default; chooseleaf indep 0 host; emit",
    2: OSD_RULE,
    3: "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit",
    4: "take default; choose indep 3 rack; choose indep 2 osd; emit",
    5: "take default~ssd; chooseleaf firstn 1 host; emit;"
       "take default~hdd; chooseleaf firstn -1 host; emit",
    6: "take r0; chooseleaf firstn 0 host; emit",
    7: "take default~hdd; choose firstn 0 osd; emit"}
SKEWED_SIZES = {0: 3, 1: 5, 2: 2, 3: 4, 4: 6, 5: 3, 6: 2, 7: 2}


def fill(cluster: Cluster, pool: int, ups: Sequence[Sequence[int]], gib: int = 1) -> Cluster:
    """PGs of a pool, one per up set, with shards of as many GiB."""
    for ps, up in enumerate(ups):
        k = cluster.profiles.get(f"profile{pool}", {}).get("k", "1")
        cluster.pg(f"{pool}.{ps:x}", up, num_bytes=gib * GIB * int(k))
    return cluster


def only_set(cluster: Cluster) -> OsdSet:
    sets = utilization_bounds(cluster.snapshot()).sets
    assert len(sets) == 1
    return sets[0]


def skewed_cluster(seed: int) -> Cluster:
    """Three or four racks, unequal hosts and OSDs, two device classes, one to four pools."""
    rng = random.Random(seed)
    racks: Dict[str, Dict[str, List[int]]] = {}
    osds = 0
    for rack in range(rng.choice((3, 4))):
        for host in range(rng.randint(2, 4)):
            count = rng.randint(2, 5)
            racks.setdefault(f"rack r{rack}", {})[f"host h{rack}-{host}"] = list(
                range(osds, osds + count))
            osds += count
    classes = {osd: "ssd" for osd in range(osds) if rng.random() < 0.3}
    cluster = Cluster({"root default": racks}, SKEWED_RULES, classes)
    largest = rng.choice((2, 8, 20))
    for osd in range(osds):
        cluster.osd(osd, size=100 * GIB * rng.choice((1, 1, 2, largest)))
    for number, rule in enumerate(rng.sample(sorted(SKEWED_RULES), rng.randint(1, 4)), start=1):
        cluster.pool(number, SKEWED_SIZES[rule], rule, k=2 if rule in (1, 4) else 0)
    rules = {pool.id: pool.rule for pool in cluster.snapshot().pools.values()}
    for number, rule in sorted(rules.items()):
        assert rule is not None
        for ps in range(rng.choice((3, 12))):
            up = random_up(rng, rule)
            if up:
                cluster.pg(f"{number}.{ps:x}", up, num_bytes=rng.randrange(1, 30 * GIB))
    for osd in range(osds):
        if rng.random() < 0.2:   # something that is of no pool
            cluster.osd(osd, used=cluster.used_bytes(osd) + rng.randrange(GIB))
    return cluster


def random_up(rng: random.Random, rule: PlacementRule) -> List[int]:
    """Some up set that keeps the rule; nothing where chance finds none."""
    for _ in range(200):
        up: List[int] = []
        for block in rule.blocks:
            up += _members(rng, block, sorted(block.weights), 0, block.positions)
        if rule.violation(up) is None:
            return up
    return []


def _members(rng: random.Random, block: PlacementBlock, osds: List[int], level: int,
             count: int) -> List[int]:
    if level == len(block.domains):
        return rng.sample(osds, min(count, len(osds)))
    domain = block.domains[level]
    buckets = sorted({domain.bucket_of[osd] for osd in osds})
    up: List[int] = []
    for bucket in rng.sample(buckets, len(buckets)):
        inside = [osd for osd in osds if domain.bucket_of[osd] == bucket]
        up += _members(rng, block, inside, level + 1,
                       min(count - len(up), domain.shards_per_bucket))
    return up


class Rows:
    """The linear program's rows for every pool and take by themselves: nothing merged."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.size = {o.id: o.size_bytes for o in snapshot.osds.values() if not o.cannot_take()}
        self.fixed = {osd: snapshot.osds[osd].target_bytes for osd in self.size}
        self.edges: List[Tuple[object, object, int]] = []
        self.demand: Dict[object, int] = {}
        for pool in snapshot.pools.values():
            assert pool.rule is not None
            pgs = [pg for pg in snapshot.pgs.values() if pg.pool == pool.id]
            single = sum(pg.shard_bytes for pg in pgs)
            for number, block in enumerate(pool.rule.blocks):
                root = (pool.id, number)
                osds = [osd for osd in block.weights if osd in self.size]
                self.demand[root] = 0
                for pg in pgs:
                    for osd in block.members(pg.up):
                        if osd in osds:
                            self.demand[root] += pg.shard_bytes
                            self.fixed[osd] -= pg.shard_bytes
                for osd in osds:
                    above: object = root
                    for domain in block.domains:
                        inside = (root, domain.bucket_of[osd])
                        edge = (above, inside, domain.shards_per_bucket * single)
                        if edge not in self.edges:
                            self.edges.append(edge)
                        above = inside
                    self.edges.append((above, osd, single))

    def flow(self, rooms: Dict[int, int]) -> int:
        """How many bytes find a place if OSDs take so much (Edmonds and Karp)."""
        room: Dict[object, Dict[object, int]] = {"source": {}, "sink": {}}
        for tail, head, capacity in (
                [("source", root, demand) for root, demand in self.demand.items()] + self.edges
                + [(osd, "sink", capacity) for osd, capacity in rooms.items()]):
            room.setdefault(tail, {})[head] = capacity
            room.setdefault(head, {}).setdefault(tail, 0)
        flow = 0
        while True:
            came_from: Dict[object, object] = {"source": None}
            queue: List[object] = ["source"]
            node: object
            for node in queue:
                for head, left in room[node].items():
                    if left > 0 and head not in came_from:
                        came_from[head] = node
                        queue.append(head)
            if "sink" not in came_from:
                return flow
            path: List[Tuple[object, object]] = []
            node = "sink"
            while node != "source":
                path.append((came_from[node], node))
                node = came_from[node]
            amount = min(room[tail][head] for tail, head in path)
            for tail, head in path:
                room[tail][head] -= amount
                room[head][tail] += amount
            flow += amount

    def rooms(self, equal_utilization: Dict[int, float]) -> Dict[int, int]:
        return {osd: max(0, round(level * self.size[osd]) - self.fixed[osd])
                for osd, level in equal_utilization.items() if osd in self.size}


def assert_certified(snapshot: Snapshot, result: UtilizationBounds) -> None:
    """The levels can be reached, and no group of the fullest OSDs could hold less together.

    Together this makes them the lexicographically fairest (Fujishige 1980).
    """
    rows = Rows(snapshot)
    needed = sum(rows.demand.values())
    slack = max(100, needed // 10 ** 9)
    rooms = rows.rooms(result.utilizations)
    assert sum(rooms.values()) == pytest.approx(needed, rel=1e-9, abs=100)
    assert rows.flow(rooms) >= needed - slack
    for level in sorted(set(result.utilizations.values())):
        below = {osd for osd in rooms if result.utilizations[osd] < level * (1 - 1e-9)}
        most = rows.flow({osd: needed if osd in below else 0 for osd in rooms})
        assert sum(rooms[osd] for osd in below) == pytest.approx(most, abs=slack)


@pytest.mark.parametrize("seed", range(40))
def test_levels_are_the_fairest_possible(seed: int) -> None:
    snapshot = skewed_cluster(seed).snapshot()
    assert_certified(snapshot, utilization_bounds(snapshot))


@pytest.mark.parametrize("seed", range(5))
def test_levels_are_the_fairest_possible_with_hybrid_rules(seed: int) -> None:
    snapshot = random_cluster(seed, hybrid=True).snapshot()
    assert_certified(snapshot, utilization_bounds(snapshot))


@pytest.mark.parametrize("seed", range(20))
def test_bound_is_the_lowest_level_that_carries_all(seed: int) -> None:
    snapshot = skewed_cluster(seed).snapshot()
    rows = Rows(snapshot)
    for osd_set in utilization_bounds(snapshot).sets:
        members = set(osd_set.osds)
        needed = sum(demand for root, demand in rows.demand.items()
                     if any(reached in members for reached in _osds_below(rows, root)))

        def carried(level: float, members: FrozenSet[int] = frozenset(members)) -> int:
            return rows.flow(rows.rooms({osd: level for osd in members}))
        assert carried(osd_set.bound * (1 + 1e-6)) == needed
        if osd_set.binding.kind != "fixed bytes":
            assert carried(osd_set.bound * (1 - 1e-4)) < needed


def _osds_below(rows: Rows, root: object) -> List[object]:
    reached = [root]
    for node in reached:
        reached += [head for tail, head, _ in rows.edges if tail == node]
    return reached


@pytest.mark.parametrize("seed", range(20))
def test_no_legal_placement_is_below_the_bound(seed: int) -> None:
    cluster = random_cluster(seed, hybrid=seed % 2 == 0)
    snapshot = cluster.snapshot()
    for osd_set in utilization_bounds(snapshot).sets:
        fullest = max(snapshot.osds[osd].target_bytes / snapshot.osds[osd].size_bytes
                      for osd in osd_set.osds)
        assert osd_set.bound <= fullest * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_levels_add_up_to_what_is_used(seed: int) -> None:
    snapshot = skewed_cluster(seed).snapshot()
    levels = utilization_bounds(snapshot).utilizations
    assert sum(level * snapshot.osds[osd].size_bytes for osd, level in levels.items()) == (
        pytest.approx(sum(osd.target_bytes for osd in snapshot.osds.values()), rel=1e-9))


@pytest.mark.parametrize("seed", range(10))
def test_same_answer_whatever_the_order_of_the_snapshot(seed: int) -> None:
    expected = utilization_bounds(random_cluster(seed, hybrid=True).snapshot())
    mixed = utilization_bounds(shuffled(random_cluster(seed, hybrid=True), seed).snapshot())
    assert mixed == expected
    assert list(mixed.classes) == list(expected.classes)
    assert list(mixed.utilizations) == list(expected.utilizations)


@pytest.mark.parametrize("seed", range(10))
def test_one_replicated_pool_fills_hosts_like_water(seed: int) -> None:
    """Σ over hosts of min(T, t · capacity) = copies · T."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(6, 2)).pool(1, size=3)
    for osd in range(12):
        cluster.osd(osd, size=GIB * rng.choice((100, 200, 1000)))
    fill(cluster, 1, [[2 * host for host in rng.sample(range(6), 3)] for _ in range(40)])
    capacity = [sum(cluster.sizes[o] for o in (2 * h, 2 * h + 1)) for h in range(6)]
    low, high = 0.0, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        placed = sum(min(40 * GIB, middle * c) for c in capacity)
        low, high = (middle, high) if placed < 120 * GIB else (low, middle)
    assert only_set(cluster).bound == pytest.approx(high, rel=1e-12)


def giant() -> Cluster:
    """Three hosts of 100 GiB and one of 900; two copies of 60 GiB."""
    cluster = Cluster(hosts(4)).osd(3, size=900 * GIB).pool(1, size=2, name="rbd")
    return fill(cluster, 1, [[ps % 3, 3] for ps in range(30)] + [[0, 1]] * 30)


def test_a_giant_host_takes_one_copy_of_everything_and_no_more() -> None:
    result = utilization_bounds(giant().snapshot())
    assert [result.utilizations[osd] for osd in range(4)] == pytest.approx([0.2, 0.2, 0.2, 60 / 900])
    assert result.classes == {"hdd": pytest.approx(0.2)}
    binding = result.sets[0].binding
    assert binding == ("failure domain", (0, 1, 2), ("h3",), (1,))


def test_shadow_buckets_are_named_without_their_class() -> None:
    cluster = giant()
    cluster.crush["rules"] = Cluster(
        hosts(4), {0: "take default~hdd; chooseleaf firstn 0 host; emit"}).crush["rules"]
    osd_set = only_set(cluster)
    assert osd_set.takes == ("default~hdd",)
    assert osd_set.binding.buckets == ("h3",)


def test_erasure_code_as_wide_as_the_hosts_fixes_every_host() -> None:
    """A hand-made lexicographic case: each host gets T, so each has a level of its own."""
    cluster = Cluster(hosts(4), {0: "take default; chooseleaf indep 0 host; emit"})
    cluster.pool(1, size=4, k=2)
    for osd, size in enumerate((100, 200, 400, 800)):
        cluster.osd(osd, size=size * GIB)
    fill(cluster, 1, [[0, 1, 2, 3]] * 40)
    result = utilization_bounds(cluster.snapshot())
    assert [result.utilizations[osd] for osd in range(4)] == pytest.approx([0.4, 0.2, 0.1, 0.05])
    assert result.sets[0].binding == ("failure domain", (0,), ("h1", "h2", "h3"), (1,))


def test_two_hosts_in_each_of_two_racks() -> None:
    """Racks may have two shards of four, hosts one: rack a's giant host takes T, the other T."""
    tree = {"root default": {"rack a": {"host a0": [0], "host a1": [1]},
                             "rack b": {"host b0": [2], "host b1": [3], "host b2": [4]}}}
    cluster = Cluster(tree, {0: "take default; choose firstn 2 rack;"
                                "chooseleaf firstn 2 host; emit"})
    cluster.osd(0, size=1000 * GIB).pool(1, size=4)
    fill(cluster, 1, [[0, 1, 2, 3]] * 30)
    result = utilization_bounds(cluster.snapshot())
    assert [result.utilizations[osd] for osd in range(5)] == pytest.approx(
        [0.03, 0.3, 0.2, 0.2, 0.2])


def test_rack_limit_binds_where_the_host_limit_does_not() -> None:
    tree = {"root default": {"rack a": {"host a0": [0], "host a1": [1], "host a2": [2]},
                             "rack b": {"host b0": [3], "host b1": [4]}}}
    cluster = Cluster(tree, {0: "take default; choose firstn 2 rack;"
                                "chooseleaf firstn 2 host; emit"})
    for osd in (0, 1, 2):
        cluster.osd(osd, size=1000 * GIB)
    fill(cluster.pool(1, size=4), 1, [[0, 1, 3, 4]] * 30)
    osd_set = only_set(cluster)
    assert osd_set.bound == pytest.approx(0.3)
    assert osd_set.binding.osds == (3, 4)
    assert "a" in osd_set.binding.buckets


def test_one_osd_may_not_hold_two_shards_of_a_pg() -> None:
    """Without buckets to keep apart the limit is per OSD."""
    cluster = Cluster(hosts(1, 3), {0: OSD_RULE}).osd(2, size=1000 * GIB).pool(1, size=2)
    osd_set = only_set(fill(cluster, 1, [[0, 1]] * 20))
    assert osd_set.bound == pytest.approx(0.1)
    assert osd_set.binding == ("failure domain", (0, 1), ("osd.2",), (1,))


def test_takes_of_a_hybrid_rule_do_not_connect_their_osds() -> None:
    cluster = Cluster(hosts(3, 2), {0: SKEWED_RULES[5]}, classes={0: "ssd", 2: "ssd", 4: "ssd"})
    fill(cluster.pool(1, size=3), 1, [[0, 3, 5]] * 30)
    result = utilization_bounds(cluster.snapshot())
    assert [(s.device_class, s.takes, s.osds) for s in result.sets] == [
        ("ssd", ("default~ssd",), (0, 2, 4)), ("hdd", ("default~hdd",), (1, 3, 5))]
    assert result.classes == {"hdd": pytest.approx(0.2), "ssd": pytest.approx(0.1)}
    assert all(s.binding.kind == "capacity" for s in result.sets)


def test_disjoint_roots_are_sets_of_their_own() -> None:
    tree = {"root a": {"host a0": [0], "host a1": [1]}, "root b": {"host b0": [2], "host b1": [3]}}
    cluster = Cluster(tree, {0: "take a; chooseleaf firstn 0 host; emit",
                             1: "take b; chooseleaf firstn 0 host; emit"})
    fill(cluster.pool(1, size=1), 1, [[0]] * 20)
    fill(cluster.pool(2, size=1, rule=1), 2, [[2]] * 40)
    result = utilization_bounds(cluster.snapshot())
    assert [(s.takes, s.osds, pytest.approx(s.bound)) for s in result.sets] == [
        (("a",), (0, 1), 0.1), (("b",), (2, 3), 0.2)]
    assert result.classes == {"hdd": pytest.approx(0.2)}


def test_osds_that_no_pool_may_use_keep_what_they_have() -> None:
    cluster = Cluster(hosts(2, 2), {0: "take default~hdd; chooseleaf firstn 0 host; emit"},
                      classes={0: "ssd", 2: "ssd"}).osd(0, used=7 * GIB)
    fill(cluster.pool(1, size=1), 1, [[1]] * 20)
    result = utilization_bounds(cluster.snapshot())
    assert [s.osds for s in result.sets] == [(1, 3)]
    assert result.utilizations == {0: pytest.approx(0.07), 1: pytest.approx(0.1), 2: 0.0,
                             3: pytest.approx(0.1)}
    assert result.classes == {"hdd": pytest.approx(0.1), "ssd": pytest.approx(0.07)}


def test_pool_confined_to_a_part_of_the_set() -> None:
    tree = {"root default": {"rack r0": {"host h0": [0], "host h1": [1]}, "host h2": [2]}}
    cluster = Cluster(tree, {0: HOST_RULE, 1: SKEWED_RULES[6]})
    fill(cluster.pool(1, size=1), 1, [[2]] * 30)
    fill(cluster.pool(2, size=1, rule=1, name="near"), 2, [[0]] * 80)
    osd_set = only_set(cluster)
    assert osd_set.bound == pytest.approx(0.4)
    assert osd_set.binding == ("capacity", (0, 1), (), (2,))
    assert describe(osd_set, cluster.snapshot()) == (
        "class hdd under default, r0 cannot be below 0.4000: "
        "pool near may use only hosts h0, h1, equally full then")


def test_fixed_pools_stay_where_they_are() -> None:
    cluster = Cluster(hosts(2)).pool(1, size=1).pool(2, size=1)
    fill(cluster, 1, [[0]] * 30)
    fill(cluster, 2, [[0]] * 10)
    snapshot = cluster.snapshot()
    assert utilization_bounds(snapshot).classes["hdd"] == pytest.approx(0.2)
    result = utilization_bounds(snapshot, frozenset((1,)))
    assert result.utilizations == {0: pytest.approx(0.3), 1: pytest.approx(0.1)}
    assert result.sets[0].binding == ("fixed bytes", (0,), (), ())
    assert utilization_bounds(snapshot, frozenset((1, 2))).sets == ()


def test_osd_that_can_take_nothing_keeps_its_shards() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=1).osd(0, up=0)
    fill(cluster, 1, [[0]] * 30 + [[1]] * 10)
    result = utilization_bounds(cluster.snapshot())
    assert result.sets[0].osds == (1, 2)
    assert result.utilizations == {0: pytest.approx(0.3), 1: pytest.approx(0.05),
                             2: pytest.approx(0.05)}


def test_pgs_that_break_their_rule_do_not_make_it_impossible() -> None:
    """Three copies on two hosts: what is can also be, so a host's limit is two."""
    cluster = fill(Cluster(hosts(2, 2)).pool(1, size=3), 1, [[0, 1, 2]] * 20)
    assert only_set(cluster).bound == pytest.approx(0.15)


def test_no_pools_and_no_bytes() -> None:
    assert utilization_bounds(Cluster(hosts(2)).snapshot()) == (
        (), {0: 0.0, 1: 0.0}, {"hdd": 0.0})
    assert utilization_bounds(Cluster(hosts(2)).pool(1, size=2).snapshot()).sets == ()


def test_description_of_a_failure_domain_and_of_mere_fullness() -> None:
    cluster = giant()
    assert describe(only_set(cluster), cluster.snapshot()) == (
        "class hdd under default cannot be below 0.2000: pool rbd may have at most 1 shard of a "
        "PG per host, so hosts h0, h1, h2 must hold what host h3 cannot take")
    level = fill(Cluster(hosts(4)).pool(1, size=2), 1, [[0, 1]] * 20)
    assert describe(only_set(level), level.snapshot()) == (
        "class hdd under default cannot be below 0.1000: every OSD would be equally full")


def test_long_lists_are_cut_short() -> None:
    cluster = Cluster(hosts(9)).osd(8, size=5000 * GIB).pool(1, size=2, name="rbd")
    fill(cluster, 1, [[ps % 8, 8] for ps in range(80)])
    assert "hosts h0, h1, h2, h3, h4 and 3 more must hold" in describe(
        only_set(cluster), cluster.snapshot())


def test_others_get_their_turn() -> None:
    calls: List[int] = []
    snapshot = random_cluster(1).snapshot()
    utilization_bounds(snapshot, checkpoint=lambda _moves=None: not calls.append(1))
    assert calls
