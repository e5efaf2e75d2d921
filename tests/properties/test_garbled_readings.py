"""S15: whatever is missing or absurd in a reading is skipped for a counted reason, no more.

Readings with holes and nonsense in them: what an OSD, a pool or a PG may fail to report.

Only what Ceph's own dumps can leave out or get wrong: keys are missing, figures are negative or
absurd, entries are of things that are gone. Each way of spoiling names what it spoilt.
"""
from __future__ import annotations

import copy
import pytest
import random
from collections import Counter
from typing import Any, Callable, Dict, List, Tuple

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.usage import class_usage
from equilibrium_mgr.snapshot import immovable_reasons as reasons
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import PoolStatfs, Reading
from equilibrium_mgr.snapshot.pg_statistics import PgStatistics
from tests.properties.planned import Planned
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.rules import OSD_RULE
from tests.support.units import GIB


_ODD_STATES = ("", "unknown", "wibble", "active+wobbling", "stale+incomplete", "+", "creating")


class Raw:
    """All parts of a reading, to be spoilt; PG statistics are as the mgr hands them out."""

    def __init__(self, cluster: Cluster) -> None:
        self.osd_map: Dict[str, Any] = copy.deepcopy(cluster.osd_map())
        self.crush: Dict[str, Any] = copy.deepcopy(cluster.crush)
        self.up: Dict[str, List[int]] = {pgid: list(up) for pgid, up in cluster.up.items()}
        self.osd_stats = cluster.osd_stats()
        self.pool_stats = cluster.pool_stats()
        self.pool_statfs: List[PoolStatfs] = []
        self.pg_status: Dict[str, Any] = {}
        self.progress: Dict[str, Dict[str, Any]] = {}
        self.pg_stats: Dict[str, Dict[str, Any]] = {}
        for pgid, record in cluster.records.items():
            self.progress[pgid] = {
                "num_bytes": record.num_bytes, "num_bytes_recovered": 0, "state": record.state,
                "reported_epoch": record.reported_epoch}
            self.pg_stats[pgid] = {
                "pgid": pgid, "up": self.up[pgid], "acting": cluster.acting.get(
                    pgid, self.up[pgid]), "stat_sum": {
                        "num_objects": record.num_objects, "num_omap_bytes": record.omap_bytes,
                        "num_objects_misplaced": record.num_objects // 2}}

    def reading(self) -> Reading:
        statistics = PgStatistics()
        statistics.read_full(self.pg_stats.values(), self.pool_stats)
        moving = {entry["pgid"]: tuple(entry["osds"]) for entry in self.osd_map["pg_temp"]}
        return Reading(
            taken_at=1000.0, osd_map=self.osd_map, crush=self.crush, up=self.up,
            records=statistics.records(self.progress, self.pool_stats, moving, self.up),
            osd_stats=self.osd_stats, pool_stats=self.pool_stats, pg_status=self.pg_status,
            pool_statfs=self.pool_statfs, acting=moving)


# -- OSDs --------------------------------------------------------------------------------------

def _silent_osd(raw: Raw, rng: random.Random) -> None:
    raw.osd_stats.remove(rng.choice(raw.osd_stats))


def _osd_without_figures(raw: Raw, rng: random.Random) -> None:
    stats = rng.choice(raw.osd_stats)
    for key in ("statfs", "kb", "kb_used"):
        if rng.random() < 0.7:
            stats.pop(key, None)


def _absurd_osd(raw: Raw, rng: random.Random) -> None:
    stats = rng.choice(raw.osd_stats)
    stats.update(kb=rng.choice((0, -7, stats.get("kb", 0))), kb_used=rng.choice((-1, 1 << 50)))
    stats["statfs"] = rng.choice((None, {}, {"total": -1}, {"total": 0, "available": 5}, {
        "total": 1 << 30, "available": 1 << 40}, {"total": 1 << 30, "available": -(1 << 30)}))


def _absurd_pool_statfs(raw: Raw, rng: random.Random) -> None:
    """Of some pools on some OSDs."""
    osds, most = [stats["osd"] for stats in raw.osd_stats], (1 << 64) - 1
    for pool in raw.osd_map["pools"]:
        for osd in osds:
            stored = rng.randrange(1 << 30, 1 << 40)
            row = pool["pool"], osd, stored, stored
            if rng.random() < 0.2:
                allocated, stored = rng.choices((-1, 0, 1, 4096, 1 << 50, most), k=2)
                row = pool["pool"], osd, allocated, stored
            raw.pool_statfs.append(row)


def _unknown_osd_reports(raw: Raw, rng: random.Random) -> None:
    raw.osd_stats.append({"osd": 777, "kb": 1 << 20, "kb_used": 5})


def _osd_of_no_class(raw: Raw, rng: random.Random) -> None:
    rng.choice(raw.crush["devices"]).pop("class", None)


def _osd_of_no_device(raw: Raw, rng: random.Random) -> None:
    raw.crush["devices"].remove(rng.choice(raw.crush["devices"]))


def _osd_entry_bare(raw: Raw, rng: random.Random) -> None:
    entry = rng.choice(raw.osd_map["osds"])
    for key in ("weight", "state", "up", "in"):
        if rng.random() < 0.5:
            entry.pop(key, None)


def _osd_out_of_the_map(raw: Raw, rng: random.Random) -> None:
    raw.osd_map["osds"].remove(rng.choice(raw.osd_map["osds"]))


# -- pools and rules ---------------------------------------------------------------------------

def _pool_without_statistics(raw: Raw, rng: random.Random) -> None:
    raw.pool_stats.remove(rng.choice(raw.pool_stats))


def _absurd_pool(raw: Raw, rng: random.Random) -> None:
    stats = rng.choice(raw.pool_stats)
    if rng.random() < 0.3:
        stats.pop("stat_sum", None)
    else:
        stats["stat_sum"] = {"num_bytes": -5, "num_objects": rng.choice((-1, 0)),
                             "num_omap_bytes": -9}
    stats["store_stats"] = rng.choice(({}, {"allocated": -3}, {"allocated": 1 << 60}))


def _statistics_of_a_gone_pool(raw: Raw, rng: random.Random) -> None:
    raw.pool_stats.append({"poolid": 99, "stat_sum": {"num_bytes": 1 << 40}})


def _unknown_step(raw: Raw, rng: random.Random) -> None:
    rule = rng.choice(raw.crush["rules"])
    rule["steps"] = rule["steps"][:1] + [rng.choice((
        {"op": "choose_msr", "num": 2, "type": "host"}, {"op": "wibble"}, {}))] + rule["steps"][1:]


def _rule_gone(raw: Raw, rng: random.Random) -> None:
    raw.crush["rules"].remove(rng.choice(raw.crush["rules"]))


def _profile_gone(raw: Raw, rng: random.Random) -> None:
    raw.osd_map["erasure_code_profiles"] = rng.choice(({}, {
        name: {"k": "many"} for name in raw.osd_map["erasure_code_profiles"]}))


# -- PGs ---------------------------------------------------------------------------------------

def _pg_without_record(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.progress), 3):
        del raw.progress[pgid]
        raw.pg_stats.pop(pgid, None)


def _pg_without_full_record(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.pg_stats), 3):
        del raw.pg_stats[pgid]


def _bare_pg(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.progress), 3):
        raw.progress[pgid] = {}
        raw.pg_stats[pgid] = {"pgid": pgid}


def _absurd_pg(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.progress), 3):
        raw.progress[pgid].update(num_bytes=rng.choice((-1, -(1 << 40), 1 << 60)),
                                  num_bytes_recovered=rng.choice((-5, 1 << 60)))
        raw.pg_stats[pgid] = {"pgid": pgid, "stat_sum": {
            "num_objects": -4, "num_omap_bytes": -4, "num_objects_misplaced": 1 << 40}}


def _odd_states(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.progress), 6):
        raw.progress[pgid]["state"] = rng.choice(_ODD_STATES)


def _pg_of_a_gone_pool(raw: Raw, rng: random.Random) -> None:
    raw.up["99.0"] = [0, 1]
    raw.progress["99.1"] = {"num_bytes": 5, "state": "active+clean"}
    raw.osd_map["pg_temp"].append({"pgid": "99.2", "osds": [0]})
    raw.osd_map["pg_upmap_items"].append({"pgid": "99.3", "mappings": [{"from": 0, "to": 777}]})


def _pg_unmapped(raw: Raw, rng: random.Random) -> None:
    del raw.up[rng.choice(sorted(raw.up))]


def _odd_up_set(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.up), 3):
        up = raw.up[pgid]
        raw.up[pgid] = rng.choice(([], up[:-1], up + up, up[:-1] + [NONE], up[:-1] + [777]))


def _odd_items(raw: Raw, rng: random.Random) -> None:
    for pgid in rng.sample(sorted(raw.up), 3):
        pairs = rng.choice(([], [(777, 778)], [(0, 0)], [(0, 1), (1, 0)], [(0, 1), (0, 2)]))
        raw.osd_map["pg_upmap_items"].append({"pgid": pgid, "mappings": [
            {"from": source, "to": target} for source, target in pairs]})


# -- the rest ----------------------------------------------------------------------------------

def _odd_status(raw: Raw, rng: random.Random) -> None:
    raw.pg_status = rng.choice((
        {"misplaced_total": 0, "misplaced_objects": -1}, {"pgs_by_pool_state": []},
        {"pgs_by_pool_state": [{"pool_id": 99}, {"pool_id": 1, "pg_state_counts": [
            {"state_name": "wibble+", "count": 3}]}]}))


def _no_ratios(raw: Raw, rng: random.Random) -> None:
    for key in ("full_ratio", "backfillfull_ratio", "nearfull_ratio"):
        raw.osd_map[key] = rng.choice((0.0, raw.osd_map[key]))


def _bare_map(raw: Raw, rng: random.Random) -> None:
    for key in ("flags", "fsid", "crush_version", "require_min_compat_client", "pg_upmap",
                "pg_upmap_items", "erasure_code_profiles"):
        if rng.random() < 0.3:
            raw.osd_map.pop(key, None)


_WAYS: Tuple[Callable[[Raw, random.Random], None], ...] = (
    _silent_osd, _osd_without_figures, _absurd_osd, _absurd_pool_statfs, _unknown_osd_reports,
    _osd_of_no_class, _osd_of_no_device, _osd_entry_bare, _osd_out_of_the_map, _absurd_pool,
    _pool_without_statistics, _statistics_of_a_gone_pool, _unknown_step, _rule_gone, _profile_gone,
    _pg_without_record, _pg_without_full_record, _bare_pg, _absurd_pg, _odd_states,
    _pg_of_a_gone_pool, _pg_unmapped, _odd_up_set, _odd_items, _odd_status, _no_ratios, _bare_map)


def garbled(cluster: Cluster, rng: random.Random) -> Tuple[Reading, List[str]]:
    """A reading spoilt in one to six ways, and their names."""
    raw = Raw(cluster)
    # what takes whole parts away comes last
    ways = sorted(rng.sample(range(len(_WAYS)), rng.randint(1, 6)))
    for way in ways:
        _WAYS[way](raw, rng)
    return raw.reading(), [_WAYS[way].__name__.strip("_") for way in ways]


#: One search only: what it meets is what matters.
_OPTIONS = PlanOptions(aim="least-motion")


@pytest.mark.every(2)
def test_s15_a_garbled_reading_is_planned_without_what_is_garbled(case: Planned) -> None:
    """Neither the snapshot nor the planner raises; the plan is legal, and every PG that cannot
    move is counted under its reason."""
    reading, ways = garbled(case.cluster, case.rng("garbled"))
    snapshot = SnapshotBuilder().build(reading)
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
    snapshot = SnapshotBuilder().build(reading._replace(
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
    """What is left is less than nothing."""
    snapshot = odd_one(used=9 * GIB).snapshot()
    used = {osd.id: osd.used_bytes for osd in snapshot.osds.values()}
    for left in (-1 * GIB, -21 * GIB):
        usage = class_usage(snapshot, {**used, 0: left})["hdd"]
        assert usage.min == left / (10 * GIB)


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
