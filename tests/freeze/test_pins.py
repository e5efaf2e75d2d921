"""Pins of single PGs: what stays where it is, and why the rest cannot."""
from __future__ import annotations

import random
from itertools import combinations
from typing import Any, Dict, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.rules import EC_HOST_RULE, EC_PAIRS_IN_3_RACKS, HDD_HOSTS
from tests.support.few import few
from tests.support.placed import osds, pairs

from equilibrium_mgr.freeze.freeze import Pin, pin_of
from equilibrium_mgr.plan.model import moves_nothing
from equilibrium_mgr.snapshot import reason_codes as codes
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.reason_codes import Why
from equilibrium_mgr.snapshot.upmap_items import apply_items

REMAPPED = "active+remapped+backfill_wait"


def replicated(count: int = 8, rule: str = "", **more: object) -> Cluster:
    rules = {0: rule} if rule else None
    return Cluster(hosts(count), rules, **more).pool(1, size=3)   # type: ignore[arg-type]


def erasure(size: int = 4, count: int = 8) -> Cluster:
    return Cluster(hosts(count), {0: EC_HOST_RULE}).pool(1, size=size, k=size - 1)


def remapped(cluster: Cluster, up: str, acting: str, items: str = "",
             state: str = REMAPPED) -> Cluster:
    return cluster.pg("1.0", osds(up), acting=osds(acting), items=pairs(items), state=state,
                      objects=10)


def pin(cluster: Cluster) -> Pin:
    snapshot = cluster.snapshot()
    return pin_of(snapshot, snapshot.in_flight()["1.0"], {})


def obstacle(found: Pin) -> Why:
    assert found.obstacle is not None
    return found.obstacle


def assert_pinned(cluster: Cluster, up: str, items: str, shards: int) -> None:
    """1.0 stays whole."""
    assert pin(cluster) == Pin(osds(up), pairs(items), shards, 0, None)


def is_left(cluster: Cluster, code: str) -> bool:
    """Returns True if no shard of 1.0 is pinned, for the reason with this code."""
    found = pin(cluster)
    return found.shards == 0 and obstacle(found).code == code


def test_of_shards_in_a_circle_one_goes_elsewhere_and_the_others_stay() -> None:
    cluster = remapped(erasure(count=9), "0 1 2 3", "1 0 2 3")
    for osd, gib in ((4, 40), (5, 30), (6, 20), (7, 10), (8, 5)):
        cluster.osd(osd, used=gib << 30)
    found = pin(cluster.mark_out(8))
    assert found.up in ((7, 0, 2, 3), (1, 7, 2, 3))
    assert (found.shards, found.moving) == (1, 1)
    assert apply_items((0, 1, 2, 3), found.items, lambda osd: False) == found.up
    assert obstacle(found).code == codes.EXCHANGE
    snapshot = cluster.snapshot()
    assert moves_nothing(snapshot.pgs["1.0"], found.up, positional=True)
    assert not moves_nothing(snapshot.pgs["1.0"], (0, 1, 2, 5), positional=True)


def test_no_shard_goes_to_an_osd_that_it_would_make_too_full() -> None:
    cluster = remapped(erasure(count=5), "0 1 2 3", "1 0 2 3")
    assert pin(cluster).shards == 1
    assert pin(cluster.osd(4, used=int(84.9 * (1 << 30)))).shards == 1   # below nearfull
    assert pin(cluster.osd(4, used=86 << 30)).shards == 0


def test_shards_that_leave_exchanges_are_counted_together() -> None:
    """Two PGs of one freeze: the OSD that is emptiest for the first has room for one shard."""
    cluster = erasure(count=6)
    for pgid in ("1.0", "1.1"):
        cluster.pg(pgid, "0 1 2 3", acting="1 0 2 3", num_bytes=30 << 30, state=REMAPPED,
                   objects=10)
    snapshot = cluster.osd(4, used=70 << 30).osd(5, used=72 << 30).snapshot()
    given: Dict[int, int] = {}
    found = [pin_of(snapshot, snapshot.in_flight()[pgid], given) for pgid in ("1.0", "1.1")]
    assert [4 in one.up for one in found] == [True, False]
    assert 5 in found[1].up
    assert given == {4: 10 << 30, 5: 10 << 30}


def test_missing_shard_is_recovered_and_the_others_are_pinned() -> None:
    cluster = remapped(erasure(), "0 1 2 3", f"4 5 {NONE} 3",
                       state="active+undersized+degraded+remapped+backfill_wait")
    found = pin(cluster)
    assert (found.up, found.shards, found.moving) == ((4, 5, 2, 3), 2, 1)
    assert obstacle(found).code == codes.DEGRADED


def test_nothing_is_pinned_to_an_osd_that_is_out() -> None:
    found = pin(remapped(replicated().mark_out(3), "0 1 2", "3 4 2"))
    assert set(found.up) & {3, 4} == {4}
    assert (found.shards, found.moving) == (1, 1)
    assert obstacle(found).code == codes.TARGET_UNAVAILABLE
    assert str(found.obstacle) == "the OSD that holds it is out"


def test_an_osd_that_is_being_drained_keeps_what_it_has() -> None:
    """A pin moves nothing; the drain has the shard leave within its limits."""
    assert_pinned(remapped(replicated().drain(3), "0 1 2", "3 1 2"), "3 1 2", "0>3", 1)
    assert_pinned(remapped(erasure().drain(4), "0 1 2 3", "4 1 2 3"), "4 1 2 3", "0>4", 1)


def test_nothing_is_pinned_to_an_osd_of_another_device_class() -> None:
    classes = {osd: "ssd" if osd == 3 else "hdd" for osd in range(8)}
    found = pin(remapped(replicated(rule=HDD_HOSTS, classes=classes), "0 1 2",
                         "3 4 2"))
    assert set(found.up) & {3, 4} == {4}
    assert obstacle(found).code == codes.FAILURE_DOMAIN
    assert str(found.obstacle) == "the CRUSH rule does not take the OSD that holds it"


def test_a_shard_is_pinned_only_to_an_osd_that_serves_it() -> None:
    """The PG was clean on 3, 1 and 4; what has happened since nobody has seen."""
    builder = SnapshotBuilder()
    builder.build(replicated().pg("1.0", "3 1 4", objects=10).reading())
    cluster = remapped(replicated(), "0 1 2", "0 1 5")
    cluster.epoch = 120
    snapshot = builder.build(cluster.reading())
    assert {3, 4} <= set(snapshot.pgs["1.0"].holders)
    found = pin_of(snapshot, snapshot.pgs["1.0"], {})
    assert set(found.up) == {0, 1, 5}
    assert found.shards == 1


def test_pool_whose_rule_is_not_understood_is_left() -> None:
    cluster = replicated(rule="take default; chooseleaf firstn 0 host; emit; emit")
    cluster = remapped(cluster, "0 1 2", "3 1 2")
    assert is_left(cluster, codes.RULE_UNKNOWN)


def test_an_osd_that_crush_has_chosen_twice_is_left() -> None:
    rule = "take a; chooseleaf firstn 1 host; emit; take default; chooseleaf firstn -1 host; emit"
    tree = {"root default": {"rack a": {"host h0": [0, 1]}, "rack b": {"host h1": [2, 3],
                                                                      "host h2": [4, 5]}}}
    cluster = Cluster(tree, {0: rule}).pool(1, size=3)
    cluster = remapped(cluster, "0 0 4", "0 2 4")
    assert is_left(cluster, codes.IMMOVABLE)


def test_pool_of_which_the_monitor_keeps_no_upmap_item_is_left_for_that_reason() -> None:
    """The monitor does not multiply the numbers of a rule by each other."""
    racks = {"root default": {
        "rack r0": {"host h00": [0, 1, 2], "host h01": [3, 4, 5]},
        "rack r1": {"host h10": [6, 7, 8], "host h11": [9, 10, 11]}}}
    rule = ("take default; choose indep 2 rack; choose indep 2 host; choose indep 2 osd; emit")
    cluster = Cluster(racks, {0: rule}).pool(1, size=8, k=6)
    cluster = remapped(cluster, "0 1 3 4 6 7 9 10", "2 1 3 4 6 7 9 10")
    assert is_left(cluster, codes.REJECTED)


def test_pg_that_somebody_has_placed_in_full_is_left() -> None:
    cluster = remapped(replicated(), "0 1 2", "3 1 2")
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [0, 1, 2]}]
    assert is_left(cluster, codes.IMMOVABLE)


@pytest.mark.parametrize("seed", few(range(40), 10))
def test_no_larger_part_of_an_erasure_coded_pg_can_be_pinned(seed: int) -> None:
    """Against all parts, on racks of which each has a pair of shards."""
    rng = random.Random(seed)
    racks = {}
    for rack in range(4):
        numbers = [6 * rack + number for number in range(6)]
        racks[f"rack r{rack}"] = {
            f"host r{rack}h{host}": numbers[2 * host:2 * host + 2] for host in range(3)}
    cluster = Cluster({"root default~hdd": racks}, {0: EC_PAIRS_IN_3_RACKS}).pool(1, size=6, k=4)
    up, held = _pairs(rng), _pairs(rng)
    if up == held:
        return
    found = pin(cluster.pg("1.0", up, acting=held, state=REMAPPED))
    rule: Any = cluster.snapshot().pools[1].rule
    largest = _largest(up, held, rule)
    places = list(zip(found.up, held, up))
    pinned = [a for a, b, c in places if a == b != c]
    assert found.shards == len(pinned) >= largest
    if found.shards > largest:
        elsewhere = [a for a, b, c in places if a not in (b, c)]
        assert len(elsewhere) == 1
    if found.shards:
        assert rule.violation(found.up) is None
        assert apply_items(up, found.items, lambda osd: False) == found.up


def _pairs(rng: random.Random) -> Tuple[int, ...]:
    osds = []
    for rack in rng.sample(range(4), 3):
        osds += [6 * rack + 2 * host + rng.randrange(2) for host in rng.sample(range(3), 2)]
    return tuple(osds)


def _largest(up: Tuple[int, ...], held: Tuple[int, ...], rule: Any) -> int:
    """The most shards that can be pinned, by trying all parts."""
    moving = [i for i, osd in enumerate(up) if osd != held[i]]
    for count in range(len(moving), 0, -1):
        for part in combinations(moving, count):
            wanted = list(up)
            for i in part:
                wanted[i] = held[i]
            if rule.violation(wanted) is None and _expressible(up, wanted):
                return count
    return 0


def _expressible(raw: Sequence[int], wanted: Sequence[int]) -> bool:
    """True where a pair for each shard, and one for each circle in which shards exchange their
    OSDs, are no more than the PG has shards; and one has left its OSD where there is a circle."""
    goes = {a: b for a, b in zip(raw, wanted) if a != b}
    pairs, ends = len(goes), set(goes.values()) - set(goes)
    while goes:
        first, last = goes.popitem()
        while last in goes:
            last = goes.pop(last)
        pairs += last == first
    return bool(ends or not pairs) and pairs <= len(raw)
