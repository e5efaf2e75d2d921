"""S10, L10, L11: a plan depends on the cluster, and on nothing else that a reading is made of.

A second root beside a cluster's own, with hosts, OSDs and a pool that nothing else touches.
"""
from __future__ import annotations

import pytest
from typing import Any, Dict, List, Sequence, Tuple

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.snapshot.model import Snapshot
from tests.properties.planned import Planned
from tests.support.clusters.random_clusters import shuffled
from tests.support.clusters.unit_cluster import Cluster
from tests.support.plan_legality import ended_plan
from tests.support.replay import Replay
from tests.support.units import GIB, MIB


_FIRST_OSD = 900
_FIRST_BUCKET = -900
_RULE = 90
_POOL = 90


def with_unrelated_root(cluster: Cluster, device_class: str, mib: Sequence[int]) -> Cluster:
    """Three hosts of two OSDs; single copies of so many MiB, in turn, eight per OSD and value."""
    osds = list(range(_FIRST_OSD, _FIRST_OSD + 2 * len(mib)))
    hosts = {f"host e{first}": [first, first + 1] for first in osds[::2]}
    other = Cluster({"root elsewhere": hosts},
                    {_RULE: "take elsewhere; choose firstn 0 osd; emit"},
                    dict.fromkeys(osds, device_class))
    for bucket in other.crush["buckets"]:
        _move(bucket, "id")
        for item in bucket["items"]:
            _move(item, "id")
    for step in other.crush["rules"][0]["steps"]:
        _move(step, "item")
    for part in ("buckets", "devices", "rules"):
        cluster.crush[part] += other.crush[part]
    cluster.osds.update(other.osds)
    cluster.sizes.update(dict.fromkeys(osds, 20 * GIB))
    cluster.pool(_POOL, size=1, rule=_RULE)
    sizes = [size * MIB for size in mib for _ in range(2)]
    for ps, (osd, size) in enumerate(8 * list(zip(osds, sizes))):
        cluster.pg(f"{_POOL}.{ps:x}", [osd], size)
    return cluster


def _move(entry: Dict[str, Any], key: str) -> None:
    """Buckets get other numbers."""
    if entry.get(key, 0) < 0:
        entry[key] += _FIRST_BUCKET


_SAME = 1e-9


def moves_of(plan: Plan) -> List[Tuple[str, int, int]]:
    return [(move.pgid, move.source, move.target) for move in plan.moves]


def test_s10_the_order_of_what_is_read_does_not_change_a_byte(case: Planned) -> None:
    """Sizes are fitted, and transfers summed up, over all OSDs and PGs."""
    mixed = shuffled(case.another_cluster(), case.seed).snapshot()
    for field in ("osds", "pgs", "upmap_items", "skipped", "object_copies"):
        assert getattr(mixed, field) == getattr(case.snapshot, field), field


@pytest.mark.every(12)
def test_s10_the_order_of_what_is_read_does_not_matter(case: Planned) -> None:
    """OSDs, PGs, pools, their statistics, buckets and rules come in another order."""
    mixed = shuffled(case.another_cluster(), case.seed)
    assert list(mixed.up) != list(case.cluster.up)
    assert ended_plan(mixed.snapshot(), case.options).to_dict() == case.plan.to_dict()


@pytest.mark.every(16)
def test_l10_twice_the_bytes_give_the_same_moves(case: Planned) -> None:
    """Exactly: no figure of the planner is of bytes that are not the cluster's own."""
    assert moves_of(ended_plan(doubled(case.snapshot), case.options)) == moves_of(case.plan)


def doubled(snapshot: Snapshot) -> Snapshot:
    """Behind the rounding of sizes, which halves no byte."""
    osds, pgs = dict(snapshot.osds), dict(snapshot.pgs)
    for number, osd in osds.items():
        osds[number] = osd._replace(**{
            field: 2 * getattr(osd, field) for field in (
                "size_bytes", "used_bytes", "inbound_bytes", "outbound_bytes", "base_bytes")})
    for pgid, pg in pgs.items():
        pgs[pgid] = pg._replace(shard_bytes=2 * pg.shard_bytes)
    return snapshot._replace(osds=osds, pgs=pgs)


def one_shard(case: Planned, name: str) -> float:
    """What the largest shard of a class adds to a mean OSD of it, a ratio."""
    sizes = {osd.id: osd.size_bytes for osd in case.snapshot.osds.values()
             if case.snapshot.set_of(osd.id) == name and osd.has_statistics}
    shards = [pg.shard_bytes for pg in case.snapshot.pgs.values()
              if not sizes.keys().isdisjoint(pg.up)]
    return max([0, *shards]) * len(sizes) / sum(sizes.values())


@pytest.mark.every(16)
def test_l11_an_idle_root_changes_nothing_elsewhere(case: Planned) -> None:
    """Its OSDs are of another class and equally full; its pool holds next to nothing."""
    cluster = with_unrelated_root(case.another_cluster(), "nvme", [1, 1, 1])
    snapshot = cluster.snapshot()._replace(loads=case.snapshot.loads)
    assert moves_of(ended_plan(snapshot, case.options)) == moves_of(case.plan)


@pytest.mark.every(16)
def test_l11_a_busy_root_changes_no_maximum_by_more_than_one_shard(case: Planned) -> None:
    """Of several searches the best for the whole cluster is taken: its moves may be others."""
    cluster = with_unrelated_root(case.another_cluster(), "nvme", [900, 400, 100])
    snapshot = cluster.snapshot()
    plan = ended_plan(snapshot, case.options)
    end = Replay(snapshot, plan.moves)
    for name, usage in case.plan.after.classes.items():
        assert abs(end.highest(name) - usage.max) <= one_shard(case, name) + _SAME
