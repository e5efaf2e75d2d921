"""What is wrong with the cluster, in one sentence, and the one thing to do first: each clause."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.record import check_record
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.execution import ExecutionProgress
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.explain.outage import find_outage


def cluster() -> Cluster:
    """Eight OSDs on four hosts; pool1 on osd.0, 2, 4 and pool2 on osd.2, 4, 6."""
    made = Cluster(hosts(4, 2), classes=dict.fromkeys(range(8), "hdd")).pool(1).pool(2)
    return made.pg("1.0", "0 2 4").pg("2.0", "2 4 6")


def down(*osds: int, flags: str = "", **extra: Any) -> Cluster:
    made = cluster()
    for osd in osds:
        made.osd(osd, up=0, state=["exists", *extra.get("states", ())])
    made.extra.update({key: value for key, value in extra.items() if key != "states"})
    made.extra["flags"] = flags
    return made


def full(*osds: int) -> Cluster:
    made = cluster()
    for number, osd in enumerate(osds):
        made.osd(osd, used=(96 + number) * GIB)
    return made


def third_pool(*rules: str, pg_num: int = 1) -> Cluster:
    """pool1 and two pools more; the last has the last rule, rules 1 and up."""
    made = Cluster({**hosts(4, 2), "root empty": {}, "root small": {"host h9": [8]}},
                   dict(enumerate((HOST_RULE, *rules))))
    made.pool(1).pool(2, size=1, rule=1, pg_num=pg_num).pool(3, rule=len(rules))
    return made.pg("1.0", "0 2 4")


def full_of_data() -> Cluster:
    """96 of 100 GiB on osd.0."""
    return single_copies([48, 48], [10], [10]).osd(0, used=96 * GIB)


def flagged(made: Cluster, flags: str) -> Cluster:
    made.extra["flags"] = flags
    return made


def silent(*osds: int, **counts: int) -> Cluster:
    """A PG is not reported, nor are these OSDs."""
    made = states(unknown=1, **counts)
    made.without_statistics = list(osds)
    return made


def racks() -> Cluster:
    """Three racks, as the rule of the pool wants them, and a host beside them."""
    tree = {"root default": {
        **{f"rack r{rack}": {f"host h{rack}": [rack]} for rack in range(3)}, "host h9": [3]}}
    rule = "take default; chooseleaf firstn 0 rack; emit"
    return Cluster(tree, {0: rule}).pool(1).pg("1.0", "0 1 2")


def states(made: Any = None, pool_id: int = 0, **counts: Any) -> Cluster:
    """Of PGs of the last pool of `made`, of pool1 of a cluster of two pools without it."""
    if made is None:
        made, pool_id = cluster(), 1
    pool_id = pool_id or max(made.pools)
    made.pg_status = {"pgs_by_pool_state": [{"pool_id": pool_id, "pg_state_counts": [
        {"state_name": name, "count": count} for name, count in counts.items()]}]}
    return made


def without_rack() -> Cluster:
    """One of three racks is lost."""
    made = racks().osd(2, up=0, state=["exists"])
    made.up["1.0"] = [0, 1]
    return made


def stretched(made: Cluster) -> Cluster:
    """A cluster of two sites that has lost one."""
    made.extra["stretch_mode"] = {"stretch_mode_enabled": True, "degraded_stretch_mode": 1}
    return made


_SMALL = "take small; chooseleaf firstn 0 host; emit"
_EMPTY = "take empty; chooseleaf firstn 0 host; emit"
#: What is said of each stands in `outages.json`, null where nothing is wrong.
CASES: Dict[str, Cluster] = {
    "an OSD is down": down(3),
    "a host is down": down(2, 3),
    "noout": down(3, flags="noout"),
    "noup": down(3, flags="noup"),
    "nobackfill and norecover": down(3, flags="nobackfill,norecover"),
    "noout of the host": down(3, crush_node_flags={"h1": ["noout"], "h2": ["noup"]}),
    "noout of the root": down(3, crush_node_flags={"default": ["noout"]}),
    "noup of the class": down(3, device_class_flags={"hdd": ["noup"], "ssd": ["noout"]}),
    "noup of the OSD": down(3, states=("noup",)),
    "pause": down(flags="pauserd,pausewr"),
    "pause and an OSD that is down": down(3, flags="pauserd,pausewr"),
    "an OSD is full": full(6),
    "two OSDs are full": full(6, 4),
    "PGs are inactive": states(**{"peering": 3, "active+clean": 9}),
    "one PG is inactive": states(peering=1),
    "PGs peer": states(peering=3),
    "a PG merges": states(premerge=1),
    "PGs are not reported yet": states(unknown=3),
    "a PG is never reported": states(unknown=1),
    "a PG without an OSD": cluster().pg("1.1", "0 2"),
    "PGs without an OSD": cluster().pg("1.1", "0 2").pg("1.2", "0 2"),
    "a rack of three is down": without_rack(),
    "a host of four is down": down(2, 3).pg("1.1", "0 4"),
    "a site of a stretch cluster is down and out": stretched(down(2, 3).mark_out(2).mark_out(3)),
    "a site of a stretch cluster recovers": stretched(cluster()),
    "an OSD does not report": silent(1),
    "an OSD never reports": silent(1),
    "half of the OSDs never report": silent(0, 1, 2, 3),
    "most OSDs never report": silent(0, 1, 2, 3, 4),
    "PGs are inactive, and backfill is held up":
        flagged(states(**{"peering": 1, "active+undersized+degraded": 2}),
                "nobackfill,norecover,noout,noup"),
    "PGs are inactive, and none is degraded": flagged(states(peering=1), "norecover"),
    "PGs are inactive, and an OSD that is out is down":
        states(down(3, flags="noout,noup").mark_out(3), pool_id=1, peering=1),
    "a host beside the racks": flagged(states(racks(), peering=1), ""),
    "PGs peer beside an OSD that is down": states(peering=1).osd(3, up=0, state=["exists"]),
    "another OSD goes down, and PGs peer": states(down(3, 4), peering=1),
    "PGs peer, and one has no OSD for a shard": states(cluster().pg("2.1", "0 2"), peering=1),
    "a rule takes nothing":
        third_pool(_SMALL, _EMPTY, pg_num=9),
    "a rule takes nothing, and most PGs have another":
        states(third_pool(HOST_RULE, _EMPTY, pg_num=9), unknown=1),
    "a rule takes nothing, and most PGs are of an erasure-coded pool":
        third_pool("take default; chooseleaf indep 0 host; emit", _EMPTY).pool(
            2, size=3, k=2, rule=1, pg_num=9),
    "a rule takes an OSD that is out": third_pool(_SMALL, _SMALL).mark_out(8),
    "more than the highest ratio": full(6).osd(6, used=98 * GIB),
    "a full OSD, and a pool of an unknown rule":
        third_pool(_SMALL, "take small; chooseleaf firstn 2 host; emit").osd(6, used=96 * GIB),
    "balancing would help": full_of_data(),
    "old clients hold up a drain": full_of_data(),
    "recovery waits for the full OSD":
        full_of_data().pg("1.3", [0], 0, state="active+recovery_toofull"),
    "more comes to the full OSD":
        full_of_data().pg("1.3", [0], 5 * GIB, acting="1", state="active+recovery_toofull"),
    "some PGs peer, others are not reported": states(peering=1, unknown=1),
    "some PGs peer, others are never reported": silent(1, peering=1),
    "all is well": cluster(),
    "noout, and all are up": down(flags="noout,noup,nobackfill"),
    "an OSD that is out is down": down(3).mark_out(3),
}
#: Seconds after which the view is made again, where that is not 40.
AFTER = {
    "PGs peer": 20.0,
    "a PG is never reported": 130.0,
    "an OSD never reports": 130.0,
    "half of the OSDs never report": 130.0,
    "most OSDs never report": 130.0,
    "PGs peer beside an OSD that is down": 20.0,
    "a rule takes nothing": 5.0,
    "a rule takes nothing, and most PGs have another": 5.0,
    "a rule takes nothing, and most PGs are of an erasure-coded pool": 5.0,
    "a rule takes an OSD that is out": 5.0,
    "some PGs peer, others are never reported": 130.0,
}
#: Where there is another one than that of a module that is off.
STATUS = {
    "old clients hold up a drain": BalancerStatus(
        reason_code="old_clients", progress=ExecutionProgress("", {}))}
#: As the first view had it, where that is another cluster.
FIRST = {"another OSD goes down, and PGs peer": down(3)}


def view_of(name: str) -> ClusterView:
    """The second view of two; the first was at 1000."""
    cluster = CASES[name]
    before = FIRST.get(name, cluster).snapshot()
    first = make_view(before, None, PendingMoves(), 0.05, False)
    snapshot = cluster.snapshot()._replace(taken_at=before.taken_at + AFTER.get(name, 40.0))
    return make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False,
                     before=first)


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_and_what_comes_first(name: str, request: pytest.FixtureRequest) -> None:
    found = find_outage(STATUS.get(name, BalancerStatus()), view_of(name))
    check_record(Path(__file__).with_name("outages.json"), name, found, request.config)
