"""S15: whatever is missing or absurd in a reading is skipped for a counted reason, no more."""
from __future__ import annotations

from collections import Counter

import pytest
from tests.properties.garbled import garbled
from tests.properties.planned import Planned
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.rules import OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.usage import class_usage
from equilibrium_mgr.snapshot import immovable_reasons as reasons
from equilibrium_mgr.snapshot.builder import build_snapshot

#: One search only: what it meets is what matters.
_OPTIONS = PlanOptions(aim="least-motion")


@pytest.mark.every(2)
def test_s15_a_garbled_reading_is_planned_without_what_is_garbled(case: Planned) -> None:
    """Neither the snapshot nor the planner raises; the plan is legal, and every PG that cannot
    move is counted under its reason."""
    reading, ways = garbled(case.cluster, case.rng("garbled"))
    snapshot = build_snapshot(reading)
    plan = ended_plan(snapshot, _OPTIONS)
    assert_legal(snapshot, plan, _OPTIONS)
    stay = Counter(pg.immovable for pg in snapshot.pgs.values() if pg.immovable)
    assert {reason: n for reason, n in plan.skipped.items() if reason.startswith("PG: ")} == {
        f"PG: {reason}": n for reason, n in stay.items()}, ways
    for move in plan.moves:
        assert snapshot.pgs[move.pgid].immovable is None, ways
    assert all(pg.shard_bytes >= 0 for pg in snapshot.pgs.values()), ways
    assert all(osd.target_bytes >= 0 for osd in snapshot.osds.values()), ways


@pytest.mark.every(8)
def test_s15_pgs_and_osds_that_do_not_report_are_named(case: Planned) -> None:
    rng = case.rng("silent")
    reading = case.cluster.reading()
    silent = set(rng.sample(sorted(case.cluster.osds), 2))
    unknown = set(rng.sample(sorted(case.cluster.up), 3))
    snapshot = build_snapshot(reading._replace(
        osd_stats=[stats for stats in reading.osd_stats if stats["osd"] not in silent],
        records={pgid: r for pgid, r in reading.records.items() if pgid not in unknown}))
    plan = ended_plan(snapshot, _OPTIONS)
    for osd in silent:
        assert snapshot.osds[osd].unusable_reason() is not None
    assert not silent & {osd for move in plan.moves for osd in (move.source, move.target)}
    assert not unknown & {move.pgid for move in plan.moves}
    counted = sum(1 for pgid in unknown
                  if snapshot.pgs[pgid].immovable == reasons.NO_STATISTICS)
    assert counted and plan.skipped[f"PG: {reasons.NO_STATISTICS}"] >= counted


def test_s15_an_osd_may_report_less_than_is_moved_off_it() -> None:
    """What is left is less than nothing; tables of utilization take that for empty."""
    snapshot = odd_one(used=9 * GIB).snapshot()
    used = {osd.id: osd.used_bytes for osd in snapshot.osds.values()}
    for left in (-1 * GIB, -21 * GIB):
        usage = class_usage(snapshot, {**used, 0: left})["hdd"]
        assert usage.min == left / (10 * GIB)
        assert usage.histogram[0] == 2 and sum(usage.histogram) == usage.osds


def test_s15_an_osd_may_claim_to_use_more_than_there_is() -> None:
    """An EiB: to figures as large as that any move is a gain, and one search never ended."""
    snapshot = odd_one(used=1 << 60).snapshot()
    assert snapshot.osds[0].used_bytes == snapshot.osds[0].size_bytes
    assert_legal(snapshot, ended_plan(snapshot))


def odd_one(used: int) -> Cluster:
    """osd.0 of 10 GiB has a PG of 30; three of 400 GiB have two of them and twenty small ones."""
    cluster = Cluster(hosts(1, 4), {0: OSD_RULE}).pool(1, size=1).osd(0, size=10 * GIB, used=used)
    cluster.pg("1.0", [0], num_bytes=30 * GIB)
    for ps in range(1, 41):
        cluster.pg(f"1.{ps:x}", [1 + ps % 2], num_bytes=10 * GIB)
    for osd in range(1, 4):
        cluster.osd(osd, size=400 * GIB)
    return cluster
