"""Random changes of every kind to a cluster, one at a time."""
from __future__ import annotations

import random
from typing import Any, Callable, Dict

from tests.gateway.fake_mgr import Clock
from tests.snapshot.changing_mgr import ChangingMgr
from tests.snapshot.odd_osds import take_otherwise
from tests.support.clusters.random_clusters import HDDS, random_cluster
from tests.support.clusters.unit_cluster import NONE, Cluster
from tests.support.units import GIB, MIB

_STATES = ("active+clean", "active+clean+scrubbing", "active+remapped+backfilling",
           "active+undersized+degraded", "active+recovering+degraded+remapped", "peering",
           "active+clean+inconsistent", "stale+active+clean", "unknown",
           "active+remapped+backfill_toofull", "")
_FLAGS = ("sortbitwise", "sortbitwise,norebalance", "sortbitwise,noout,nobackfill")


class Changes:
    """Changes the cluster of a mgr."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        cluster = random_cluster(seed, hybrid=True)
        self.mgr, self.clock = ChangingMgr(cluster), Clock()
        for osd in cluster.osds:   # metadata, and an empty BlueStore
            cluster.used[osd] = int(cluster.used_bytes(osd) * self.rng.uniform(1.0, 1.1)) + GIB
        for number in (1, 2, 4):
            self.allocate(number)

    @property
    def cluster(self) -> Cluster:
        return self.mgr.cluster

    def one(self) -> str:
        """Makes one change; returns its name."""
        name = self.rng.choice(sorted(KINDS))
        self.clock.now += self.rng.choice((2.0, 5.0, 30.0, 150.0))
        self.mgr.seq += 1
        if KINDS[name](self):
            self.cluster.epoch += 1
        return name

    def pgid(self) -> str:
        return self.rng.choice(sorted(self.cluster.up))

    def osd(self) -> int:
        return self.rng.choice(sorted(self.cluster.osds))

    def pool(self) -> int:
        return self.rng.choice(sorted(self.cluster.pools))

    def allocate(self, pool: int) -> None:
        """Statistics of a pool's allocation and omap, as BlueStore reports them by pool."""
        rng, cluster = self.rng, self.cluster
        stored = sum(cluster.shard_bytes(p) * len(up) for p, up in cluster.up.items()
                     if p.startswith(f"{pool}."))
        cluster.store_stats[pool] = {"allocated": int(stored * rng.uniform(0.7, 1.2))}
        if rng.random() < 0.5:
            cluster.store_stats[pool]["omap_allocated"] = rng.randrange(20 * GIB)

    def record(self, **fields: Any) -> None:
        pgid = self.pgid()
        fields.setdefault("reported_epoch", self.cluster.epoch)
        self.cluster.records[pgid] = self.cluster.records[pgid]._replace(**fields)


def pg_grows(to: Changes) -> bool:
    to.record(num_bytes=to.rng.randrange(12 * GIB), num_objects=to.rng.randrange(800))
    return False


def pg_grows_a_little(to: Changes) -> bool:
    record = to.cluster.records[to.pgid()]
    to.record(num_bytes=max(0, record.num_bytes + to.rng.randrange(-MIB, MIB)))
    return False


def pg_is_emptied(to: Changes) -> bool:
    to.record(num_bytes=0, num_objects=0)
    return False


def pg_state(to: Changes) -> bool:
    to.record(state=to.rng.choice(_STATES))
    return to.rng.random() < 0.5


def pg_is_unreported(to: Changes) -> bool:
    to.record(state="unknown", reported_epoch=0, num_bytes=0)
    return False


def pg_reports_anew(to: Changes) -> bool:
    for pgid, record in to.cluster.records.items():
        if record.state != "active+clean" or record.reported_epoch < to.cluster.epoch - 30:
            to.cluster.records[pgid] = record._replace(
                state="active+clean", reported_epoch=to.cluster.epoch)
    return False


def pg_recovers(to: Changes) -> bool:
    for pgid in to.cluster.records:
        if to.rng.random() < 0.3:
            to.mgr.recovered[pgid] = to.rng.choice((0, to.mgr.recovered.get(pgid, 0) + GIB))
    return False


def omap_is_scrubbed(to: Changes) -> bool:
    to.record(omap_bytes=to.rng.choice((0, to.rng.randrange(GIB))))
    return False


def up_changes(to: Changes) -> bool:
    pgid, osd = to.pgid(), to.osd()
    up = to.cluster.up[pgid]
    if osd not in up:
        place = to.rng.randrange(len(up)) if up else 0
        to.cluster.up[pgid] = up[:place] + [osd] + up[place + 1:]
        if to.rng.random() < 0.6:
            to.cluster.acting[pgid] = up
    return True


def shard_without_osd(to: Changes) -> bool:
    pgid = to.pgid()
    up = to.cluster.up[pgid]
    to.cluster.up[pgid] = up[:-1] if pgid[0] != "2" else [NONE] + up[1:]
    return True


def acting_ends(to: Changes) -> bool:
    for pgid in sorted(to.cluster.acting)[:2]:
        del to.cluster.acting[pgid]
        to.cluster.records[pgid] = to.cluster.records[pgid]._replace(
            state="active+clean", reported_epoch=to.cluster.epoch + 1)
    return True


def acting_begins(to: Changes) -> bool:
    pgid = to.pgid()
    to.cluster.acting[pgid] = to.rng.sample(HDDS, 3)
    to.cluster.records[pgid] = to.cluster.records[pgid]._replace(
        state="active+remapped+backfill_wait", reported_epoch=to.cluster.epoch + 1)
    return True


def acting_begins_before_the_report(to: Changes) -> bool:
    """Of a PG that has a report without `clean`, so that the mgr is asked for its acting set."""
    pgid = to.pgid()
    to.cluster.acting[pgid] = to.rng.sample(HDDS, 3)
    return True


def omap_moves(to: Changes) -> bool:
    """A PG with much omap is upmapped, arrives, and its OSDs report their omap."""
    cluster, pgid = to.cluster, to.pgid()
    up, osd = cluster.up[pgid], to.osd()
    if up and osd not in up:
        cluster.records[pgid] = cluster.records[pgid]._replace(
            omap_bytes=to.rng.randrange(1, 3 * GIB), state="active+clean",
            reported_epoch=cluster.epoch + 1, num_objects=9)
        for each in up:
            cluster.omap_reported[each] = 6 * GIB
        cluster.up[pgid] = [osd] + up[1:]
        cluster.acting.pop(pgid, None)
    return True


def small_osds_fill(to: Changes) -> bool:
    """OSDs on which omap cannot be told pass nearfull, or fall below it."""
    osd = to.osd()
    to.mgr.settings = to.mgr.settings._replace(min_omap_osd_size=300.0)
    to.cluster.extra["nearfull_ratio"] = 0.5
    to.cluster.used[osd] = int(to.cluster.sizes[osd] * to.rng.choice((0.2, 0.7)))
    return True


def items_set(to: Changes) -> bool:
    pgid, target = to.pgid(), to.osd()
    up = to.cluster.up[pgid]
    if up and target not in up and up[0] != NONE:
        to.cluster.items[pgid] = [(up[0], target)]
        to.cluster.up[pgid] = [target] + up[1:]
    return True


def items_removed(to: Changes) -> bool:
    for pgid in sorted(to.cluster.items)[:1]:
        del to.cluster.items[pgid]
    return True


def pinned(to: Changes) -> bool:
    pgid = to.pgid()
    name, entry = to.rng.choice((
        ("pg_upmap", {"pgid": pgid, "osds": list(to.cluster.up[pgid])}),
        ("pg_upmap_primaries", {"pgid": pgid, "primary_osd": 1})))
    to.cluster.extra[name] = to.rng.choice(([], [entry]))
    return True


def pool_created(to: Changes) -> bool:
    number = max(to.cluster.pools) + 1
    to.cluster.pool(number, size=2, rule=to.rng.choice((0, 2)))
    for ps in range(to.rng.randrange(1, 9)):
        to.cluster.pg(f"{number}.{ps:x}", to.rng.sample(HDDS, 2),
                      num_bytes=to.rng.randrange(GIB), objects=to.rng.randrange(90))
    return True


def pool_deleted(to: Changes) -> bool:
    cluster, number = to.cluster, max(to.cluster.pools)
    if number > 4:
        del cluster.pools[number]
        for part in (cluster.up, cluster.records, cluster.acting, cluster.items):
            entries: Dict[str, Any] = part
            for pgid in [p for p in entries if p.startswith(f"{number}.")]:
                del entries[pgid]
    return True


def pg_num(to: Changes) -> bool:
    cluster, number = to.cluster, to.pool()
    cluster.osd_map()   # fills in what it tells of each pool
    count = int(cluster.pools[number]["pg_num"])
    cluster.pg(f"{number}.{count:x}", to.rng.sample(HDDS, cluster.pools[number]["size"]),
               num_bytes=GIB, objects=9)
    for key in ("pg_num", "pg_num_target", "pg_num_pending", "pg_placement_num",
                "pg_placement_num_target"):
        cluster.pools[number][key] = count + 1
    return True


def pg_num_is_to_change(to: Changes) -> bool:
    pool = to.cluster.pools[to.pool()]
    to.cluster.osd_map()
    pool["pg_num_target"] = pool["pg_num"] + to.rng.choice((0, 1))
    return True


def pool_size(to: Changes) -> bool:
    to.cluster.pools[to.rng.choice((1, 3))]["size"] = to.rng.choice((2, 3))
    return True


def pool_rule(to: Changes) -> bool:
    to.cluster.pools[1]["crush_rule"] = to.rng.choice((0, 2, 77))
    return True


def pool_name(to: Changes) -> bool:
    to.cluster.pools[to.pool()]["pool_name"] = f"p{to.rng.randrange(9)}"
    return True


def pool_statistics(to: Changes) -> bool:
    to.allocate(to.pool())
    return False


def objects_are_written(to: Changes) -> bool:
    to.mgr.objects_written[to.pool()] = to.rng.choice((0, 1, 50, 4000))
    return False


def osd_used(to: Changes) -> bool:
    osd = to.osd()
    to.cluster.used[osd] = to.rng.randrange(to.cluster.sizes[osd])
    return False


def all_osds_used(to: Changes) -> bool:
    for osd in to.cluster.used:
        to.cluster.used[osd] = max(0, to.cluster.used[osd] + to.rng.randrange(-MIB, MIB))
    return False


def osd_size(to: Changes) -> bool:
    to.cluster.osd(to.osd(), size=to.rng.choice((100, 200, 400)) * GIB)
    return False


def osd_weight(to: Changes) -> bool:
    osd = to.osd()
    weight = to.rng.choice((0.0, 0.5, 1.0))
    to.cluster.osd(osd, weight=weight)
    to.cluster.osds[osd]["in"] = int(weight > 0.0)
    return True


def osd_up_or_down(to: Changes) -> bool:
    osd = to.osd()
    up = to.rng.random() < 0.6
    to.cluster.osd(osd, up=int(up), state=["exists", "up"] if up else ["exists"],
                   up_from=to.cluster.epoch + 1 if up else 0)
    return True


def osd_without_statistics(to: Changes) -> bool:
    to.cluster.without_statistics = to.rng.choice(([], [to.osd()], [to.osd(), to.osd()]))
    return False


def osd_stops_reporting(to: Changes) -> bool:
    to.mgr.silent_osds = to.rng.choice(([], [to.osd()]))
    return False


def osd_omap(to: Changes) -> bool:
    to.cluster.omap_reported[to.osd()] = to.rng.randrange(4 * GIB)
    return False


def osd_class(to: Changes) -> bool:
    device = to.rng.choice(to.cluster.crush["devices"])
    device["class"] = to.rng.choice(("hdd", "ssd", "nvme"))
    return crush_version(to)


def crush_weight(to: Changes) -> bool:
    item = to.rng.choice([item for bucket in to.cluster.crush["buckets"]
                          for item in bucket["items"] if item["id"] >= 0])
    item["weight"] = to.rng.choice((0, 0x10000, 0x20000))
    return crush_version(to)


def crush_version(to: Changes) -> bool:
    to.cluster.extra["crush_version"] = to.cluster.extra.get("crush_version", 5) + 1
    return True


def flags(to: Changes) -> bool:
    to.cluster.extra["flags"] = to.rng.choice(_FLAGS)
    return True


def full_ratios(to: Changes) -> bool:
    to.cluster.extra["nearfull_ratio"] = to.rng.choice((0.1, 0.5, 0.85))
    return True


def release(to: Changes) -> bool:
    to.cluster.extra["require_osd_release"] = to.rng.choice(("pacific", "reef"))
    return True


def misplaced(to: Changes) -> bool:
    to.cluster.pg_status = to.rng.choice(({}, {
        "misplaced_objects": to.rng.randrange(90), "misplaced_total": 90_000,
        "pgs_by_pool_state": [{"pool_id": 1, "pg_state_counts": [
            {"state_name": "active+undersized+degraded", "count": to.rng.randrange(4)}]}]}))
    return False


def measured_sizes(to: Changes) -> bool:
    to.cluster.measured = to.rng.choice(({}, {to.pool(): float(to.rng.randrange(9000))}))
    return False


def options(to: Changes) -> bool:
    to.mgr.settings = to.mgr.settings._replace(
        respect_weights=to.rng.random() < 0.7, min_omap_osd_size=to.rng.choice((0.0, 50.0, 300.0)))
    return False


def shards_take_otherwise(to: Changes) -> bool:
    take_otherwise(to.cluster, to.rng)
    return False


def an_hour_passes(to: Changes) -> bool:
    to.clock.now += 4000.0
    return False


def clock_is_set_back(to: Changes) -> bool:
    to.clock.now = max(10.0, to.clock.now - 500.0)
    return False


def nothing(to: Changes) -> bool:
    return to.rng.random() < 0.5


#: Name → a change, which returns whether the osdmap is another one.
KINDS: Dict[str, Callable[[Changes], bool]] = {change.__name__: change for change in (
    pg_grows, pg_grows_a_little, pg_is_emptied, pg_state, pg_is_unreported, pg_reports_anew,
    pg_recovers, omap_is_scrubbed, up_changes, shard_without_osd, acting_ends, acting_begins,
    acting_begins_before_the_report, omap_moves, small_osds_fill,
    items_set, items_removed, pinned, pool_created, pool_deleted, pg_num, pg_num_is_to_change,
    pool_size, pool_rule, pool_name, pool_statistics, objects_are_written, osd_used, all_osds_used,
    osd_size, osd_weight, osd_up_or_down, osd_without_statistics, osd_stops_reporting, osd_omap,
    osd_class, crush_weight, flags, full_ratios, release, misplaced, measured_sizes, options,
    shards_take_otherwise, an_hour_passes, clock_is_set_back, nothing)}
