"""S15: whatever is missing or absurd in a reading is skipped for a counted reason, no more.

Readings with holes and nonsense in them: what an OSD, a pool or a PG may fail to report.

Only what Ceph's own dumps can leave out or get wrong: keys are missing, figures are negative or
absurd, entries are of things that are gone. Each way of spoiling names what it spoilt.
"""
from __future__ import annotations

import copy
import json
import random
from collections import Counter
from typing import Any, Callable, Dict, List, Tuple

import pytest
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.usage import class_usage
from equilibrium_mgr.snapshot import immovable_reasons as reasons
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import PoolStatfs, Reading
from equilibrium_mgr.snapshot.pg_statistics import PgStatistics
from tests.properties.planned import Planned
from tests.support.clusters.unit_cluster import NONE, Cluster, single_copies
from tests.support.plan_legality import assert_legal, ended_plan
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
            up = self.up[pgid]
            self.progress[pgid] = {
                "num_bytes": record.num_bytes, "num_bytes_recovered": 0, "state": record.state,
                "reported_epoch": record.reported_epoch}
            self.pg_stats[pgid] = {
                "pgid": pgid, "up": up, "acting": cluster.acting.get(pgid, up), "stat_sum": {
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

    def some_pgs(self, rng: random.Random, count: int = 3) -> List[str]:
        return rng.sample(sorted(self.progress.keys() & self.up.keys()), count)


def _lose(entry: Dict[str, Any], rng: random.Random, chance: float, *keys: str) -> None:
    for key in keys:
        if rng.random() < chance:
            entry.pop(key, None)


def _lose_one(entries: List[Dict[str, Any]], rng: random.Random) -> None:
    entries.remove(rng.choice(entries))


def _one_of(text: str, rng: random.Random) -> Any:
    """Of values as Ceph dumps them."""
    return rng.choice(json.loads(text))


# -- OSDs --------------------------------------------------------------------------------------

def _silent_osd(raw: Raw, rng: random.Random) -> None:
    _lose_one(raw.osd_stats, rng)


def _osd_without_figures(raw: Raw, rng: random.Random) -> None:
    _lose(rng.choice(raw.osd_stats), rng, 0.7, "statfs", "kb", "kb_used")


def _absurd_osd(raw: Raw, rng: random.Random) -> None:
    stats = rng.choice(raw.osd_stats)
    stats.update(kb=rng.choice((0, -7, stats.get("kb", 0))), kb_used=rng.choice((-1, 1 << 50)))
    stats["statfs"] = _one_of("""[
        null, {}, {"total": -1}, {"total": 0, "available": 5},
        {"total": 1073741824, "available": 1099511627776},
        {"total": 1073741824, "available": -1073741824}]""", rng)


def _absurd_pool_statfs(raw: Raw, rng: random.Random) -> None:
    """Of some pools on some OSDs."""
    for pool in raw.osd_map["pools"]:
        for stats in raw.osd_stats:
            stored = allocated = rng.randrange(1 << 30, 1 << 40)
            if rng.random() < 0.2:
                allocated, stored = rng.choices((-1, 0, 1, 4096, 1 << 50, (1 << 64) - 1), k=2)
            raw.pool_statfs.append((pool["pool"], stats["osd"], allocated, stored))


def _unknown_osd_reports(raw: Raw, rng: random.Random) -> None:
    raw.osd_stats.append({"osd": 777, "kb": 1 << 20, "kb_used": 5})


def _osd_of_no_class(raw: Raw, rng: random.Random) -> None:
    rng.choice(raw.crush["devices"]).pop("class", None)


def _osd_of_no_device(raw: Raw, rng: random.Random) -> None:
    _lose_one(raw.crush["devices"], rng)


def _osd_entry_bare(raw: Raw, rng: random.Random) -> None:
    _lose(rng.choice(raw.osd_map["osds"]), rng, 0.5, "weight", "state", "up", "in")


def _osd_out_of_the_map(raw: Raw, rng: random.Random) -> None:
    _lose_one(raw.osd_map["osds"], rng)


# -- pools and rules ---------------------------------------------------------------------------

def _pool_without_statistics(raw: Raw, rng: random.Random) -> None:
    _lose_one(raw.pool_stats, rng)


def _absurd_pool(raw: Raw, rng: random.Random) -> None:
    stats = rng.choice(raw.pool_stats)
    stats["stat_sum"] = _one_of("""[
        {"num_bytes": -5, "num_objects": -1, "num_omap_bytes": -9},
        {"num_bytes": -5, "num_objects": 0, "num_omap_bytes": -9}]""", rng)
    _lose(stats, rng, 0.3, "stat_sum")
    stats["store_stats"] = _one_of(
        '[{}, {"allocated": -3}, {"allocated": 1152921504606846976}]', rng)


def _statistics_of_a_gone_pool(raw: Raw, rng: random.Random) -> None:
    raw.pool_stats.append({"poolid": 99, "stat_sum": {"num_bytes": 1 << 40}})


def _unknown_step(raw: Raw, rng: random.Random) -> None:
    rng.choice(raw.crush["rules"])["steps"].insert(1, _one_of(
        '[{"op": "choose_msr", "num": 2, "type": "host"}, {"op": "wibble"}, {}]', rng))


def _rule_gone(raw: Raw, rng: random.Random) -> None:
    _lose_one(raw.crush["rules"], rng)


def _profile_gone(raw: Raw, rng: random.Random) -> None:
    profiles = raw.osd_map["erasure_code_profiles"]
    raw.osd_map["erasure_code_profiles"] = rng.choice(
        ({}, dict.fromkeys(profiles, {"k": "many"})))


# -- PGs ---------------------------------------------------------------------------------------

def _pg_without_record(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng):
        del raw.progress[pgid], raw.pg_stats[pgid]


def _pg_without_full_record(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng):
        del raw.pg_stats[pgid]


def _bare_pg(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng):
        raw.progress[pgid] = {}
        raw.pg_stats[pgid] = {"pgid": pgid}


def _absurd_pg(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng):
        raw.progress[pgid].update(num_bytes=rng.choice((-1, -(1 << 40), 1 << 60)),
                                  num_bytes_recovered=rng.choice((-5, 1 << 60)))
        raw.pg_stats[pgid] = {"pgid": pgid, "stat_sum": {
            "num_objects": -4, "num_omap_bytes": -4, "num_objects_misplaced": 1 << 40}}


def _odd_states(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng, 6):
        raw.progress[pgid]["state"] = rng.choice(_ODD_STATES)


def _pg_of_a_gone_pool(raw: Raw, rng: random.Random) -> None:
    raw.up["99.0"] = [0, 1]
    raw.progress["99.1"] = {"num_bytes": 5, "state": "active+clean"}
    raw.osd_map["pg_temp"].append({"pgid": "99.2", "osds": [0]})
    raw.osd_map["pg_upmap_items"].append({"pgid": "99.3", "mappings": [{"from": 0, "to": 777}]})


def _pg_unmapped(raw: Raw, rng: random.Random) -> None:
    del raw.up[rng.choice(sorted(raw.up))]


def _odd_up_set(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng):
        up = raw.up[pgid]
        raw.up[pgid] = rng.choice(([], up[:-1], up + up, [*up[:-1], NONE], [*up[:-1], 777]))


def _odd_items(raw: Raw, rng: random.Random) -> None:
    for pgid in raw.some_pgs(rng):
        raw.osd_map["pg_upmap_items"].append({"pgid": pgid, "mappings": _one_of("""[
            [], [{"from": 777, "to": 778}], [{"from": 0, "to": 0}],
            [{"from": 0, "to": 1}, {"from": 1, "to": 0}],
            [{"from": 0, "to": 1}, {"from": 0, "to": 2}]]""", rng)})


# -- the rest ----------------------------------------------------------------------------------

def _odd_status(raw: Raw, rng: random.Random) -> None:
    raw.pg_status = _one_of("""[
        {"misplaced_total": 0, "misplaced_objects": -1}, {"pgs_by_pool_state": []},
        {"pgs_by_pool_state": [{"pool_id": 99}, {"pool_id": 1, "pg_state_counts": [
            {"state_name": "wibble+", "count": 3}]}]}]""", rng)


def _no_ratios(raw: Raw, rng: random.Random) -> None:
    for key in ("full_ratio", "backfillfull_ratio", "nearfull_ratio"):
        raw.osd_map[key] = rng.choice((0.0, raw.osd_map[key]))


def _bare_map(raw: Raw, rng: random.Random) -> None:
    _lose(raw.osd_map, rng, 0.3, "flags", "fsid", "crush_version", "require_min_compat_client",
          "pg_upmap", "pg_upmap_items", "erasure_code_profiles")


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
    ways = sorted(rng.sample(_WAYS, rng.randint(1, 6)), key=_WAYS.index)
    for way in ways:
        way(raw, rng)
    return raw.reading(), [way.__name__ for way in ways]


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
    skipped = {reason: n for reason, n in plan.skipped.items() if reason.startswith("PG: ")}
    assert skipped == Counter(
        f"PG: {pg.immovable}" for pg in snapshot.pgs.values() if pg.immovable), ways
    for move in plan.moves:
        assert snapshot.pgs[move.pgid].immovable is None, ways
    assert min(pg.shard_bytes for pg in snapshot.pgs.values()) >= 0, ways
    assert min(osd.target_bytes for osd in snapshot.osds.values()) >= 0, ways


@pytest.mark.every(8)
def test_s15_pgs_and_osds_that_do_not_report_are_named(case: Planned) -> None:
    rng = case.rng("silent")
    reading = case.cluster.reading()
    silent = set(rng.sample(sorted(case.cluster.osds), 2))
    unknown = set(rng.sample(sorted(case.cluster.up), 3))
    osd_stats = [stats for stats in reading.osd_stats if stats["osd"] not in silent]
    records = {pgid: one for pgid, one in reading.records.items() if pgid not in unknown}
    snapshot = SnapshotBuilder().build(reading._replace(osd_stats=osd_stats, records=records))
    plan = ended_plan(snapshot, _OPTIONS)
    for osd in silent:
        assert snapshot.osds[osd].unusable_reason() is not None
    for move in plan.moves:
        assert silent.isdisjoint((move.source, move.target)) and move.pgid not in unknown
    stay = [snapshot.pgs[pgid].immovable for pgid in unknown]
    counted = stay.count(reasons.NO_STATISTICS)
    assert counted and plan.skipped[f"PG: {reasons.NO_STATISTICS}"] >= counted


def test_s15_an_osd_may_report_less_than_is_moved_off_it() -> None:
    """What is left is less than nothing."""
    snapshot = odd_one(used=9 * GIB).snapshot()
    for left in (-1, -21):
        usage = class_usage(snapshot, {0: left * GIB, 1: 0, 2: 0, 3: 0})["hdd"]
        assert usage.min == left / 10


def test_s15_an_osd_may_claim_to_use_more_than_there_is() -> None:
    """An EiB: to figures as large as that any move is a gain, and one search never ended."""
    snapshot = odd_one(used=1 << 60).snapshot()
    assert snapshot.osds[0].used_bytes == snapshot.osds[0].size_bytes
    assert_legal(snapshot, ended_plan(snapshot))


def odd_one(used: int) -> Cluster:
    """osd.0 of 10 GiB has a PG of 30; three of 400 GiB have two of them and twenty small ones."""
    cluster = single_copies([30], [10] * 20, [10] * 20, []).osd(0, size=10 * GIB, used=used)
    for osd in (1, 2, 3):
        cluster.osd(osd, size=400 * GIB)
    return cluster
