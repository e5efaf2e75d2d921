"""The built-in balancer in mode read, which came with 19, beside equilibrium."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, status

pytestmark = [pytest.mark.long, pytest.mark.releases(20)]

REMOVE = "osd rm-pg-upmap-primary"
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
