"""One random cluster with its plan, and what follows from it: made once, shared by all tests.

Small random clusters with the troubles that real ones have, the same for the same seed.

The bases are those of other tests: rule shapes, filled layouts, single-copy chance. What is added
here is what may befall any of them: oversized PGs, empty pools, foreign upmap items, and the like.
"""
from __future__ import annotations

import random
from functools import cached_property
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple
from unittest import mock

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner import planner
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.snapshot.model import PoolLoad, Snapshot, pool_of
from tests.benchmark.made.shapes import Layout, Osds, PoolPlan, fill
from tests.support.clusters.random_clusters import random_cluster
from tests.support.clusters.rule_shapes import RULE_SHAPES, TROUBLES, make
from tests.support.clusters.unit_cluster import NONE, Cluster
from tests.support.plan_legality import ended_plan
from tests.support.replay import Replay, follow_up
from tests.support.rules import (
    EC_HDD_HOSTS, EC_PAIRS_IN_2_RACKS, HDD_HOSTS, HDD_OSDS, SSD_FIRST, SSD_HOSTS)
from tests.support.units import GIB


#: How full the fullest OSD is made, a ratio; the last ones are near full, or too full.
_TOPS = (0.5, 0.65, 0.75, 0.82, 0.87, 0.87, 0.89, 0.92, 0.96)


def plan_cluster(seed: int) -> Cluster:
    """6 to 40 OSDs, 30 to 400 PGs; no two seeds are alike."""
    rng = random.Random(f"plan cluster {seed}")
    kind = rng.random()
    if kind < 0.5:
        cluster = make(rng.choice(sorted(RULE_SHAPES)), rng.choice(TROUBLES), seed)
    elif kind < 0.9:
        cluster = fill(rng.choice(_LAYOUTS)(rng), rng)
    else:
        cluster = random_cluster(seed, hybrid=rng.random() < 0.5)
    for mishap in rng.sample(_MISHAPS, rng.randint(0, 4)):
        mishap(cluster, rng)
    if seed % 4 == 3:
        _weighed_down(cluster, random.Random(f"weights {seed}"))
    if seed % 8 == 5:
        _db_devices(cluster, random.Random(f"devices {seed}"))
    _leave_down_osds(cluster)
    if rng.random() < 0.35:
        _make_tight(cluster, rng)
    else:
        _make_as_full(cluster, rng.choice(_TOPS))
    return cluster


# -- layouts to fill ---------------------------------------------------------------------------

def _hosts(rng: random.Random, osds: Osds, sizes: Sequence[float], most: int = 8,
           prefix: str = "h", least: int = 4) -> Dict[str, List[int]]:
    tree: Dict[str, List[int]] = {}
    for number in range(rng.randint(least, most)):
        tree[f"host {prefix}{number}"] = osds.host(_chosen(rng, sizes, rng.randint(2, 5)))
    return tree


def _chosen(rng: random.Random, sizes: Sequence[float], count: int) -> List[float]:
    return [rng.choice(sizes) for _ in range(count)]


def _pools(rng: random.Random, most: int = 3, name: str = "data",
           **fields: Any) -> List[PoolPlan]:
    pools: List[PoolPlan] = []
    for number in range(rng.randint(1, most)):
        share, pg_num = rng.lognormvariate(0.0, 0.7), rng.choice((16, 24, 32, 64))
        pools.append(PoolPlan(f"{name}{number}", share, pg_num, **fields))
    return pools


def _replicated(rng: random.Random) -> Layout:
    """Over hosts or over OSDs, with a pool of metadata."""
    osds = Osds()
    tree = _hosts(rng, osds, rng.choice(((8,), (4, 8), (4, 8, 16))))
    rule = rng.choice((HDD_HOSTS, HDD_HOSTS, HDD_OSDS))
    pools = _pools(rng, size=rng.choice((2, 3)))
    pools.append(PoolPlan("meta", 0.002, 8, omap_bytes=64 << 20))
    return osds.layout(tree, {0: rule}, pools)


def _erasure(rng: random.Random) -> Layout:
    """4+2 over six hosts or a few more."""
    osds = Osds()
    tree = _hosts(rng, osds, rng.choice(((8,), (8, 16))), most=7, least=6)
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS},
                       _pools(rng, 2, "ec", size=6, k=4, rule=1) + _pools(rng, 1))


def _two_classes(rng: random.Random) -> Layout:
    """A pool that is on both, and one or two of each class alone."""
    osds = Osds()
    tree: Dict[str, List[int]] = {}
    for h in range(6):
        hdds = osds.host(_chosen(rng, (8, 12), 3))
        tree[f"host h{h}"] = hdds + osds.host(_chosen(rng, (4, 8), 2), "ssd")
    mixed = PoolPlan("mixed", 0.4, 48, rule=2)
    fast = PoolPlan("fast", 0.1, 16, size=2, rule=1)
    return osds.layout(tree, {0: HDD_HOSTS, 1: SSD_HOSTS, 2: SSD_FIRST},
                       [mixed, fast, *_pools(rng, 2)])


def _racks(rng: random.Random) -> Layout:
    """Two shards in each of two racks of three or four; a replicated pool beside it."""
    osds = Osds()
    tree = {f"rack r{r}": _hosts(rng, osds, (8, 12), 3, f"r{r}h", 2)
            for r in range(rng.choice((3, 4)))}
    ec = PoolPlan("ec", 0.8, 64, size=4, rule=1, k=2)
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_PAIRS_IN_2_RACKS},
                       [ec, PoolPlan("rbd", 0.2, 32)])


def _grown(rng: random.Random) -> Layout:
    """A new host that upmap items still keep empty."""
    osds = Osds()
    tree = _hosts(rng, osds, (8, 12), most=6)
    tree["host new"] = osds.host([16, 16, 16])
    return osds.layout(tree, {0: HDD_HOSTS}, _pools(rng), ["host new"])


def _tenants(rng: random.Random) -> Layout:
    """Many pools of few PGs."""
    osds = Osds()
    tree = _hosts(rng, osds, (4, 8))
    pools = [PoolPlan(f"tenant{n}", rng.lognormvariate(0.0, 0.8), 8)
             for n in range(rng.randint(6, 16))]
    return osds.layout(tree, {0: HDD_HOSTS}, pools)


_LAYOUTS: Tuple[Callable[[random.Random], Layout], ...] = (
    _replicated, _replicated, _erasure, _two_classes, _racks, _grown, _tenants)


# -- what may befall a cluster -----------------------------------------------------------------

def _some(cluster: Cluster, rng: random.Random, most: int) -> List[str]:
    """PGs, as many if there are."""
    return rng.sample(sorted(cluster.up), min(most, len(cluster.up)))


def _others(cluster: Cluster, pgid: str) -> List[int]:
    """OSDs that a PG has not."""
    return [osd for osd in cluster.osds if osd not in cluster.up[pgid]]


def _add_used(cluster: Cluster, osd: int, more: int) -> None:
    """Where it is not what the shards occupy."""
    if osd in cluster.used:
        cluster.used[osd] += more


def _oversized_pg(cluster: Cluster, rng: random.Random) -> None:
    """A PG eight times as large: its objects all hash alike."""
    pgid = rng.choice(sorted(cluster.up))
    before = cluster.shard_bytes(pgid)
    record = cluster.records[pgid]
    cluster.records[pgid] = record._replace(num_bytes=8 * record.num_bytes)
    for osd in cluster.acting.get(pgid, cluster.up[pgid]):
        _add_used(cluster, osd, cluster.shard_bytes(pgid) - before)


def _empty_pools(cluster: Cluster, rng: random.Random) -> None:
    """Pools that hold nothing, placed like one that holds something."""
    model = rng.choice(sorted(cluster.pools))
    ups = [list(up) for pgid, up in sorted(cluster.up.items())
           if pgid.startswith(f"{model}.") and pgid not in cluster.items]
    fields = {key: value for key, value in cluster.pools[model].items() if "num" not in key}
    for pool in range(50, 50 + rng.randint(1, 3)):
        cluster.pools[pool] = dict(fields, pool=pool, pool_name=f"empty{pool}")
        for ps in range(min(8, len(ups))):
            cluster.pg(f"{pool}.{ps:x}", rng.choice(ups), num_bytes=0)


def _useless_items(cluster: Cluster, rng: random.Random) -> None:
    """Items that change nothing: of OSDs that CRUSH did not choose, and of a PG that is gone."""
    for pgid in _some(cluster, rng, 6):
        others = _others(cluster, pgid)
        if pgid not in cluster.items and len(others) > 1:
            cluster.items[pgid] = [(others[0], rng.choice(others[1:]))]
    cluster.items["99.0"] = [(0, 1)]


def _foreign_items(cluster: Cluster, rng: random.Random) -> None:
    """Somebody else has set items of several pairs; what CRUSH chose before may be anything."""
    for pgid in _some(cluster, rng, 8):
        up, others = [osd for osd in cluster.up[pgid] if osd != NONE], _others(cluster, pgid)
        count = rng.randint(1, 2)
        if pgid not in cluster.items and len(others) >= count <= len(up):
            cluster.items[pgid] = list(zip(rng.sample(others, count), rng.sample(up, count)))


def _in_flight(cluster: Cluster, rng: random.Random) -> None:
    """PGs that are on their way for another reason than upmap items."""
    for pgid in _some(cluster, rng, 8):
        acting, others = list(cluster.up[pgid]), _others(cluster, pgid)
        if pgid in cluster.acting or not others:
            continue
        left, comes = rng.choice(others), rng.randrange(len(acting))
        size = cluster.shard_bytes(pgid)
        if acting[comes] in cluster.used and left in cluster.used:
            _add_used(cluster, acting[comes], -size)
            _add_used(cluster, left, size)
        acting[comes] = left
        cluster.acting[pgid] = acting
        cluster.records[pgid] = cluster.records[pgid]._replace(
            uncopied_ratio=rng.random(), state="active+remapped+backfilling")


def _osd_down(cluster: Cluster, rng: random.Random) -> None:
    cluster.osd(rng.choice(sorted(cluster.osds)), up=0, state=["exists"])


def _reweighted(cluster: Cluster, rng: random.Random) -> None:
    for osd in rng.sample(sorted(cluster.osds), 2):
        if cluster.osds[osd]["weight"] == 1.0:
            cluster.osd(osd, weight=rng.choice((0.3, 0.8)))


def _weighed_down(cluster: Cluster, rng: random.Random) -> None:
    """A drain, or a weight-in, by CRUSH weights: of single OSDs, or of all of a host."""
    some = set(rng.sample(sorted(cluster.osds), 2))
    if rng.random() < 0.3:
        hosts = [bucket for bucket in cluster.crush["buckets"] if bucket["type_name"] == "host"]
        some = {item["id"] for item in rng.choice(hosts)["items"] if item["id"] >= 0}
    share = rng.choice((0.02, 0.2, 0.5, 0.9))
    for bucket in cluster.crush["buckets"]:
        for item in bucket["items"]:
            if item["id"] in some:
                item["weight"] = max(1, int(share * item["weight"]))


def _db_devices(cluster: Cluster, rng: random.Random) -> None:
    """SIZE and used bytes hold a DB device, which half of the OSDs have."""
    part = rng.choice((0.05, 0.2))
    for osd in sorted(cluster.osds)[::2]:
        size, used = cluster.sizes[osd], cluster.used_bytes(osd)
        more = int(part * size)
        cluster.osd(osd, size=size + more, used=used + more)


def _foreign_bytes(cluster: Cluster, rng: random.Random) -> None:
    """Something that belongs to no PG: a log, a leak."""
    for osd in rng.sample(sorted(cluster.osds), 2):
        more = int(rng.choice((0.01, 0.1)) * cluster.sizes[osd])
        cluster.osd(osd, used=cluster.used_bytes(osd) + more)


def _compressed(cluster: Cluster, rng: random.Random) -> None:
    """A pool that occupies less than it stores, or pads it."""
    pool = rng.choice(sorted(cluster.pools))
    stored = sum(cluster.shard_bytes(pgid) * len(up) for pgid, up in cluster.up.items()
                 if pgid.startswith(f"{pool}."))
    cluster.store_stats[pool] = {"allocated": int(rng.choice((0.6, 1.1)) * stored)}


def _pinned(cluster: Cluster, rng: random.Random) -> None:
    """A full pg-upmap and a primary set by hand."""
    first, second = rng.sample(sorted(cluster.up), 2)
    cluster.extra.setdefault("pg_upmap", []).append({"pgid": first, "osds": cluster.up[first]})
    cluster.extra["pg_upmap_primaries"] = [
        {"pgid": second, "primary_osd": cluster.up[second][-1]}]


_MISHAPS: Tuple[Callable[[Cluster, random.Random], None], ...] = (
    _oversized_pg, _empty_pools, _useless_items, _foreign_items, _in_flight, _osd_down,
    _reweighted, _foreign_bytes, _compressed, _pinned)


def _leave_down_osds(cluster: Cluster) -> None:
    """PGs go without what is down: nobody is in its place, or the up set is shorter."""
    down = {osd for osd, entry in cluster.osds.items() if not entry["up"]}
    for pgid, up in cluster.up.items():
        if down.intersection(up):
            holes = [NONE if osd in down else osd for osd in up]
            if cluster.pools[pool_of(pgid)]["type"] == 1:
                holes = [osd for osd in up if osd not in down]
            cluster.up[pgid] = holes
            cluster.records[pgid] = cluster.records[pgid]._replace(
                state="active+undersized+degraded")


def _make_as_full(cluster: Cluster, top: float) -> None:
    """Devices of other sizes, in proportion, so that the fullest OSD is at `top`."""
    used = {osd: cluster.used_bytes(osd) for osd in cluster.osds}
    highest = max(used[osd] / cluster.sizes[osd] for osd in cluster.osds)
    for osd in cluster.osds:
        cluster.osd(osd, size=max(GIB, int(cluster.sizes[osd] * highest / top)))


def _make_tight(cluster: Cluster, rng: random.Random) -> None:
    """Devices of such sizes that little space is free: fill limits are in the way."""
    mean = rng.choice((0.6, 0.7, 0.78))
    for osd in cluster.osds:
        level = min(0.97, max(0.3, rng.gauss(mean, 0.1)))
        cluster.osd(osd, size=max(cluster.sizes[osd] // 50, int(cluster.used_bytes(osd) / level)))


_AIMS = ("space",) * 5 + ("even",) * 2 + ("least-motion",) * 3


class Effort(NamedTuple):
    """A plan and how many candidates were looked at for it, all searches together."""

    plan: Plan
    examined: int


class Planned:
    """The cluster of a seed. All parts are made when they are first asked for."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.options = PlanOptions(
            aim=random.Random(seed).choice(_AIMS), levels_load=seed % 3 == 1)

    def rng(self, what: str) -> random.Random:
        """Chance for one property, whichever others are tested."""
        return random.Random(f"{what} {self.seed}")

    @cached_property
    def cluster(self) -> Cluster:
        """Do not change it: `another_cluster` is for that."""
        return plan_cluster(self.seed)

    def another_cluster(self) -> Cluster:
        return plan_cluster(self.seed)

    @cached_property
    def snapshot(self) -> Snapshot:
        snapshot = self.cluster.snapshot()
        if self.options.levels_load:
            rng = self.rng("load")
            return snapshot._replace(loads={
                pool: PoolLoad(rng.random() ** 4, rng.random() ** 8) for pool in snapshot.pools})
        return snapshot

    @cached_property
    def effort(self) -> Effort:
        return planned_with_effort(self.snapshot, self.options)

    @property
    def plan(self) -> Plan:
        return self.effort.plan

    def start(self) -> Replay:
        return Replay(self.snapshot)

    def end(self) -> Replay:
        return Replay(self.snapshot, self.plan.moves)

    def planned(self, **options: Any) -> Plan:
        """Another plan, with other options."""
        return ended_plan(self.snapshot, self.options._replace(**options))

    @cached_property
    def later(self) -> Snapshot:
        """The cluster once the plan is carried out."""
        return follow_up(self.snapshot, self.plan.changes)

    @cached_property
    def again(self) -> Plan:
        """What is planned then."""
        return ended_plan(self.later, self.options)


def planned_with_effort(snapshot: Snapshot, options: PlanOptions) -> Effort:
    placements: List[PlacementState] = []

    class Noted(PlacementState):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            placements.append(self)
    with mock.patch.object(planner, "PlacementState", Noted):
        plan = ended_plan(snapshot, options)
    return Effort(plan, sum(placement.candidates_examined for placement in placements))
