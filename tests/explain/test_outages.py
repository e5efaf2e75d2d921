"""What is wrong with the cluster, in one sentence, and the one thing to do first: each clause."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts, single_copies
from tests.support.rules import HOST_RULE
from tests.support.units import GIB

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.execution import ExecutionProgress
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.explain.outage import find_outage

_SINCE = ", seen since 1970-01-01 00:16 UTC"
_NOOUT, _NOUP = "keeps Ceph from rebuilding their data elsewhere", "keeps OSDs down"


def cluster() -> Cluster:
    """Eight OSDs on four hosts; pool1 on osd.0, 2, 4 and pool2 on osd.2, 4, 6."""
    made = Cluster(hosts(4, 2), classes=dict.fromkeys(range(8), "hdd")).pool(1).pool(2)
    return made.pg("1.0", [0, 2, 4]).pg("2.0", [2, 4, 6])


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
    return made.pool(1).pool(2, size=1, rule=1, pg_num=pg_num).pool(3, rule=len(rules)).pg(
        "1.0", [0, 2, 4])


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
    return Cluster(tree, {0: rule}).pool(1).pg("1.0", [0, 1, 2])


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


class Case(NamedTuple):
    cluster: Cluster
    sentence: str
    action: str
    flags: Sequence[str] = ()
    after: float = 40.0   # seconds after which the view is made again
    inactive: int = 0
    status: BalancerStatus = BalancerStatus()
    first: Optional[Cluster] = None   # as the first view had it


_EMPTY = "take empty; chooseleaf firstn 0 host; emit"
_STOPPED = f"writes to pool pool1 are stopped: osd.0 (96.00%) is above full_ratio 95.00%{_SINCE}"
_NOWHERE = "rule rule2 of pool pool3 takes empty, where no OSD is"
_START_3 = "start osd.3 of h1; 'ceph osd tree down' lists what is down"
_ASK = "ask what the PGs that 'ceph health detail' names wait for by 'ceph pg PGID query'"
_START_H1 = "start all of host h1; 'ceph osd tree down' lists what is down"

CASES: Dict[str, Case] = {
    "an OSD is down": Case(
        down(3), f"1 OSD is down: osd.3 of h1{_SINCE}",
        _START_3),
    "a host is down": Case(
        down(2, 3), f"2 OSDs are down: all of host h1{_SINCE}",
        _START_H1),
    "noout": Case(
        down(3, flags="noout"), f"1 OSD is down: osd.3 of h1{_SINCE}; flag noout {_NOOUT}",
        _START_3, ("noout",)),
    "noup": Case(
        down(3, flags="noup"), f"1 OSD is down: osd.3 of h1{_SINCE}; flag noup {_NOUP}",
        "'ceph osd unset noup'", ("noup",)),
    "nobackfill and norecover": Case(
        down(3, flags="nobackfill,norecover"), f"1 OSD is down: osd.3 of h1{_SINCE}; flag norecover"
        " holds up recovery; flag nobackfill holds up backfill",
        _START_3, ("norecover", "nobackfill")),
    "noout of the host": Case(
        down(3, crush_node_flags={"h1": ["noout"], "h2": ["noup"]}),
        f"1 OSD is down: osd.3 of h1{_SINCE}; flag noout of h1 {_NOOUT}",
        _START_3, ("noout",)),
    "noout of the root": Case(
        down(3, crush_node_flags={"default": ["noout"]}),
        f"1 OSD is down: osd.3 of h1{_SINCE}; flag noout of default {_NOOUT}",
        _START_3, ("noout",)),
    "noup of the class": Case(
        down(3, device_class_flags={"hdd": ["noup"], "ssd": ["noout"]}),
        f"1 OSD is down: osd.3 of h1{_SINCE}; flag noup of hdd {_NOUP}",
        "'ceph osd unset-group noup hdd'", ("noup",)),
    "noup of the OSD": Case(
        down(3, states=("noup",)),
        f"1 OSD is down: osd.3 of h1{_SINCE}; flag noup of osd.3 {_NOUP}",
        "'ceph osd unset-group noup osd.3'", ("noup",)),
    "pause": Case(
        down(flags="pauserd,pausewr"), "flag pause stops the reads and writes of all clients",
        "'ceph osd unset pause'", ("pause",)),
    "pause and an OSD that is down": Case(
        down(3, flags="pauserd,pausewr"), "flag pause stops the reads and writes of all clients;"
        f" 1 OSD is down: osd.3 of h1{_SINCE}",
        _START_3, ("pause",)),
    "an OSD is full": Case(
        full(6), "writes to pools pool1, pool2 are stopped: osd.6 (96.00%) is above full_ratio"
        f" 95.00%{_SINCE}", "'ceph osd set-full-ratio 0.97' lets clients write again, until"
        " data is deleted or OSDs are added"),
    "two OSDs are full": Case(
        full(6, 4), "writes to pools pool1, pool2 are stopped: osd.4 (97.00%), osd.6 (96.00%) are"
        f" above full_ratio 95.00%{_SINCE}",
        "'ceph osd set-full-ratio 0.98' lets clients write again, until data is deleted or OSDs are"
        " added"),
    "PGs are inactive": Case(
        states(**{"peering": 3, "active+clean": 9}),
        f"3 PGs of pool pool1 cannot be read or written{_SINCE}",
        _ASK,
        inactive=3),
    "one PG is inactive": Case(
        states(peering=1), f"1 PG of pool pool1 cannot be read or written{_SINCE}",
        _ASK,
        inactive=1),
    "PGs peer": Case(states(peering=3), "", "", after=20.0),
    "a PG merges": Case(states(premerge=1), "", ""),
    "PGs are not reported yet": Case(
        states(unknown=3), "3 PGs of pool pool1 have not been reported yet since this mgr became"
        f" active{_SINCE}", "nothing; it ends by itself when their OSDs have reported"),
    "a PG is never reported": Case(
        states(unknown=1),
        f"1 PG of pool pool1 as far as is known cannot be read or written{_SINCE}",
        _ASK,
        after=130.0, inactive=1),
    "a PG without an OSD": Case(
        cluster().pg("1.1", [0, 2]), f"1 PG has no OSD for a shard{_SINCE}",
        "add OSDs where the CRUSH rule lacks them: it finds too few for each PG"),
    "PGs without an OSD": Case(
        cluster().pg("1.1", [0, 2]).pg("1.2", [0, 2]), f"2 PGs have no OSD for a shard{_SINCE}",
        "add OSDs where the CRUSH rule lacks them: it finds too few for each PG"),
    "a rack of three is down": Case(
        without_rack(), f"1 OSD is down: osd.2 of h2{_SINCE}; 1 PG has no OSD for a shard until"
        " that is back or another rack is added",
        "start osd.2 of h2; 'ceph osd tree down' lists what is down"),
    "a host of four is down": Case(
        down(2, 3).pg("1.1", [0, 4]), f"2 OSDs are down: all of host h1{_SINCE}",
        _START_H1),
    "a site of a stretch cluster is down and out": Case(
        stretched(down(2, 3).mark_out(2).mark_out(3)),
        f"2 OSDs are down: all of host h1{_SINCE}; the cluster is in degraded stretch mode{_SINCE}",
        _START_H1),
    "a site of a stretch cluster recovers": Case(
        stretched(cluster()), f"the cluster is in degraded stretch mode{_SINCE}",
        "nothing; it ends by itself when the lost site is back"),
    "an OSD does not report": Case(
        silent(1), "1 PG of pool pool1 has not been reported yet since this mgr became active:"
        f" osd.1 does not report{_SINCE}",
        "nothing; it ends by itself when their OSDs have reported"),
    "an OSD never reports": Case(
        silent(1), "1 PG of pool pool1 as far as is known cannot be read or written: osd.1 does not"
        f" report{_SINCE}", "restart osd.1", after=130.0, inactive=1),
    "half of the OSDs never report": Case(
        silent(0, 1, 2, 3), "1 PG of pool pool1 as far as is known cannot be read or written:"
        f" osd.0, osd.1, osd.2 and 1 more do not report{_SINCE}", "restart osd.0", after=130.0,
        inactive=1),
    "most OSDs never report": Case(
        silent(0, 1, 2, 3, 4), "1 PG of pool pool1 as far as is known cannot be read or written:"
        f" osd.0, osd.1, osd.2 and 2 more do not report{_SINCE}", "'ceph mgr fail'", after=130.0,
        inactive=1),
    "PGs are inactive, and backfill is held up": Case(
        flagged(states(**{"peering": 1, "active+undersized+degraded": 2}),
                "nobackfill,norecover,noout,noup"),
        f"1 PG of pool pool1 cannot be read or written{_SINCE}; flag norecover holds up recovery;"
        " flag nobackfill holds up backfill",
        "'ceph osd unset nobackfill'", ("norecover", "nobackfill"), inactive=1),
    "PGs are inactive, and none is degraded": Case(
        flagged(states(peering=1), "norecover"), f"1 PG of pool pool1 cannot be read or written"
        f"{_SINCE}; flag norecover holds up recovery",
        _ASK,
        ("norecover",), inactive=1),
    "PGs are inactive, and an OSD that is out is down": Case(
        states(down(3, flags="noout,noup").mark_out(3), pool_id=1, peering=1),
        f"1 OSD is down: osd.3 of h1{_SINCE}; 1 PG of pool pool1 cannot be read or written{_SINCE};"
        f" flag noup {_NOUP}", "'ceph osd unset noup'", ("noup",), inactive=1),
    "a host beside the racks": Case(
        flagged(states(racks(), peering=1), ""),
        f"1 PG of pool pool1 cannot be read or written{_SINCE}",
        "move host h9 from default to the rack that it stands in ('ceph osd crush move')",
        inactive=1),
    "PGs peer beside an OSD that is down": Case(
        states(peering=1).osd(3, up=0, state=["exists"]), f"1 OSD is down: osd.3 of h1{_SINCE};"
        f" 1 PG of pool pool1 cannot be read or written{_SINCE}",
        _START_3, after=20.0, inactive=1),
    "another OSD goes down, and PGs peer": Case(
        states(down(3, 4), peering=1), f"2 OSDs are down: osd.3 of h1, osd.4 of h2{_SINCE}; 1 PG of"
        " pool pool2 cannot be read or written, seen since 1970-01-01 00:17 UTC",
        "start osd.3 of h1, osd.4 of h2; 'ceph osd tree down' lists what is down",
        inactive=1, first=down(3)),
    "PGs peer, and one has no OSD for a shard": Case(
        states(cluster().pg("2.1", [0, 2]), peering=1),
        f"1 PG of pool pool2 cannot be read or written{_SINCE}",
        "add OSDs where the CRUSH rule lacks them: it finds too few for each PG", inactive=1),
    "a rule takes nothing": Case(
        third_pool("take small; chooseleaf firstn 0 host; emit", _EMPTY, pg_num=9), _NOWHERE,
        "'ceph osd pool set pool3 crush_rule rule0' gives it a rule with OSDs; delete the pool if"
        " nobody needs it", after=5.0),
    "a rule takes nothing, and most PGs have another": Case(
        states(third_pool(HOST_RULE, _EMPTY, pg_num=9), unknown=1),
        f"1 PG of pool pool3 as far as is known cannot be read or written{_SINCE}; {_NOWHERE}",
        "'ceph osd pool set pool3 crush_rule rule1' gives it a rule with OSDs; delete the pool if"
        " nobody needs it", after=5.0, inactive=1),
    "more than the highest ratio": Case(
        full(6).osd(6, used=98 * GIB), "writes to pools pool1, pool2 are stopped: osd.6 (98.00%) is"
        f" above full_ratio 95.00%{_SINCE}",
        "delete data, or add OSDs: osd.6 can take nothing more"),
    "a full OSD, and a pool of an unknown rule": Case(
        third_pool("take small; chooseleaf firstn 0 host; emit",
                   "take small; chooseleaf firstn 2 host; emit").osd(6, used=96 * GIB),
        f"writes to pools pool1, pool3 are stopped: osd.6 (96.00%) is above full_ratio 95.00%"
        f"{_SINCE}", "'ceph osd set-full-ratio 0.97' lets clients write again, until data is"
        " deleted or OSDs are added"),
    "balancing would help": Case(
        full_of_data(), _STOPPED, "'ceph equilibrium on' moves data off osd.0 first"),
    "old clients hold up a drain": Case(
        full_of_data(), _STOPPED, "'ceph osd set-require-min-compat-client luminous'",
        status=BalancerStatus(reason_code="old_clients", progress=ExecutionProgress("", {}))),
    "recovery waits for the full OSD": Case(
        full_of_data().pg("1.3", [0], 0, state="active+recovery_toofull"), _STOPPED,
        "'ceph osd set-full-ratio 0.97' lets clients write again, until data is deleted or OSDs are"
        " added"),
    "more comes to the full OSD": Case(
        full_of_data().pg("1.3", [0], 5 * GIB, acting=[1], state="active+recovery_toofull"),
        _STOPPED, "delete data, or add OSDs: osd.0 can take nothing more"),
    "some PGs peer, others are not reported": Case(
        states(peering=1, unknown=1), f"1 PG of pool pool1 cannot be read or written{_SINCE}; 1 PG"
        f" of pool pool1 has not been reported yet since this mgr became active{_SINCE}",
        _ASK,
        inactive=1),
    "some PGs peer, others are never reported": Case(
        silent(1, peering=1), f"1 PG of pool pool1 cannot be read or written{_SINCE}; 1 PG of pool"
        f" pool1 as far as is known cannot be read or written: osd.1 does not report{_SINCE}",
        _ASK,
        after=130.0, inactive=2),
    "all is well": Case(cluster(), "", ""),
    "noout, and all are up": Case(down(flags="noout,noup,nobackfill"), "", ""),
    "an OSD that is out is down": Case(down(3).mark_out(3), "", ""),
}


def view_of(case: Case) -> ClusterView:
    """The second view of two; the first was at 1000."""
    first = make_view((case.first or case.cluster).snapshot(), None, PendingMoves(), 0.05, False)
    snapshot = case.cluster.snapshot()
    snapshot = snapshot._replace(taken_at=first.snapshot.taken_at + case.after)
    return make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False,
                     before=first)


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_and_what_comes_first(name: str) -> None:
    case = CASES[name]
    found = find_outage(case.status, view_of(case))
    if not case.sentence:
        assert found is None
        return
    assert found is not None
    assert (found["sentence"], found["action"]) == (case.sentence, case.action)
    assert found["flags"] == list(case.flags)
    assert found["inactive_pgs"] == case.inactive
    osds = [osd for osd, entry in sorted(case.cluster.osds.items()) if not entry["up"]]
    assert (found["down_osds"], found["full_osds"], found["since_at"]) == (
        osds, sorted(case.cluster.used),
        1000.0 if _SINCE in case.sentence else 1000.0 + case.after)
