"""What a plan has changed is taken back, while it waits and when it has arrived."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Set

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import (
    answered, equilibrium_json, execute, execution_over, quick_takeover, ready_plan, run,
    shards_in_flight, status, stop_and_reset)

#: By hand: what waits is counted by a look that on a busy machine is older than the PGs' reports.
pytestmark = pytest.mark.long

_SECONDS = 180
#: States of a PG of which something is being copied.
_COPYING = {"backfilling", "recovering"}
_TO_MOVE = {"remapped", "recovery_wait"}
#: Of an OSD: nothing is copied while they are set.
_FLAGS = ("nobackfill", "norecover")
Items = Dict[str, List[List[int]]]


def set_flags(cluster: DaemonCluster, command: str) -> None:
    for flag in _FLAGS:
        cluster.mon(f"osd {command}", key=flag)


def over(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """Waits until an execution has ended, whatever moves still; how it ended."""
    return wait_for(f"the end of {plan}", lambda: execution_over(status(cluster), plan), _SECONDS)


def ended(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """As `over`, and waits until nothing moves."""
    last = over(cluster, plan)
    wait_for("nothing on its way", lambda: not shards_in_flight(status(cluster)), _SECONDS)
    return last


class PgStates:
    """What Ceph itself says of each PG."""

    def __init__(self, cluster: DaemonCluster) -> None:
        #: pgid → the OSDs that serve it.
        self.acting: Dict[str, Set[int]] = {}
        self.states: Dict[str, str] = {}
        #: PGs that have to move and of which nothing has been copied.
        self.waiting: Set[str] = set()
        for stat in cluster.pg_stats():
            pgid = stat["pgid"]
            self.acting[pgid] = set(stat["acting"])
            self.states[pgid] = stat["state"]
            if _waits(stat):
                self.waiting.add(pgid)

    def remapped(self) -> Set[str]:
        return {pgid for pgid, state in self.states.items() if "remapped" in state}


def _waits(stat: Dict[str, Any]) -> bool:
    words, counts = set(stat["state"].split("+")), stat["stat_sum"]
    if "active" not in words or words.isdisjoint(_TO_MOVE) or words & _COPYING:
        return False
    # what is to come by log recovery counts as degraded
    lacking = counts["num_objects_misplaced"] + counts["num_objects_degraded"]
    return bool(lacking >= counts["num_objects"] > 0)


def settled_states(cluster: DaemonCluster) -> PgStates:
    """The states of the PGs once none has changed for some seconds, as while nothing is copied."""
    seen: List[PgStates] = []

    def settled() -> bool:
        now = PgStates(cluster)
        if seen and (now.states, now.waiting) != (seen[-1].states, seen[-1].waiting):
            seen.clear()
        seen.append(now)
        return len(seen) == 4
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
    stop_and_reset(cluster)
    workload.clear_upmaps(cluster)
    hosts = cluster.osd_hosts
    for pgid, up in sorted(workload.up_sets(cluster).items())[:2]:
        source, *others = up
        used = {hosts[osd] for osd in others}
        for target, host in enumerate(hosts):
            if target != source and host not in used:
                cluster.mon("osd pg-upmap-items", pgid=pgid, id=[source, target])
                break
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
    run(cluster, "execute", plan="p")
    wait_for("a batch", lambda: workload.upmap_items(cluster) != before, 30, pause=0.05)
    set_flags(cluster, "set")
    try:
        waiting = settled_states(cluster).waiting
        sent = workload.upmap_items(cluster)
        changed = {pgid for pgid in {*sent, *before} if sent.get(pgid) != before.get(pgid)}
        answer = answered(cluster, "cancel")
        assert answer["shards"] == 0 == answer["bytes"]
        assert answer["not_restored"] == []
        dropped = over(cluster, answer["plan"])["dropped"] if answer["plan"] else []
        now = workload.upmap_items(cluster)
        taken = {pgid for pgid in changed if now.get(pgid) == before.get(pgid)}
        wait_for("PGs at rest where they were",
                 lambda: taken.isdisjoint(PgStates(cluster).remapped()), 30)
    finally:
        set_flags(cluster, "unset")
    workload.wait_clean(cluster)
    now_acting = PgStates(cluster).acting
    waited = waiting & changed
    sent_pgs = f"{len(changed)} PGs were sent, {len(waited)} of them waited by Ceph's own states"
    figure(f"cancel: {sent_pgs} under {_FLAGS}; the answer says at most {answer['pgs']},"
           f" {len(taken)} were taken back, {len(dropped)} had begun meanwhile")
    assert taken
    assert waited <= taken
    assert len(taken) == answer["pgs"] - len(dropped)
    for pgid in taken:
        assert now_acting[pgid] == acting[pgid], pgid
    for pgid in changed - taken:
        assert now.get(pgid) == sent.get(pgid), pgid
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
    assert answer["pgs"] == shown["pgs"] > 0
    assert answer["not_restored"] == []

    def has_begun() -> bool:
        execution = status(cluster)["execution"]
        return execution is None or bool(execution["sent_moves"])
    wait_for("its first batch", has_begun, 60, pause=0.2)
    cluster.kill_mgr()
    cluster.wait_module()
    last = ended(cluster, answer["plan"])
    workload.wait_clean(cluster)
    figure(f"undo of {answer['pgs']} PGs, {answer['shards']} shards, through a kill of the mgr:"
           f" {last['outcome']}; {usage} -> {workload.settled_usage(cluster)}")
    assert last["outcome"] == "completed"
    assert workload.upmap_items(cluster) == before
    again = answered(cluster, "undo", since=span(began), dry_run=True)
    assert again["pgs"] == 0
    assert again["not_restored"] == []
