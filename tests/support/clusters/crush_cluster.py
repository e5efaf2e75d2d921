"""Clusters whose raw mappings are what CRUSH gives, for tests of the simulation."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from tests.support.clusters.crush_maps import crush_map, hosts as tree_of_hosts
from tests.support.rules import EC_HOST_RULE, HOST_RULE
from tests.support.units import GIB, TIB

from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.cluster import Cluster
from mgr_stub.cluster.usage import empty_record
from mgr_stub.console.session import Session
from mgr_stub.events import pool_events
from mgr_stub.simulation.simulation import Simulation
from mgr_stub.state.cluster_builder import build_cluster
from mgr_stub.state.state_file import state_of


#: Name, pg_num, size, k (0: replicated), bytes stored.
PoolSpec = Tuple[str, int, int, int, int]

RBD: PoolSpec = ("rbd", 32, 3, 0, 640 * GIB)
EC: PoolSpec = ("ec", 16, 4, 2, 320 * GIB)


def crush_dump(hosts: int, per_host: int) -> Dict[str, Any]:
    """One root, hosts h0, h1, ... of equal OSDs, a firstn and an indep rule over hosts."""
    dump = crush_map(tree_of_hosts(hosts, per_host), {0: HOST_RULE, 1: EC_HOST_RULE})
    firstn, indep = dump["rules"]
    firstn["rule_name"] = "firstn"
    indep.update(rule_name="indep", type=3)
    return {**dump, "tunables": {}}


def crush_state(hosts: int = 6, per_host: int = 2, pools: Sequence[PoolSpec] = (RBD, EC),
                osd_bytes: int = TIB) -> Dict[str, Any]:
    """A state file's content; every PG lies where CRUSH wants it, with its share of the bytes."""
    count = hosts * per_host
    osd_stats = [empty_record(osd, osd_bytes) for osd in range(count)]
    state = {
        "stateversion": 1,
        "timestamp": "2026-01-01T00:00:00",
        "crush_dump": crush_dump(hosts, per_host),
        "osd_dump": {
            "epoch": 1,
            "fsid": "00000000-0000-0000-0000-000000000001",
            "pools": [],
            "crush_version": 1,
            "require_min_compat_client": "luminous",
            "flags": "sortbitwise",
            "osds": [{"osd": osd, "weight": 1.0} for osd in range(count)]},
        "pg_dump": {"pg_map": {"pg_stats": [], "osd_stats": osd_stats}}}
    cluster = build_cluster(state, 18)
    simulation = Simulation(cluster)
    for name, pg_num, size, chunks, stored in pools:
        pool_events.create_pool(simulation, name, pg_num, size, chunks or None)
        simulation.advance(5)
        pool_events.write(simulation, name, stored)
    simulation.advance(5)
    return state_of(cluster)


def recompute_raw(cluster: Cluster) -> Dict[str, Tuple[int, ...]]:
    """CRUSH's answer for every PG with the map as it is."""
    topology = cluster.topology()
    weights = topology.reweights()
    return {pg.pgid: cluster.raw_mapping.compute(topology, *pg.order, weights)
            for pg in cluster.pgs.values()}


def raw_of(cluster: Cluster) -> Dict[str, Any]:
    return {pg.pgid: pg.raw for pg in cluster.pgs.values()}


def used(session: Session) -> Dict[int, int]:
    """Used bytes of every OSD."""
    return {osd: usage.used for osd, usage in session.cluster.usage.items()}


def check_accounts(session: Session) -> None:
    """The OSDs hold exactly the shards that the PGs have on them."""
    cluster = session.cluster
    bytes_on = dict.fromkeys(cluster.usage, 0)
    pgs_on = dict.fromkeys(cluster.usage, 0)
    for pg in cluster.pgs.values():
        for osd in pg.holders():
            bytes_on[osd] += pg.shard.total
        for transfer in pg.transfers.values():
            bytes_on[transfer.target] += transfer.accounted.total
        for (_, osd), shard in pg.strays.items():
            bytes_on[osd] += shard.total
        for osd in cluster.members(pg):
            pgs_on[osd] += 1
    assert used(session) == bytes_on
    assert {osd: usage.dump()["num_pgs"] for osd, usage in cluster.usage.items()} == pgs_on


def states(session: Session) -> Dict[str, int]:
    """How many PGs report each state."""
    found: Dict[str, int] = {}
    for pg in session.cluster.pgs.values():
        state = pg_reports.state_of(session.cluster, pg)
        found[state] = found.get(state, 0) + 1
    return found


def run(session: Session, *lines: str) -> List[str]:
    """Runs command lines that must succeed; their outputs."""
    shown = []
    for line in lines:
        rc, out, err = session.command(line)
        assert rc == 0, (line, rc, err)
        shown.append(out)
    return shown
