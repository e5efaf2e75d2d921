"""What is kept by PG makes no difference: a snapshot is the one that is made without it."""
from __future__ import annotations

from typing import Any, Optional

import pytest
from tests.snapshot.changing_mgr import open_reader
from tests.snapshot.random_changes import Changes
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.gateway.snapshot_reader import NotReady, SnapshotReader
from equilibrium_mgr.snapshot import builder
from equilibrium_mgr.snapshot.model import Snapshot

_CHANGES_A_CLUSTER = 50


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cached_seed" in metafunc.fixturenames:
        changes: int = metafunc.config.option.cached_looks
        metafunc.parametrize("cached_seed", range(-(-changes // _CHANGES_A_CLUSTER)))


def look(reader: SnapshotReader) -> Optional[Snapshot]:
    """A snapshot without the rules: they have no equality, and each reader has its own."""
    try:
        snapshot = reader.snapshot()
    except NotReady:
        return None
    return snapshot._replace(crush=None, pools={
        number: pool._replace(rule=None, rule_id=0 if pool.rule is None else pool.rule_id + 1)
        for number, pool in snapshot.pools.items()})


def test_it_makes_no_difference(cached_seed: int) -> None:
    changes = Changes(cached_seed)
    cached, other = (open_reader(changes.mgr, changes.clock) for _ in range(2))
    looks = 0
    for number in range(_CHANGES_A_CLUSTER):
        name = changes.one()
        changes.mgr.missing = ["pool_stats"] if changes.rng.random() < 0.03 else []
        for reader in (cached, other):
            reader.measured = changes.cluster.measured
        other._builder._placements = {}
        one, expected = look(cached), look(other)
        assert one == expected, f"after change {number}, {name}"
        if one is not None and expected is not None:
            looks += 1
            assert list(one.pgs) == list(expected.pgs)
            assert list(one.in_flight().items()) == list(expected.in_flight().items())
    assert looks > _CHANGES_A_CLUSTER // 2


def large() -> Changes:
    changes = Changes(1)
    cluster = Cluster(hosts(12)).pool(1, size=3)
    for ps in range(256):
        cluster.pg(f"1.{ps:x}", [ps % 12, (ps + 1) % 12, (ps + 5) % 12], objects=9)
    changes.mgr.cluster = cluster
    return changes


def test_a_placement_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    check = builder.check_placement

    def counted(pool: Any, up: Any, *rest: Any) -> Any:
        checked.append(up)
        return check(pool, up, *rest)
    monkeypatch.setattr(builder, "check_placement", counted)
    changes = large()
    reader, cluster = open_reader(changes.mgr, changes.clock), changes.cluster
    reader.snapshot()
    assert len(checked) == 256
    checked.clear()
    cluster.up["1.7"] = [0, 4, 9]
    cluster.epoch += 1
    reader.snapshot()
    assert checked == [(0, 4, 9)]


def test_placements_are_checked_again_where_an_osd_id_is_used_again() -> None:
    changes = large()
    cluster = changes.mgr.cluster
    entry = cluster.osds.pop(8)
    cluster.pg("1.3", [3, 4, 5], items=[(5, 8)], objects=9)   # no effect while OSD 8 is gone
    reader = open_reader(changes.mgr, changes.clock)
    assert reader.snapshot().pgs["1.3"].immovable is None
    cluster.osds[8] = entry
    cluster.epoch += 1
    fresh = open_reader(changes.mgr, changes.clock).snapshot().pgs["1.3"]
    assert reader.snapshot().pgs["1.3"] == fresh
