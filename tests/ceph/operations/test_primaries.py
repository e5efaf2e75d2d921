"""What monitors make of pg-upmap-primary: the answers, and what they drop; and moves beside it.

`tests/mgr_stub/cluster/test_pg_upmap.py` holds the simulated monitor to the same.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for
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


def refused(cluster: DaemonCluster, prefix: str, **arguments: Any) -> str:
    with pytest.raises(ClusterError) as error:
        cluster.mon(prefix, **arguments)
    return re.sub(r"^.*? rc ", "", str(error.value))


def pgs_of_the_pool(cluster: DaemonCluster) -> List[Tuple[str, List[int]]]:
    number = next(pool["pool"] for pool in cluster.mon_json("osd dump")["pools"]
                  if pool["pool_name"] == POOL)
    return [(pgid, up) for pgid, up in sorted(workload.up_sets(cluster).items())
            if pgid.startswith(f"{number}.")]


def some_pg(cluster: DaemonCluster) -> Tuple[str, List[int]]:
    return pgs_of_the_pool(cluster)[0]


def stranger(cluster: DaemonCluster, up: List[int]) -> int:
    """An OSD that has no shard of the PG."""
    return next(osd["osd"] for osd in cluster.mon_json("osd dump")["osds"]
                if osd["osd"] not in up)


def test_answers(plain: DaemonCluster) -> None:
    pgid, up = some_pg(plain)
    for prefix, arguments in ((SET, {"id": up[1]}), (REMOVE, {})):
        said = refused(plain, prefix, pgid=pgid, **arguments)
        assert said.startswith("-1: min_compat_client luminous < reef, which is required for"
                               " pg-upmap-primary."), said
    plain.mon("osd set-require-min-compat-client", version="reef")
    assert "already primary" in refused(plain, SET, pgid=pgid, id=up[0])
    assert "not in acting set" in refused(plain, SET, pgid=pgid, id=stranger(plain, up))
    coded, osds = next((other, osds) for other, osds in workload.up_sets(plain).items()
                       if other.split(".")[0] != pgid.split(".")[0])
    assert "only supported for replicated pools" in refused(plain, SET, pgid=coded, id=osds[1])


def test_what_is_dropped(plain: DaemonCluster, figure: Any) -> None:
    pgid, up = some_pg(plain)
    found: Dict[str, Dict[str, int]] = {}
    plain.mon(SET, pgid=pgid, id=up[1])
    assert primaries(plain) == {pgid: up[1]}
    plain.mon(SET, pgid=pgid, id=up[0])
    found["what CRUSH chooses"] = primaries(plain)
    plain.mon(REMOVE, pgid=pgid)
    plain.mon(SET, pgid=pgid, id=up[1])
    other = stranger(plain, up)
    plain.mon("osd pg-upmap-items", pgid=pgid, id=[other, up[0]])
    found["beside a pair without effect"] = primaries(plain)
    assert workload.upmap_items(plain).get(pgid) is None
    plain.mon(REMOVE, pgid=pgid)
    figure(f"pg {pgid} {up}: primaries that are kept: {found}")
    drops = plain.release.major >= 20
    assert found == {"what CRUSH chooses": {} if drops else {pgid: up[0]},
                     "beside a pair without effect": {} if drops else {pgid: up[1]}}


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
