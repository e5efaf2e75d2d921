"""What a plan has changed is taken back, while it waits and when it has arrived."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Set

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import (
    answered, equilibrium, equilibrium_json, execute, quick_takeover, ready_plan, shards_in_flight,
    status)

#: By hand: what waits is counted by a look that on a busy machine is older than the PGs' reports.
pytestmark = pytest.mark.long

_SECONDS = 180
#: States of a PG of which something is being copied.
_COPYING = {"backfilling", "recovering"}
#: Of an OSD: nothing is copied while they are set.
_FLAGS = ("nobackfill", "norecover")
Items = Dict[str, List[List[int]]]


def set_flags(cluster: DaemonCluster, command: str) -> None:
    for flag in _FLAGS:
        cluster.mon(f"osd {command}", key=flag)


def over(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """Waits until an execution has ended, whatever moves still; how it ended."""
    def is_over() -> Dict[str, Any]:
        now = status(cluster)
        last: Dict[str, Any] = now["last_execution"] or {}
        return last if last.get("plan") == plan and now["execution"] is None else {}
    return wait_for(f"the end of {plan}", is_over, _SECONDS)


def ended(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """As `over`, and waits until nothing moves."""
    last = over(cluster, plan)
    wait_for("nothing on its way", lambda: not shards_in_flight(status(cluster)), _SECONDS)
    return last


class PgStates:
    """What Ceph itself says of each PG."""

    def __init__(self, cluster: DaemonCluster) -> None:
        self.stats: Dict[str, Dict[str, Any]] = {
            stat["pgid"]: stat
            for stat in cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"]}

    @property
    def acting(self) -> Dict[str, List[int]]:
        """pgid → the OSDs that serve it."""
        return {pgid: stat["acting"] for pgid, stat in self.stats.items()}

    @property
    def states(self) -> Dict[str, str]:
        return {pgid: stat["state"] for pgid, stat in self.stats.items()}

    def waiting(self) -> Set[str]:
        """PGs that have to move and of which nothing has been copied."""
        return {pgid for pgid, stat in self.stats.items() if self._waits(stat)}

    def _waits(self, stat: Dict[str, Any]) -> bool:
        words, counts = set(stat["state"].split("+")), stat["stat_sum"]
        # what is to come by log recovery counts as degraded
        lacking = counts["num_objects_misplaced"] + counts["num_objects_degraded"]
        return ("active" in words and bool(words & {"remapped", "recovery_wait"})
                and not words & _COPYING and lacking >= counts["num_objects"] > 0)


def settled_states(cluster: DaemonCluster) -> PgStates:
    """The states of the PGs once none has changed for some seconds, as while nothing is copied."""
    seen: List[PgStates] = []

    def settled() -> bool:
        seen.append(PgStates(cluster))
        last = [(one.states, one.waiting()) for one in seen[-4:]]
        return len(last) == 4 and all(one == last[-1] for one in last)
    wait_for("PGs that stay as they are", settled, 60, pause=1.5)
    return seen[-1]


@pytest.fixture(scope="module", autouse=True)
def grace(cluster: DaemonCluster) -> Iterator[None]:
    """A dead mgr is soon followed by another."""
    with quick_takeover(cluster):
        yield


@pytest.fixture(scope="module")
def before(cluster: DaemonCluster) -> Items:
    """A clean cluster in which somebody has set pairs by hand; these."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    up = workload.up_sets(cluster)
    hosts = {osd: host["name"] for host in cluster.mon_json("osd tree")["nodes"]
             if host["type"] == "host" for osd in host["children"]}
    for pgid in sorted(up)[:2]:
        used = {hosts[osd] for osd in up[pgid]}
        target = next((osd for osd in sorted(hosts) if osd not in up[pgid]
                       and hosts[osd] not in used - {hosts[up[pgid][0]]}), None)
        if target is not None:
            cluster.mon("osd pg-upmap-items", pgid=pgid, id=[up[pgid][0], target])
    workload.wait_clean(cluster)
    workload.settled_usage(cluster)
    found = workload.upmap_items(cluster)
    assert found
    return found


def span(began: float) -> str:
    """From a moment until now."""
    return f"{int(time.time() - began) + 5}s"


@pytest.fixture(scope="module")
def began(before: Items) -> float:
    return time.time()


def test_cancel_takes_back_what_waits_and_moves_nothing(
        cluster: DaemonCluster, before: Items, began: float,
        figure: Callable[[str], None]) -> None:
    """Of each PG Ceph's own state tells whether it waited and what has become of it."""
    acting = PgStates(cluster).acting
    ready_plan(cluster, "p")
    assert equilibrium(cluster, "execute", plan="p").rc == 0
    wait_for("a batch", lambda: workload.upmap_items(cluster) != before, 30, pause=0.05)
    set_flags(cluster, "set")
    try:
        waited = settled_states(cluster).waiting()
        sent = workload.upmap_items(cluster)
        changed = {pgid for pgid in {*sent, *before} if sent.get(pgid) != before.get(pgid)}
        answer = answered(cluster, "cancel")
        assert answer["shards"] == 0 == answer["bytes"] and answer["not_restored"] == []
        last = over(cluster, answer["plan"]) if answer["plan"] else {"dropped": []}
        now = workload.upmap_items(cluster)
        taken = {pgid for pgid in changed if now.get(pgid) == before.get(pgid)}
        wait_for("PGs at rest where they were", lambda: not taken & set(
            pgid for pgid, state in PgStates(cluster).states.items() if "remapped" in state), 30)
    finally:
        set_flags(cluster, "unset")
    workload.wait_clean(cluster)
    now_acting = PgStates(cluster).acting
    figure(f"cancel: {len(changed)} PGs were sent, {len(waited & changed)} of them waited by Ceph's"
           f" own states under {'+'.join(_FLAGS)}; the answer says at most {answer['pgs']},"
           f" {len(taken)} were taken back, {len(last['dropped'])} had begun meanwhile")
    assert taken and waited & changed <= taken
    assert len(taken) == answer["pgs"] - len(last["dropped"])
    assert {pgid: set(now_acting[pgid]) for pgid in taken} == {
        pgid: set(acting[pgid]) for pgid in taken}
    assert {pgid: now.get(pgid) for pgid in changed - taken} == {
        pgid: sent.get(pgid) for pgid in changed - taken}
    assert equilibrium_json(cluster, "history")["episodes"][-1]["plan"] == (answer["plan"] or "p")


def test_undo_gives_each_pg_the_pairs_that_it_had(
        cluster: DaemonCluster, before: Items, began: float,
        figure: Callable[[str], None]) -> None:
    ready_plan(cluster, "q")
    assert execute(cluster, "q", _SECONDS)["outcome"] == "completed"
    usage = workload.settled_usage(cluster)
    assert workload.upmap_items(cluster) != before
    shown = answered(cluster, "undo", since=span(began), dry_run=True)
    answer = answered(cluster, "undo", since=span(began))
    assert answer["pgs"] == shown["pgs"] > 0 and answer["not_restored"] == []
    wait_for("its first batch", lambda: status(cluster)["execution"] is None
             or status(cluster)["execution"]["sent_moves"], 60, pause=0.2)
    cluster.kill_mgr()
    cluster.wait_module()
    last = ended(cluster, answer["plan"])
    workload.wait_clean(cluster)
    figure(f"undo of {answer['pgs']} PGs, {answer['shards']} shards, through a kill of the mgr:"
           f" {last['outcome']}; {usage} -> {workload.settled_usage(cluster)}")
    assert last["outcome"] == "completed"
    assert workload.upmap_items(cluster) == before
    again = answered(cluster, "undo", since=span(began), dry_run=True)
    assert again["pgs"] == 0 and again["not_restored"] == []
