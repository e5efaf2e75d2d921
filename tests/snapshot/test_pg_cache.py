"""What is kept from look to look makes no difference: a snapshot is the one that is made without
it."""
from __future__ import annotations

import random
from typing import Any, Tuple

import pytest
from tests.support.clusters.random_clusters import HDDS, random_cluster
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts

from equilibrium_mgr.snapshot import builder
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Reading, Snapshot
from equilibrium_mgr.snapshot.pools import PoolReader

_CHANGES_A_CLUSTER = 50


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cached_seed" in metafunc.fixturenames:
        changes: int = metafunc.config.option.cached_looks
        metafunc.parametrize("cached_seed", range(-(-changes // _CHANGES_A_CLUSTER)))


def twelve_hosts() -> Tuple[Cluster, SnapshotBuilder]:
    """A cluster with one pool, and what makes snapshots of it."""
    return Cluster(hosts(12)).pool(1, size=3), SnapshotBuilder()


def change(rng: random.Random, cluster: Cluster) -> str:
    """Makes one change of what a placement, a rule or a share rests on; returns its name."""
    pgid, osd = rng.choice(sorted(cluster.up)), rng.choice(sorted(cluster.osds))
    pool, up = cluster.pools[rng.choice(sorted(cluster.pools))], cluster.up[pgid]
    what = rng.choice((
        "up", "hole", "items", "no items", "new pool", "pool gone", "size", "rule", "weight",
        "down", "class", "CRUSH weight"))
    if what == "up" and osd not in up:
        cluster.up[pgid] = up[:-1] + [osd]
    elif what == "hole":
        cluster.up[pgid] = up[:-1] if pgid[0] != "2" else [NONE] + up[1:]
    elif what == "items" and osd not in up and up[:1] not in ([], [NONE]):
        cluster.items[pgid] = [(up[0], osd)]
        cluster.up[pgid] = [osd] + up[1:]
    elif what == "no items" and cluster.items:
        del cluster.items[rng.choice(sorted(cluster.items))]
    elif what == "new pool":
        number = max(cluster.pools) + 1
        cluster.pool(number, size=2, rule=rng.choice((0, 2)))
        cluster.pg(f"{number}.0", rng.sample(HDDS, 2), objects=9)
    elif what == "pool gone" and pool["pool"] > 4:
        del cluster.pools[pool["pool"]]
    elif what == "size":
        cluster.pools[rng.choice((1, 3))]["size"] = rng.choice((2, 3))
    elif what == "rule":
        cluster.pools[1]["crush_rule"] = rng.choice((0, 2, 77))
    elif what == "weight":
        weight = rng.choice((0.0, 0.5, 1.0))
        cluster.osd(osd, weight=weight, **{"in": int(weight > 0.0)})
    elif what == "down":
        is_up = rng.random() < 0.6
        cluster.osd(osd, up=int(is_up), state=["exists", "up"] if is_up else ["exists"])
    elif what in ("class", "CRUSH weight"):
        rng.choice(cluster.crush["devices"])["class"] = rng.choice(("hdd", "ssd", "nvme"))
        items = [item for bucket in cluster.crush["buckets"] for item in bucket["items"]]
        item = rng.choice([item for item in items if item["id"] >= 0])
        item["weight"] = rng.choice((0, 0x10000, 0x20000))
        cluster.extra["crush_version"] = cluster.extra.get("crush_version", 5) + 1
    cluster.epoch += 1
    return what


def reading_of(cluster: Cluster) -> Reading:
    """As the gateway has it: up sets are tuples."""
    return cluster.reading()._replace(up={pgid: tuple(up) for pgid, up in cluster.up.items()})


def look(made: SnapshotBuilder, reading: Reading) -> Snapshot:
    """A snapshot without the rules: they have no equality, and each builder has its own."""
    snapshot = made.build(reading)
    nothing: Any = None
    pools = {}
    for number, pool in snapshot.pools.items():
        rule_id = pool.rule_id if pool.rule else -1
        pools[number] = pool._replace(rule=nothing, rule_id=rule_id)
    return snapshot._replace(crush=nothing, pools=pools)


def test_it_makes_no_difference(cached_seed: int) -> None:
    rng, cluster = random.Random(cached_seed), random_cluster(cached_seed, hybrid=True)
    cached, other, skipped = SnapshotBuilder(), SnapshotBuilder(), set()
    for number in range(_CHANGES_A_CLUSTER):
        what, reading = change(rng, cluster), reading_of(cluster)
        other._placements, other._crush_version = {}, None
        other._pools = PoolReader()
        one, expected = look(cached, reading), look(other, reading)
        assert one == expected, f"after change {number}, {what}"
        assert list(one.pgs) == list(expected.pgs)
        skipped |= set(one.skipped)
    assert len(skipped) >= 3


def test_a_placement_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    check = builder.check_placement

    def counted(pool: Any, up: Any, *rest: Any) -> Any:
        checked.append(up)
        return check(pool, up, *rest)
    monkeypatch.setattr(builder, "check_placement", counted)
    cluster, made = twelve_hosts()
    for ps in range(256):
        cluster.pg(f"1.{ps:x}", [ps % 12, (ps + 1) % 12, (ps + 5) % 12], objects=9)
    made.build(reading_of(cluster))
    assert len(checked) == 256
    checked.clear()
    cluster.up["1.7"] = [0, 4, 9]
    made.build(reading_of(cluster))
    assert checked == [(0, 4, 9)]


def test_placements_are_checked_again_where_an_osd_id_is_used_again() -> None:
    cluster, made = twelve_hosts()
    entry = cluster.osds.pop(8)
    cluster.pg("1.3", "3 4 5", items="5>8", objects=9)   # no effect while OSD 8 is gone
    assert made.build(reading_of(cluster)).pgs["1.3"].immovable is None
    cluster.osds[8] = entry
    assert made.build(reading_of(cluster)).pgs["1.3"] == cluster.snapshot().pgs["1.3"]


def test_an_acting_set_that_is_the_up_set_is_kept_once_over_looks() -> None:
    cluster, made = twelve_hosts()
    cluster.pg("1.0", "0 1 2", objects=9).pg("1.1", "3 4 5", acting="3 4 6", objects=9)
    for _ in range(2):   # the second reading has sets of its own
        pgs = made.build(reading_of(cluster)).pgs
        assert pgs["1.0"].acting is pgs["1.0"].up is pgs["1.0"].raw
        assert pgs["1.1"].acting == (3, 4, 6)
