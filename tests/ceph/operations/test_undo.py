"""What a plan has changed is taken back, while it waits and when it has arrived; upmap items
without effect are removed."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import (
    equilibrium, equilibrium_json, execute, ready_plan, shards_in_flight, status)

#: By hand: what waits is counted by a look that on a busy machine is older than the PGs' reports.
pytestmark = pytest.mark.long

_SECONDS = 180
#: Of an OSD: nothing is copied while they are set.
_FLAGS = ("nobackfill", "norecover")
Items = Dict[str, List[List[int]]]


def set_flags(cluster: DaemonCluster, command: str) -> None:
    for flag in _FLAGS:
        cluster.mon(f"osd {command}", key=flag)


def answered(cluster: DaemonCluster, command: str, **arguments: Any) -> Dict[str, Any]:
    """The answer, asked for again while the cluster is being looked at."""
    def asked() -> Dict[str, Any]:
        answer = equilibrium(cluster, command, format="json", **arguments)
        assert answer.rc in (0, -11), answer
        found: Dict[str, Any] = answer.json() if answer.rc == 0 else {}
        return found
    return wait_for(f"an answer of {command}", asked, 30, pause=0.5)


def ended(cluster: DaemonCluster, plan: str) -> Dict[str, Any]:
    """Waits until an execution has ended and nothing moves; how it ended."""
    def over() -> Dict[str, Any]:
        now = status(cluster)
        last: Dict[str, Any] = now["last_execution"] or {}
        return last if (last.get("plan") == plan and now["execution"] is None
                        and not shards_in_flight(now)) else {}
    return wait_for(f"the end of {plan}", over, _SECONDS)


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
    acting = {row["pgid"]: row["acting"] for row in workload._pg_stats(cluster)}
    ready_plan(cluster, "p")
    assert equilibrium(cluster, "execute", plan="p").rc == 0
    wait_for("a batch", lambda: workload.upmap_items(cluster) != before, 30, pause=0.05)
    set_flags(cluster, "set")
    sent = workload.upmap_items(cluster)
    wait_for("what is misplaced", lambda: shards_in_flight(status(cluster)), 30, pause=0.5)
    answer = answered(cluster, "cancel")
    assert answer["stopped_plan"] == "p" and answer["shards"] == 0 == answer["bytes"]
    started = time.monotonic()
    if answer["pgs"]:
        wait_for("items taken back", lambda: len(
            [pgid for pgid in sent if workload.upmap_items(cluster).get(pgid)
             != before.get(pgid)]) <= len(sent) - answer["pgs"], 60, pause=0.2)
    seconds = time.monotonic() - started
    misplaced = cluster.mon_json("status")["pgmap"].get("misplaced_ratio", 0.0)
    set_flags(cluster, "unset")
    workload.wait_clean(cluster)
    now = {row["pgid"]: row["acting"] for row in workload._pg_stats(cluster)}
    moved = {pgid for pgid in now if set(now[pgid]) != set(acting[pgid])}
    changed = {pgid for pgid in sent if sent[pgid] != before.get(pgid)}
    figure(f"cancel: {len(changed)} PGs were sent, {answer['pgs']} waited and were taken back under"
           f" {'+'.join(_FLAGS)} within {seconds:.1f} s, {len(moved)} had begun; misplaced"
           f" {misplaced:.4f} right after")
    assert answer["pgs"] > 0
    assert len(moved) <= len(changed) - answer["pgs"]


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


def test_what_others_have_changed_since_is_listed(cluster: DaemonCluster, before: Items) -> None:
    ready_plan(cluster, "r", max_moves=3)
    execute(cluster, "r", _SECONDS)
    after = workload.upmap_items(cluster)
    theirs = sorted(pgid for pgid in after if after[pgid] != before.get(pgid))[0]
    cluster.mon("osd rm-pg-upmap-items", pgid=theirs)
    if theirs in before:   # then that is what it had
        cluster.mon("osd pg-upmap-items", pgid=theirs,
                    id=[osd for pair in before[theirs] for osd in pair])
    source = workload.up_sets(cluster)[theirs]
    free = [osd for osd in range(len(cluster.osds)) if osd not in source]
    cluster.mon("osd pg-upmap-items", pgid=theirs, id=[source[0], free[-1]])
    workload.wait_clean(cluster)
    equilibrium_json(cluster, "status")
    answer = answered(cluster, "undo", plan="r")
    if workload.upmap_items(cluster).get(theirs) not in (before.get(theirs), None):
        assert {row["pgid"] for row in answer["not_restored"]} <= {theirs}
    if answer["plan"]:
        ended(cluster, answer["plan"])
    workload.wait_clean(cluster)
    now = workload.upmap_items(cluster)
    assert {pgid: pairs for pgid, pairs in now.items() if pgid != theirs} == {
        pgid: pairs for pgid, pairs in before.items() if pgid != theirs}
    assert cluster.module_failures() == ""


def test_pairs_without_effect_are_removed_and_nothing_moves(
        cluster: DaemonCluster, before: Items, figure: Callable[[str], None]) -> None:
    """The monitor has kept them, as it keeps all whose source CRUSH chooses."""
    up = workload.up_sets(cluster)
    free = sorted(pgid for pgid in up if pgid not in workload.upmap_items(cluster))[:6]
    needless: Items = {}
    for number, pgid in enumerate(free):
        first, second = up[pgid][:2]
        # a target that CRUSH chooses anyway, once alone, once behind another such pair
        needless[pgid] = [[first, second]] if number % 2 else [[first, second], [second, first]]
        cluster.mon("osd pg-upmap-items", pgid=pgid,
                    id=[osd for pair in needless[pgid] for osd in pair])
    kept = {pgid: pairs for pgid, pairs in workload.upmap_items(cluster).items() if pgid in free}
    assert kept == needless, "the monitor itself drops such pairs"
    assert workload.up_sets(cluster) == up
    set_flags(cluster, "set")
    try:
        ready_plan(cluster, "look")   # has the osdmap dumped: no up set tells of these pairs

        def known() -> Dict[str, Any]:
            answer = answered(cluster, "upmap ls")
            return answer if len(answer["needless"]) >= len(free) else {}
        listed = wait_for("the pairs listed", known, 30, pause=1.0)
        assert {row["pgid"] for row in listed["needless"]} == set(free)
        answer = answered(cluster, "upmap cleanup")
        wait_for("pairs removed", lambda: not set(free) & set(workload.upmap_items(cluster)), 60)
        assert answer["removed_pairs"] == sum(map(len, needless.values()))
        assert workload.up_sets(cluster) == up
    finally:
        set_flags(cluster, "unset")
    workload.wait_clean(cluster)
    figure(f"upmap cleanup: {answer['removed_pairs']} pairs of {len(free)} PGs removed under"
           f" {'+'.join(_FLAGS)}; no up set changed")
    assert status(cluster)["last_execution"]["outcome"] == "completed"
