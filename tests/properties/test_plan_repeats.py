"""S10, L10, L11: a plan depends on the cluster, and on nothing else that a reading is made of.

A second root beside a cluster's own, with hosts, OSDs and a pool that nothing else touches.
"""
from __future__ import annotations

import pytest
from typing import Any, Dict, List, Sequence, Tuple

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.snapshot.model import Snapshot
from tests.properties.planned import Planned
from tests.support.clusters.crush_maps import crush_map
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
    added = crush_map(
        {"root elsewhere": {f"host e{number}": osds[2 * number:2 * number + 2]
                            for number in range(len(mib))}},
        {_RULE: "take elsewhere; choose firstn 0 osd; emit"},
        {osd: device_class for osd in osds})
    for bucket in added["buckets"]:
        cluster.crush["buckets"].append(dict(bucket, id=_elsewhere(bucket["id"]), items=[
            dict(item, id=_elsewhere(item["id"])) for item in bucket["items"]]))
    cluster.crush["devices"] += added["devices"]
    cluster.crush["rules"] += [_moved_rule(rule) for rule in added["rules"]]
    for osd in osds:
        cluster.osds[osd] = {"osd": osd, "up": 1, "in": 1, "weight": 1.0,
                             "state": ["exists", "up"]}
        cluster.sizes[osd] = 20 * GIB
    cluster.pool(_POOL, size=1, rule=_RULE)
    for ps in range(8 * len(osds)):
        osd = osds[ps % len(osds)]
        cluster.pg(f"{_POOL}.{ps:x}", [osd], num_bytes=mib[(osd - _FIRST_OSD) // 2] * MIB)
    return cluster


def _elsewhere(item: int) -> int:
    return item if item >= 0 else item + _FIRST_BUCKET


def _moved_rule(rule: Dict[str, Any]) -> Dict[str, Any]:
    return dict(rule, steps=[dict(step, item=_elsewhere(step["item"])) if "item" in step else step
                             for step in rule["steps"]])


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
    osds = {osd.id: osd._replace(size_bytes=2 * osd.size_bytes, used_bytes=2 * osd.used_bytes,
                                 inbound_bytes=2 * osd.inbound_bytes,
                                 outbound_bytes=2 * osd.outbound_bytes,
                                 base_bytes=2 * osd.base_bytes)
            for osd in snapshot.osds.values()}
    return snapshot._replace(osds=osds, pgs={
        pgid: pg._replace(shard_bytes=2 * pg.shard_bytes) for pgid, pg in snapshot.pgs.items()})


def one_shard(case: Planned, name: str) -> float:
    """What the largest shard of a class adds to a mean OSD of it, a ratio."""
    osds = [osd for osd in case.snapshot.osds.values()
            if case.snapshot.set_of(osd.id) == name and osd.has_statistics]
    known = {osd.id for osd in osds}
    largest = max((pg.shard_bytes for pg in case.snapshot.pgs.values()
                   if known.intersection(pg.up)), default=0)
    return largest * len(osds) / sum(osd.size_bytes for osd in osds)


@pytest.mark.every(16)
def test_l11_an_idle_root_changes_nothing_elsewhere(case: Planned) -> None:
    """Its OSDs are of another class and equally full; its pool holds next to nothing."""
    cluster = with_unrelated_root(case.another_cluster(), "nvme", [1, 1, 1])
    assert moves_of(ended_plan(cluster.snapshot(), case.options)) == moves_of(case.plan)


@pytest.mark.every(16)
def test_l11_a_busy_root_changes_no_maximum_by_more_than_one_shard(case: Planned) -> None:
    """Of several searches the best for the whole cluster is taken: its moves may be others."""
    cluster = with_unrelated_root(case.another_cluster(), "nvme", [900, 400, 100])
    snapshot = cluster.snapshot()
    plan = ended_plan(snapshot, case.options)
    end = Replay(snapshot, plan.moves)
    for name, usage in case.plan.after.classes.items():
        assert abs(end.highest(name) - usage.max) <= one_shard(case, name) + _SAME
