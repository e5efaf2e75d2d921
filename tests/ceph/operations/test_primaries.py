"""Upmaps of plans beside primaries that pg-upmap-primary has set."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, execute, ready_plan, status

pytestmark = [pytest.mark.long, pytest.mark.releases(18, 20)]

SET, REMOVE = "osd pg-upmap-primary", "osd rm-pg-upmap-primary"
POOL = "rep"
_SECONDS = 360


@pytest.fixture(scope="module")
def plain(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """A clean cluster without upmaps, for clients of any release."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    workload.wait_clean(cluster)
    yield cluster
    for pgid in primaries(cluster):
        cluster.mon(REMOVE, pgid=pgid)
    workload.clear_upmaps(cluster)
    cluster.mon("osd set-require-min-compat-client", version="luminous",
                yes_i_really_mean_it=True)


def primaries(cluster: DaemonCluster) -> Dict[str, int]:
    """pgid → the OSD that is set as its primary."""
    return {entry["pgid"]: entry["primary_osd"]
            for entry in cluster.mon_json("osd dump")["pg_upmap_primaries"]}


def pgs_of_the_pool(cluster: DaemonCluster) -> List[Tuple[str, List[int]]]:
    number = next(pool["pool"] for pool in cluster.mon_json("osd dump")["pools"]
                  if pool["pool_name"] == POOL)
    return [(pgid, up) for pgid, up in sorted(workload.up_sets(cluster).items())
            if pgid.startswith(f"{number}.")]


def test_pgs_with_such_primaries_are_moved(plain: DaemonCluster, figure: Any) -> None:
    """What the monitor makes of their entries is Ceph's; upmap items stay as they were sent, and a
    plan is not void where primaries are set once it has been made."""
    plain.mon("osd set-require-min-compat-client", version="reef")
    plan = ready_plan(plain, "m", aim="even")
    for pgid, up in pgs_of_the_pool(plain):
        plain.mon(SET, pgid=pgid, id=up[1])
    workload.wait_clean(plain)
    before = primaries(plain)
    done = execute(plain, "m", _SECONDS)
    workload.wait_clean(plain)
    moved = [pgid for pgid in plan["predicted_up"] if pgid in before]
    gone = len(before.items() - primaries(plain).items())
    figure(f"{len(moved)} of {len(plan['predicted_up'])} PGs that a plan moved had a primary set,"
           f" {gone} entries are gone: {done}")
    now = workload.up_sets(plain)
    assert moved and {pgid: sorted(now[pgid]) for pgid in plan["predicted_up"]} == {
        pgid: sorted(up) for pgid, up in plan["predicted_up"].items()}
    workload.clear_upmaps(plain)
    for pgid in primaries(plain):
        plain.mon(REMOVE, pgid=pgid)
    workload.wait_clean(plain)


@pytest.mark.releases(20)   # of those that are tried; the mode came with 19
def test_the_balancer_in_mode_read_goes_on_beside_ours(plain: DaemonCluster, figure: Any) -> None:
    plain.mon("osd set-require-min-compat-client", version="reef")
    assert plain.mgr("balancer mode", mode="read").rc == 0
    assert plain.mgr("balancer on").rc == 0
    try:
        answer = equilibrium(plain, "on")
        assert "stays on: in mode read it moves no data" in answer.out, answer
        wait_for("upmap items of ours", lambda: workload.upmap_items(plain), _SECONDS)
        now = status(plain)
        assert now["builtin_balancer_active"] is False and now["state"] != "blocked", now
        set_by_ceph = wait_for("primaries of Ceph's balancer", lambda: primaries(plain), _SECONDS)
        figure(f"the balancer in mode read has set {len(set_by_ceph)} primaries beside ours")
        assert plain.mgr_json("balancer status")["active"] is True
    finally:
        equilibrium(plain, "off")
        plain.mgr("balancer off")
        plain.mgr("balancer mode", mode="upmap")
    assert plain.module_failures() == ""
