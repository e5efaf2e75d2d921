"""What follows from a failure, against the real osdmaptool: the failed OSDs' weights are 0 in the
binary map, and its items are cleaned epoch by epoch as a monitor does it."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any, ContextManager, Counter, Dict, List, Sequence, Set, Tuple

import pytest

from mgr_stub.console.session import Session

from .ceph_tools import ITEM_NONE, PGMapping, map_pgs
from .maps.binary_osdmap import OSD_EXISTS, merge_items
from .maps.cluster import MappedCluster, settled_verdict, with_items
from .maps.gathered_state import write_state
from .planner_seam import open_session, plan

Ups = Dict[str, Tuple[int, ...]]

#: Failures that are tried of each cluster: every tool's run takes a moment.
_MOST = 3


def test_copy_of_the_map_with_failed_osds(cluster: MappedCluster, tally: Counter[str]) -> None:
    """The simulated mgr's map with other reweights maps as osdmaptool does; nothing is cleaned."""
    with _session(cluster) as session:
        for osds in _failures(session):
            osdmap = session.mgr.get_osdmap()
            change = osdmap.new_incremental()
            change.set_osd_reweights(dict.fromkeys(osds, 0.0))
            copy = osdmap.apply_incremental(change)
            found = {pgid: tuple(osds) for pool in copy.get_pools()
                     for pgid, osds in copy.map_pool_pgs_up(pool).items()}
            failed = _without(cluster, osds, are_up=True)
            uncertain = _uncertain(cluster, failed)
            assert _different(found, failed.pgs, uncertain) == {}
            assert session.mgr.get_osdmap().get_epoch() == osdmap.get_epoch()
            tally["failures mapped"] += 1


@pytest.mark.parametrize("is_planned", [False, True])
def test_up_sets_after_a_failure(cluster: MappedCluster, is_planned: bool,
                                 tally: Counter[str]) -> None:
    """What `eval --fail` predicts: CRUSH's new choice, and the items that the monitor keeps; with
    the items that a plan sets, which the mgr's map does not have yet."""
    after, changes = cluster, []
    with _session(cluster) as session:
        if is_planned:
            items = plan(session).items
            changes = session.module.plan_store.get("p").changes
            after = with_items(cluster, merge_items(cluster.items, items))
        for osds in _failures(session):
            failed = _without(after, osds)
            _, verdict = settled_verdict(failed, failed.items)
            _check(session, osds, changes, verdict.pgs, _uncertain(cluster, failed), tally)


def _session(cluster: MappedCluster) -> ContextManager[Session]:
    return open_session(write_state(cluster))


def _failures(session: Session) -> List[Tuple[int, ...]]:
    what_if: Any = importlib.import_module("equilibrium_mgr.what_if.failure")
    domains = what_if.failure_domains(session.module.gateway.snapshot())
    return [tuple(sorted(failures[0].osds)) for failures in domains.values()][:_MOST]


def _without(cluster: MappedCluster, osds: Sequence[int], are_up: bool = False) -> MappedCluster:
    """The cluster with these OSDs out and, unless they `are_up`, down; its items as they were."""
    weights, states = list(cluster.osdmap.weights), list(cluster.osdmap.states)
    for osd in osds:
        weights[osd] = 0
        states[osd] = states[osd] if are_up else OSD_EXISTS
    osdmap = replace(cluster.osdmap, weights=weights, states=states, items=cluster.items)
    path = osdmap.write(cluster.path.with_name("osdmap.failed"))
    return replace(cluster, osdmap=osdmap, path=path, pgs=map_pgs(path))


def _uncertain(cluster: MappedCluster, failed: MappedCluster) -> Set[str]:
    """PGs whose raw mapping cannot be told from their up set: those for which CRUSH chooses an OSD
    twice, and with upmap items those on an OSD that was down before, or with an item to one."""
    found = set()
    for pgid, pg in [*cluster.pgs.items(), *failed.pgs.items()]:
        osds = [osd for osd in pg.raw if osd != ITEM_NONE]
        if len(set(osds)) < len(osds):
            found.add(pgid)
    for pgid, items in failed.items.items():
        targets = {target for _, target in items}
        if cluster.spec.down & targets.union(failed.pgs[pgid].raw):
            found.add(pgid)
    return found


def _check(session: Session, osds: Sequence[int], changes: Sequence[Any],
           expected: Dict[str, PGMapping], uncertain: Set[str], tally: Counter[str]) -> None:
    failure: Any = importlib.import_module("equilibrium_mgr.what_if.failure")
    placement: Any = importlib.import_module("equilibrium_mgr.plan.placement")
    gateway = session.module.gateway
    snapshot = gateway.snapshot()
    placed = placement.placement(snapshot).after(changes)
    by_osd = failure.pgs_by_osd(placed)
    touched = set().union(*[by_osd.get(osd, ()) for osd in (ITEM_NONE, *osds)])
    mapped = gateway.up_sets_without(frozenset(osds), touched)
    after = failure.UpSetsAfter(snapshot, frozenset(osds))
    found: Ups = {pg.pgid: placed.up(pg) for pg in snapshot.pgs.values()}
    found.update((pgid, after.up(snapshot.pgs[pgid], up, placed.items(pgid)))
                 for pgid, up in mapped.items())
    assert _different(found, expected, uncertain) == {}
    tally["PGs predicted after a failure"] += len(found)


def _different(found: Ups, expected: Dict[str, PGMapping], uncertain: Set[str]) -> Dict[str, Any]:
    """PG → what was found and expected."""
    assert found.keys() == expected.keys()
    different = {}
    for pgid in found.keys() - uncertain:
        if found[pgid] != expected[pgid].up:
            different[pgid] = found[pgid], expected[pgid].up
    return different
