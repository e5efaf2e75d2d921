"""What `freeze` pins after a change of the map: kept by the monitor, mapped to where the data is,
and as much as can be.

Changes of a cluster's CRUSH map that remap PGs.
"""
from __future__ import annotations

import importlib
import json
import pytest
import random
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any, Callable, Counter, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ..ceph_tools import ITEM_NONE, dump_osdmap
from ..maps.binary_osdmap import merge_items
from ..maps.cluster import MappedCluster, Verdict, build, judge_plan, settled_verdict, with_items
from ..maps.cluster_spec import ClusterSpec, make_spec
from ..maps.gathered_state import gathered_state
from ..maps.random_moves import pairs_for, settled, whole, with_prior_items
from ..maps.shapes import SHAPES
from ..maps.topology import Bucket
from ..planner_seam import open_session


Change = Callable[[ClusterSpec, random.Random], None]


def add_hosts(spec: ClusterSpec, rng: random.Random) -> None:
    for number in range(2):
        host = rng.choice(_parents_of_hosts(spec)).add(f"new{number}", "host")
        for _ in range(3):
            spec.topology.osd(host, 2.0, "hdd")


def change_device_classes(spec: ClusterSpec, rng: random.Random) -> None:
    classes = spec.topology.classes
    names = [name for name in classes if name] + ["other"]
    for osd in rng.sample(range(len(classes)), len(classes) // 6):
        if classes[osd]:
            classes[osd] = rng.choice(names)


def remove_a_host(spec: ClusterSpec, rng: random.Random) -> None:
    """From the tree: its OSDs are up and in."""
    _take_out(spec, rng.choice(_hosts(spec)))


def move_a_host(spec: ClusterSpec, rng: random.Random) -> None:
    host, parents = rng.choice(_hosts(spec)), _parents_of_hosts(spec)
    _take_out(spec, host)
    rng.choice(parents).children.append(host)


def move_osds(spec: ClusterSpec, rng: random.Random) -> None:
    hosts = _hosts(spec)
    for host in rng.sample(hosts, min(3, len(hosts))):
        if len(host.children) > 1:
            rng.choice(hosts).children.append(host.children.pop())


def exchange_rules(spec: ClusterSpec, rng: random.Random) -> None:
    """Each pool gets any rule of its type."""
    rejected = {pool.rule for pool in spec.pools if pool.rejected}
    irregular = {pool.rule for pool in spec.pools if pool.irregular}
    for number, pool in enumerate(spec.pools):
        rule = rng.choice([rule.name for rule in spec.topology.rules
                           if rule.erasure == bool(pool.k)])
        spec.pools[number] = replace(pool, rule=rule, rejected=rule in rejected,
                                     irregular=rule in irregular)


def change_weights(spec: ClusterSpec, rng: random.Random) -> None:
    weights = spec.topology.weights
    for osd in rng.sample(range(len(weights)), len(weights) // 4):
        if weights[osd]:
            spec.capacity.setdefault(osd, weights[osd])
            weights[osd] *= rng.choice((0.5, 2.0, 0.0))


def change_reweights(spec: ClusterSpec, rng: random.Random) -> None:
    count = len(spec.topology.weights)
    for osd in rng.sample(range(count), count // 4):
        spec.reweights[osd] = rng.choice((0.3, 0.7, 0.9))


CHANGES: Dict[str, Change] = {change.__name__: change for change in (
    add_hosts, change_device_classes, remove_a_host, move_a_host, move_osds, exchange_rules,
    change_weights, change_reweights)}


def _hosts(spec: ClusterSpec) -> List[Bucket]:
    return [bucket for bucket in spec.topology.buckets()
            if bucket.kind == "host" and bucket.children]


def _parents_of_hosts(spec: ClusterSpec) -> List[Bucket]:
    return [bucket for bucket in spec.topology.buckets()
            if "host" in [getattr(child, "kind", "osd") for child in bucket.children]]


def _take_out(spec: ClusterSpec, host: Bucket) -> None:
    for bucket in spec.topology.buckets():
        bucket.children = [child for child in bucket.children if child is not host]


Osds = Tuple[int, ...]

#: Every shape with one of the changes, every change with some shapes.
CASES = list(zip(SHAPES, cycle(CHANGES)))


class Remapped(NamedTuple):
    """A cluster after a change of its map; `acting` of each PG is where it was before."""

    cluster: MappedCluster
    moving: List[str]   # pgids


@pytest.fixture(params=CASES, ids=["-".join(case) for case in CASES])
def remapped(request: Any, tmp_path: Path, ceph_tools_present: None) -> Remapped:
    shape, change = request.param
    spec = make_spec(shape, SHAPES[shape], "prior", 0)
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    before = with_prior_items(build(spec, tmp_path / "before"))
    CHANGES[change](spec, random.Random(f"{change} of {spec.name}"))
    changed = build(spec, tmp_path / "after")
    after = with_items(changed, settled_verdict(changed, before.items)[0])
    was = {pgid: pg.up for pgid, pg in before.pgs.items() if whole(before, pgid)}
    pgs = {pgid: replace(pg, acting=was.get(pgid, pg.up)) for pgid, pg in after.pgs.items()}
    cluster = replace(after, pgs=pgs)
    movable = [pgid for pgid in pgs if whole(cluster, pgid)]
    return Remapped(cluster, [pgid for pgid in movable if _moves(cluster, pgid, pgs[pgid].up)])


def test_pins_are_kept_and_nothing_that_could_stay_moves(remapped: Remapped,
                                                         tally: Counter[str]) -> None:
    cluster = remapped.cluster
    changes = _freeze(cluster)
    verdict = judge_plan(cluster, {pgid: change.items for pgid, change in changes.items()})
    assert not set(changes) & set(verdict.cleaned)
    assert set(changes) <= set(remapped.moving)
    for pgid, pg in verdict.pgs.items():
        wanted = changes[pgid].up_after if pgid in changes else cluster.pgs[pgid].up
        assert pg.up == wanted, (pgid, cluster.pgs[pgid], changes.get(pgid))
    for pgid, change in changes.items():
        assert len(change.items) <= cluster.pool_spec(pgid).size
        _check_pin(cluster, pgid, change.up_after)
    for pgid in remapped.moving:
        _check_rest(cluster, pgid, verdict.pgs[pgid].up)
    assert _freeze(_after(cluster, changes, verdict)) == {}
    tally.update({"PGs remapped by a change": len(remapped.moving), "PGs pinned": len(changes)})


def _moves(cluster: MappedCluster, pgid: str, up: Sequence[int]) -> List[int]:
    """OSDs that serve a PG where this up set does not want it; with positions where they count."""
    acting = cluster.pgs[pgid].acting
    if cluster.pool_spec(pgid).k:
        return [a for a, b in zip(acting, up) if a != b]
    return [osd for osd in acting if osd not in up]


def _freeze(cluster: MappedCluster) -> Dict[str, Any]:
    """pgid → change of the plan that the package makes."""
    state = gathered_state(cluster)
    for record in state["pg_dump"]["pg_map"]["pg_stats"]:
        if _moves(cluster, record["pgid"], record["up"]) and ITEM_NONE not in record["up"]:
            record["state"] = "active+remapped+backfill_wait"
    state["osd_dump"]["pg_temp"] = [{"pgid": pgid, "osds": list(pg.acting)}
                                    for pgid, pg in cluster.pgs.items() if pg.acting != pg.up]
    path = cluster.path.with_name("remapped.json")
    path.write_text(json.dumps(state))
    with open_session(path) as session:
        # the package can be imported only once a session has put mgr_module in its place
        plans: Any = importlib.import_module("equilibrium_mgr.freeze.freeze")
        found = plans.freeze(session.module.gateway.snapshot())
    return {change.pgid: change for change in found.plan.changes}


def _check_pin(cluster: MappedCluster, pgid: str, up: Osds) -> None:
    """Legal, fewer shards move than before, and at most one of an exchange goes elsewhere."""
    pg, pool = cluster.pgs[pgid], cluster.pool_spec(pgid)
    fault = cluster.fault(pgid, up)
    assert fault is None, (pgid, fault)
    assert len(_moves(cluster, pgid, up)) < len(_moves(cluster, pgid, pg.up)), pgid
    if pool.k:
        elsewhere = sum(osd not in places for osd, *places in zip(up, pg.acting, pg.up))
        assert elsewhere <= 1, pgid
    else:
        assert set(up) <= {*pg.acting, *pg.up}, pgid


def _check_rest(cluster: MappedCluster, pgid: str, up: Osds) -> None:
    """No other shard could stay as well, by pairs without an exchange. Left out are pools of which
    the monitor keeps no item, or whose rule CRUSH cannot follow."""
    pg, pool = cluster.pgs[pgid], cluster.pool_spec(pgid)
    if pool.rejected or pool.irregular or len(set(pg.raw)) < pool.size:
        return
    for wanted in _one_more(cluster, pgid, up):
        hindered = cluster.fault(pgid, wanted) or pairs_for(pg.raw, wanted) is None
        assert hindered, (pgid, pg, up, wanted)


def _one_more(cluster: MappedCluster, pgid: str, up: Osds) -> Iterator[Osds]:
    """The up sets in which one more OSD that serves the PG keeps its shard."""
    pg, erasure = cluster.pgs[pgid], cluster.pool_spec(pgid).k > 0
    for position, osd in enumerate(pg.acting):
        if osd in up or not cluster.usable(osd):
            continue
        places = [position] if erasure else [i for i, one in enumerate(up) if one not in pg.acting]
        for place in places:
            wanted = up[:place] + (osd,) + up[place + 1:]
            yield wanted if erasure else settled(cluster, pgid, wanted)


def _after(cluster: MappedCluster, changes: Dict[str, Any], verdict: Verdict) -> MappedCluster:
    """The cluster once the monitor has the pins, everything still where it was."""
    items = merge_items(cluster.items, {pgid: change.items for pgid, change in changes.items()})
    path = replace(cluster.osdmap, items=items).write(cluster.path.with_name("osdmap.frozen"))
    pgs = {pgid: replace(pg, acting=cluster.pgs[pgid].acting)
           for pgid, pg in verdict.pgs.items()}
    return replace(cluster, path=path, osd_dump=dump_osdmap(path), pgs=pgs, items=items)
