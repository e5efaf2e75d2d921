"""Upmap items by which two shards of a PG exchange their OSDs, as a freeze may write them."""

from __future__ import annotations

from typing import Callable, List, Tuple

import pytest

from ...cluster import DaemonCluster
from ...daemons import wait_for
from ...harness import workload
from ...harness.commands import equilibrium, ready_plan

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]


def test_a_monitor_keeps_pairs_that_pass_through_an_osd_that_is_left(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    pool = next(pool["pool"] for pool in cluster.mon_json("osd dump")["pools"]
                if pool["pool_name"] == "ec")
    pgid, up = next((pgid, up) for pgid, up in sorted(workload.up_sets(cluster).items())
                    if pgid.startswith(f"{pool}."))
    wanted, pairs = exchanged(cluster, up)
    try:
        cluster.mon("osd pg-upmap-items", pgid=pgid, id=[osd for pair in pairs for osd in pair])
        wait_for("the exchange", lambda: workload.up_sets(cluster)[pgid] == wanted, 30)
        for command in ("set", "unset", "set", "unset"):   # each epoch is another look of theirs
            cluster.mon(f"osd {command}", key="noout")
        assert workload.upmap_items(cluster)[pgid] == [list(pair) for pair in pairs]
        workload.wait_clean(cluster)
        assert workload.up_sets(cluster)[pgid] == wanted
        equilibrium(cluster, "reset")
        skipped = wait_for("a plan", lambda: ready_plan(cluster, "exchange"), 60)["skipped"]
        figure(f"{up} are {wanted} by {pairs}; a plan leaves out {skipped}")
        assert not [reason for reason in skipped if "cannot be recovered" in reason]
    finally:
        workload.clear_upmaps(cluster, [pgid])


def exchanged(cluster: DaemonCluster, up: List[int]) -> Tuple[List[int], List[Tuple[int, int]]]:
    """(an up set of which the first two are exchanged and the third is elsewhere, the pairs)."""
    hosts = [set(node["children"]) for node in cluster.mon_json("osd tree")["nodes"]
             if node["type"] == "host" and node["name"].startswith("h")]
    other = min(next(host for host in hosts if host.isdisjoint(up)))
    first, second, third, fourth = up
    return [second, first, other, fourth], [
        (third, other), (first, third), (second, first), (third, second)]
