"""An OSD that has too many PGs by options of its own withholds what comes: it is taken back."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Set

import pytest

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import equilibrium, ready_plan, shards_in_flight, status

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

TAKEN_BACK_SECONDS = 480.0


def state(cluster: DaemonCluster, pgid: str) -> str:
    stats = cluster.mgr_json("pg dump", dumpcontents=["pgs_brief"])["pg_stats"]
    return str(next(stat["state"] for stat in stats if stat["pgid"] == pgid))


def num_pgs(cluster: DaemonCluster, osd: int) -> int:
    reports = cluster.mgr_json("pg dump", dumpcontents=["osds"])["osd_stats"]
    return int(next(one["num_pgs"] for one in reports if one["osd"] == osd))


@pytest.mark.parametrize("as_primary, fails_over", [(False, False), (True, False), (True, True)])
def test_what_an_osd_withholds_is_taken_back(
        as_primary: bool, fails_over: bool, cluster: DaemonCluster, unbalanced: workload.Usage,
        figure: Callable[[str], None]) -> None:
    """Where it would be the new primary nobody reports the PG, which the next mgr does not know."""
    plan, earlier = ready_plan(cluster, "withheld"), str(status(cluster)["rejected"])
    move: Dict[str, Any] = next(one for one in plan["moves"] if as_primary == (
        plan["predicted_up"][one["pgid"]][0] == one["to"]) and f"osd.{one['to']}," not in earlier)
    osd, limit = move["to"], num_pgs(cluster, move["to"]) // 3
    # osd_max_pg_per_osd_hard_ratio is 3, and the mgr does not know of this
    assert cluster.ceph(f"tell osd.{osd} config set mon_max_pg_per_osd {limit}").rc == 0
    seen: Set[str] = set()
    try:
        assert equilibrium(cluster, "execute", plan="withheld").rc == 0
        begun = time.monotonic()
        if fails_over:
            wait_for("it is sent", lambda: osd in cluster.mon_json(
                "pg map", pgid=move["pgid"])["up"], 60.0)
            time.sleep(5.0)
            cluster.fail_mgr()
            cluster.wait_module()
            time.sleep(20.0)   # all that anybody reports has been
            assert state(cluster, move["pgid"]) == "unknown"

        def is_back() -> bool:
            seen.add(state(cluster, move["pgid"]))
            now = status(cluster)   # what leaves the OSD may make room for some of them
            return f"osd.{osd}," in str(now["rejected"]) and not shards_in_flight(now) and (
                "clean" in state(cluster, move["pgid"]))
        wait_for("nothing waits for it", is_back, TAKEN_BACK_SECONDS, pause=0.5)
        figure(f"pg {move['pgid']} withheld by osd.{osd} at {3 * limit} PGs"
               f" ({', '.join(sorted(seen))}): back after {time.monotonic() - begun:.0f} s")
        equilibrium(cluster, "off")
        if not fails_over:   # the next mgr cannot tell those of log recovery from what has arrived
            workload.wait_clean(cluster)   # with the limit as it is
    finally:
        cluster.ceph(f"tell osd.{osd} config unset mon_max_pg_per_osd")
        equilibrium(cluster, "off")
        workload.clear_upmaps(cluster)
