"""An amended snapshot is the one that a full build of the same readings gives, in every field."""
from __future__ import annotations

import logging
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

import pytest
from tests.snapshot.amend.kept_readers import open_reader
from tests.snapshot.amend.random_changes import KINDS, Changes
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.gateway import snapshot_reader
from equilibrium_mgr.gateway.snapshot_reader import NotReady, SnapshotReader
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.observation.placement_counts import PlacementCounts, count_placement
from equilibrium_mgr.plan.usage import counted_usage
from equilibrium_mgr.snapshot.amend.differences import differences
from equilibrium_mgr.snapshot.amend.pg_builder import PgBuilder
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Snapshot

_CHANGES_A_CLUSTER = 50


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "amended_seed" in metafunc.fixturenames:
        changes: int = metafunc.config.option.amended_looks
        metafunc.parametrize("amended_seed", range(-(-changes // _CHANGES_A_CLUSTER)))


def look(reader: SnapshotReader, fresh: bool) -> Optional[Snapshot]:
    try:
        return reader.snapshot(fresh)
    except NotReady:
        return None


def comparable(snapshot: Snapshot) -> Snapshot:
    """Rules have no equality of their own; each reader has its own."""
    return snapshot._replace(pools={
        number: pool._replace(rule=None, rule_id=0 if pool.rule is None else pool.rule_id + 1)
        for number, pool in snapshot.pools.items()})


def shown(view: ClusterView) -> Dict[str, Any]:
    """Every figure of a view."""
    assert view.growth_now is not None
    fields = dict(view._asdict(), snapshot=None, soon=None, growth_now=dict(view.growth_now.value))
    counted = counted_usage(view.snapshot, {osd.id: osd.target_bytes
                                            for osd in view.snapshot.osds.values()},
                            view.counts.soon)
    assert view.usage == counted
    return dict(fields, usage=view.usage, usage_now=view.usage_now())


def sums_of(reader: SnapshotReader) -> Dict[str, Any]:
    """The sums over PGs that the next look goes on with; what comes to nothing is left out."""
    table = reader._builder._table
    sizes = table._sizes._sums
    found = {**vars(table.totals), "own bytes": sizes.own_bytes, "own objects": sizes.objects,
             "explained bytes": sizes.explained_bytes}
    return {name: {key: count for key, count in sums.items() if count}
            if isinstance(sums, dict) else sums for name, sums in found.items()}


def test_amended_is_equal_to_full(amended_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_reader, "LOOKS_BETWEEN_CHECKS", 1 << 30)
    changes = Changes(amended_seed)
    kept, full = (open_reader(changes.mgr, changes.clock) for _ in range(2))
    views: Tuple[Optional[ClusterView], Optional[ClusterView]] = (None, None)
    made: Counter[str] = Counter()
    for number in range(_CHANGES_A_CLUSTER):
        name = changes.one()
        fresh = changes.rng.random() < 0.1
        changes.mgr.missing = ["pool_stats"] if changes.rng.random() < 0.03 else []
        for reader in (kept, full):
            reader.measured = changes.cluster.measured
        full.start_over()
        one, other = look(kept, fresh), look(full, fresh)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            found = differences(comparable(one), comparable(other))
            assert [str(each) for each in found] == [], f"after change {number}, {name}"
            assert sums_of(kept) == sums_of(full), f"after change {number}, {name}"
            assert list(one.pgs) == list(other.pgs) and one.in_flight() == other.in_flight()
            assert list(one.in_flight()) == list(other.in_flight())
            views = (make_view(one, None, PendingMoves(), 0.05, False, (), views[0]),
                     make_view(other, None, PendingMoves(), 0.05, False, (), views[1]))
            assert shown(views[0]) == shown(views[1]._replace(
                counts=count_placement(other, None, PlacementCounts()))), (
                    f"after change {number}, {name}")
            made[("amended " if kept.has_amended else "built ") + name] += 1
    assert sum(count for name, count in made.items() if name.startswith("amended")) >= (
        _CHANGES_A_CLUSTER // 3)


def large() -> Changes:
    changes = Changes(1)
    cluster = Cluster(hosts(12)).pool(1, size=3)
    for ps in range(256):
        cluster.pg(f"1.{ps:x}", [ps % 12, (ps + 1) % 12, (ps + 5) % 12], objects=9)
    changes.mgr.cluster = cluster
    return changes


def test_a_look_builds_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    built: List[str] = []
    build = PgBuilder.build

    def counted(self: Any, pgid: str, old: Any) -> Any:
        built.append(pgid)
        return build(self, pgid, old)
    monkeypatch.setattr(PgBuilder, "build", counted)
    changes = large()
    reader, cluster = open_reader(changes.mgr, changes.clock), changes.cluster
    first = reader.snapshot(False)
    assert len(built) == 256
    built.clear()
    for pgid in ("1.7", "1.a0"):
        record = cluster.records[pgid]
        cluster.records[pgid] = record._replace(num_bytes=record.num_bytes + 1000)
    second = reader.snapshot(False)
    assert sorted(built) == ["1.7", "1.a0"]
    assert second.pgs["1.7"].shard_bytes == first.pgs["1.7"].shard_bytes + 1000
    assert first.pgs["1.7"].shard_bytes == cluster.records["1.8"].num_bytes   # stays as it was
    built.clear()
    assert reader.snapshot(False).pgs is not first.pgs and not built


def test_other_factors_of_a_device_class_build_no_pg_anew(
        monkeypatch: pytest.MonkeyPatch) -> None:
    changes = large()
    reader, cluster = open_reader(changes.mgr, changes.clock), changes.cluster
    first = reader.snapshot(False)
    built: List[str] = []
    monkeypatch.setattr(PgBuilder, "build", lambda _, pgid, old: built.append(pgid))
    for osd in cluster.osds:   # less than their shards: these are taken for smaller
        cluster.used[osd] = cluster.used_bytes(osd) // 2
    second = reader.snapshot(False)
    monkeypatch.undo()
    assert reader.has_amended and not built
    assert second.pgs["1.7"].shard_bytes == first.pgs["1.7"].shard_bytes // 2
    expected = open_reader(changes.mgr, changes.clock).snapshot(False)
    assert not differences(comparable(second), comparable(expected))


def test_a_pg_that_no_osd_has_reported_is_as_large_as_the_others_are_now() -> None:
    changes = large()
    cluster = changes.cluster
    kept, full = (open_reader(changes.mgr, changes.clock) for _ in range(2))
    cluster.records["1.7"] = cluster.records["1.7"]._replace(
        state="unknown", reported_epoch=0, num_bytes=0)
    before = kept.snapshot(False)
    full.snapshot(False)
    cluster.records["1.8"] = cluster.records["1.8"]._replace(num_bytes=1 << 40)
    full.start_over()
    now = kept.snapshot(False)
    assert not differences(comparable(now), comparable(full.snapshot(False)))
    assert kept.has_amended and now.pgs["1.7"].shard_bytes > before.pgs["1.7"].shard_bytes
    assert sums_of(kept) == sums_of(full)


def test_a_pg_that_somebody_pins_may_not_move_any_more() -> None:
    changes = large()
    reader, cluster = open_reader(changes.mgr, changes.clock), changes.cluster
    assert reader.snapshot(False).pgs["1.7"].immovable is None
    cluster.extra["pg_upmap"] = [{"pgid": "1.7", "osds": list(cluster.up["1.7"])}]
    cluster.epoch += 1
    assert reader.snapshot(True).pgs["1.7"].immovable is not None and reader.has_amended


def test_a_difference_is_logged_counted_and_healed(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(snapshot_reader, "LOOKS_BETWEEN_CHECKS", 2)
    changes = large()
    reader = open_reader(changes.mgr, changes.clock)
    right = reader.snapshot(False)
    build = SnapshotBuilder.build

    def wrong(self: SnapshotBuilder, reading: Any) -> Snapshot:
        snapshot = build(self, reading)
        if not self.has_amended:
            return snapshot
        pg = snapshot.pgs["1.3"]
        return snapshot._replace(pgs={**snapshot.pgs, "1.3": pg._replace(objects=77)})
    monkeypatch.setattr(SnapshotBuilder, "build", wrong)
    with caplog.at_level(logging.ERROR):
        assert [reader.snapshot(False).pgs["1.3"].objects for _ in range(2)] == [77, 77]
        assert not caplog.records
        assert reader.snapshot(False).pgs == right.pgs
    assert "pgs.objects of 1.3 is 77, should be 9" in caplog.text
    assert reader.counters.counts.snapshot_differences == 1
    monkeypatch.setattr(SnapshotBuilder, "build", build)
    assert reader.snapshot(False).pgs == right.pgs


def test_placements_are_checked_again_where_an_osd_id_is_used_again() -> None:
    changes = large()
    cluster = changes.mgr.cluster
    entry = cluster.osds.pop(8)
    cluster.pg("1.3", [3, 4, 5], items=[(5, 8)], objects=9)   # no effect while OSD 8 is gone
    reader = open_reader(changes.mgr, changes.clock)
    assert reader.snapshot(False).pgs["1.3"].immovable is None
    cluster.osds[8] = entry
    cluster.epoch += 1
    amended = reader.snapshot(False)
    reader.start_over()
    assert differences(amended, reader.snapshot(False)) == []


def test_a_new_crush_map_at_a_check_is_no_difference(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(snapshot_reader, "LOOKS_BETWEEN_CHECKS", 2)
    changes = large()
    reader = open_reader(changes.mgr, changes.clock)
    for _ in range(3):
        reader.snapshot(False)
    changes.mgr.cluster.extra["crush_version"] = 6
    changes.mgr.cluster.epoch += 1
    reader.snapshot(False)
    assert not caplog.records and not reader.counters.counts.snapshot_differences


def test_every_kind_of_change_is_tried() -> None:
    assert len(KINDS) >= 40
