"""Primaries are evened out on real daemons: the score that Ceph itself tells falls, no data moves,
PGs with such primaries can be moved, and undo gives back what was set before."""

from __future__ import annotations

import errno
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import (
    assert_refused, equilibrium, equilibrium_json, execute, ready_plan, shards_in_flight, status)

pytestmark = [pytest.mark.long, pytest.mark.releases(18, 20)]

POOL = "rep"
_SECONDS = 120
#: Ceph rounds its scores to two digits.
_ROUNDED = 0.006
Primaries = Dict[str, int]


@pytest.fixture(scope="module")
def even(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """A clean cluster without upmaps; the option is on."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    cluster.set_option("read_balance", "true")
    cluster.set_option("pg_cooldown", 0)
    yield cluster
    for pgid in primaries(cluster):
        cluster.mon("osd rm-pg-upmap-primary", pgid=pgid)
    workload.clear_upmaps(cluster)
    cluster.mon("osd set-require-min-compat-client", version="luminous",
                yes_i_really_mean_it=True)
    for name in ("read_balance", "pg_cooldown"):
        cluster.mon("config rm", who="mgr", name=f"mgr/equilibrium/{name}")


def primaries(cluster: DaemonCluster) -> Primaries:
    """pgid → the OSD that is set as its primary."""
    return {entry["pgid"]: entry["primary_osd"]
            for entry in cluster.mon_json("osd dump")["pg_upmap_primaries"]}


def pool_of(cluster: DaemonCluster) -> Dict[str, Any]:
    """The pool's entry in the osdmap."""
    found: Dict[str, Any] = next(pool for pool in cluster.mon_json("osd dump")["pools"]
                                 if pool["pool_name"] == POOL)
    return found


def score(cluster: DaemonCluster) -> float:
    """Ceph's own, of the pool."""
    return float(pool_of(cluster)["read_balance"]["score_acting"])


def looked_at(cluster: DaemonCluster, command: str, **arguments: Any) -> Dict[str, Any]:
    """The answer, asked for again while the cluster is being looked at."""
    def asked() -> Dict[str, Any]:
        answer = equilibrium(cluster, command, format="json", **arguments)
        assert answer.rc in (0, -errno.EAGAIN), answer
        found: Dict[str, Any] = answer.json() if answer.rc == 0 else {}
        return found
    return wait_for(f"an answer of {command}", asked, 30, pause=0.5)


def osds_of(cluster: DaemonCluster) -> List[Tuple[str, List[int]]]:
    return sorted((pgid, sorted(up)) for pgid, up in workload.up_sets(cluster).items())


def test_clients_that_do_not_know_primaries_forbid_it(even: DaemonCluster) -> None:
    looked_at(even, "upmap ls")
    answer = equilibrium(even, "optimize", plan="r", read_balance=True, replace=True)
    assert_refused(answer, errno.EPERM)
    assert "ceph osd set-require-min-compat-client reef" in answer.err


def test_the_score_falls_and_nothing_moves(even: DaemonCluster, figure: Any) -> None:
    even.mon("osd set-require-min-compat-client", version="reef")
    before, where = score(even), osds_of(even)
    plan = looked_at(even, "optimize", plan="r", read_balance=True, replace=True)
    row = next(row for row in plan["reads"] if row["name"] == POOL)
    epoch = even.mon_json("osd dump")["epoch"]
    assert execute(even, "r", _SECONDS)["outcome"] == "completed"
    misplaced = status(even)["misplaced_ratio"]
    workload.wait_clean(even)
    after = score(even)
    figure(f"read balance: {plan['pgs']} PGs got another primary in"
           f" {even.mon_json('osd dump')['epoch'] - epoch} maps; Ceph's score of {POOL} {before} ->"
           f" {after}, said {row['score_before']} -> {row['score_after']}; misplaced {misplaced}")
    assert plan["pgs"] and primaries(even) == plan["primaries"]
    assert row["score_before"] == pytest.approx(before, abs=_ROUNDED)
    assert row["score_after"] == pytest.approx(after, abs=_ROUNDED) and after < before
    assert misplaced == 0 == shards_in_flight(status(even)) and osds_of(even) == where
    acting = {pgid: even.mon_json("pg map", pgid=pgid)["acting"][0] for pgid in plan["primaries"]}
    assert acting == plan["primaries"]


def test_pgs_with_such_primaries_are_moved(even: DaemonCluster, figure: Any) -> None:
    """What the monitor makes of their entries is Ceph's; upmap items stay as they were sent."""
    before = primaries(even)
    plan = ready_plan(even, "m", aim="even")
    done = execute(even, "m", 3 * _SECONDS)
    workload.wait_clean(even)
    moved = [pgid for pgid in plan["predicted_up"] if pgid in before]
    now = workload.up_sets(even)
    gone = len(before.items() - primaries(even).items())
    figure(f"read balance: {len(moved)} of {len(plan['predicted_up'])} PGs that a plan moved had a"
           f" primary set, {gone} entries are gone: {done}")
    assert {pgid: sorted(now[pgid]) for pgid in plan["predicted_up"]} == {
        pgid: sorted(up) for pgid, up in plan["predicted_up"].items()}
    workload.clear_upmaps(even)


def test_undo_gives_back_what_was_set_before(even: DaemonCluster) -> None:
    for pgid in primaries(even):
        even.mon("osd rm-pg-upmap-primary", pgid=pgid)
    workload.wait_clean(even)
    number = pool_of(even)["pool"]
    pgid, up = next((pgid, up) for pgid, up in sorted(workload.up_sets(even).items())
                    if pgid.startswith(f"{number}."))
    even.mon("osd pg-upmap-primary", pgid=pgid, id=up[1])
    workload.wait_clean(even)
    before = primaries(even)
    looked_at(even, "optimize", plan="u", read_balance=True, replace=True)
    assert execute(even, "u", _SECONDS)["outcome"] == "completed"
    assert primaries(even) != before
    workload.wait_clean(even)
    answer = looked_at(even, "undo", plan="u")
    assert answer["not_restored"] == [] and answer["shards"] == 0
    wait_for("what was set before", lambda: primaries(even) == before, _SECONDS)
    even.mon("osd rm-pg-upmap-primary", pgid=pgid)
    assert equilibrium_json(even, "status")["misplaced_ratio"] == 0
    assert even.module_failures() == ""
