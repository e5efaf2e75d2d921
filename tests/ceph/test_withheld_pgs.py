"""An OSD that has too many PGs by options of its own withholds what comes: it is taken back."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Set

import pytest

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import equilibrium, ready_plan, run, shards_in_flight, status

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

TAKEN_BACK_SECONDS = 480.0


def state(cluster: DaemonCluster, pgid: str) -> str:
    return next(str(stat["state"]) for stat in cluster.pg_stats("pgs_brief")
                if stat["pgid"] == pgid)


def chosen(plan: Dict[str, Any], as_primary: bool, earlier: str) -> Dict[str, Any]:
    """A move of the plan that makes its target the PG's primary, or not; to none of the OSDs that
    a status has told of earlier."""
    for move in plan["moves"]:
        primary = plan["predicted_up"][move["pgid"]][0]
        if (primary == move["to"]) == as_primary and f"osd.{move['to']}," not in earlier:
            found: Dict[str, Any] = move
            return found
    raise AssertionError(f"no such move: {plan}")


@pytest.mark.parametrize("as_primary, fails_over", [(False, False), (True, False), (True, True)])
def test_what_an_osd_withholds_is_taken_back(
        as_primary: bool, fails_over: bool, cluster: DaemonCluster, unbalanced: workload.Usage,
        figure: Callable[[str], None]) -> None:
    """Where it would be the new primary nobody reports the PG, which the next mgr does not know."""
    plan, earlier = ready_plan(cluster, "withheld"), str(status(cluster)["rejected"])
    move = chosen(plan, as_primary, earlier)
    pgid, osd = move["pgid"], move["to"]
    limit = workload.pgs_held(cluster)[osd] // 3
    # osd_max_pg_per_osd_hard_ratio is 3, and the mgr does not know of this
    assert cluster.ceph(f"tell osd.{osd} config set mon_max_pg_per_osd {limit}").rc == 0
    seen: Set[str] = set()
    try:
        run(cluster, "execute", plan="withheld")
        begun = time.monotonic()
        if fails_over:
            wait_for("it is sent", lambda: osd in workload.up_set(cluster, pgid), 60.0)
            time.sleep(5.0)
            cluster.fail_mgr()
            cluster.wait_module()
            time.sleep(20.0)   # all that anybody reports has been
            assert state(cluster, pgid) == "unknown"

        def is_back() -> bool:
            seen.add(state(cluster, pgid))
            now = status(cluster)   # what leaves the OSD may make room for some of them
            if f"osd.{osd}," not in str(now["rejected"]) or shards_in_flight(now):
                return False
            return "clean" in state(cluster, pgid)
        wait_for("nothing waits for it", is_back, TAKEN_BACK_SECONDS)
        took = time.monotonic() - begun
        figure(f"pg {pgid} withheld by osd.{osd} at {3 * limit} PGs ({seen}): back after"
               f" {took:.0f} s")
        equilibrium(cluster, "off")
        if not fails_over:   # the next mgr cannot tell those of log recovery from what has arrived
            workload.wait_clean(cluster)   # with the limit as it is
    finally:
        cluster.ceph(f"tell osd.{osd} config unset mon_max_pg_per_osd")
        equilibrium(cluster, "off")
        workload.clear_upmaps(cluster)
