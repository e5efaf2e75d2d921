"""Omap that PG statistics do not tell until a deep scrub: what plans foretell, what OSDs take."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from ...cluster import DaemonCluster
from ...daemons import wait_for
from ...harness.commands import equilibrium, is_of_now, ready_plan, status
from .prediction import PATIENCE_SECONDS, balance, compacted, delete_pools, make_pool, write

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

HOSTS = {"h0": (2.0,), "h1": (2.0,), "h2": (2.0,), "h3": (3.0,), "h4": (2.0,)}
OSD_OPTIONS: Dict[str, str] = {}

POOL, KEYS = "omap", 400
#: Ratio of an OSD's size.
TOLERANCE = 0.02


def test_a_pool_of_omap_alone(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """Ceph 20 tells a pool's omap at once, 16 after a deep scrub; and what leaves an OSD is free
    once its RocksDB has compacted, which it never does here by itself."""
    make_pool(cluster, POOL, pgs=8)
    write(cluster, POOL, 500, 0, keys=KEYS)
    # nobody has said that RocksDB's files are as small as here
    assert "min_omap_osd_size" in str(left_alone(cluster)["skipped"])
    cluster.set_option("min_omap_osd_size", 0)
    if cluster.release.major < 20:   # whatever RocksDB has written out
        left_alone(cluster)
        compacted(cluster)
        left_alone(cluster)
        deep_scrub(cluster)
    found = balance(cluster, [POOL])
    figure(f"pool of omap alone: {found}")
    alarms = cluster.mispredictions()
    delete_pools(cluster, [POOL])
    assert found.moves and found.largest <= TOLERANCE and not alarms
    assert max(found.after.values()) <= max(found.before.values())


def left_alone(cluster: DaemonCluster) -> Dict[str, Any]:
    """A plan made of a new look, which moves nothing."""
    equilibrium(cluster, "reset")
    wait_for("a look of now", lambda: is_of_now(status(cluster)), 60)
    plan = ready_plan(cluster, "untold", pools=[POOL], aim="even")
    assert plan["moves"] == [], plan
    return plan


def deep_scrub(cluster: DaemonCluster) -> None:
    """Every PG of the pool tells its omap."""
    cluster.mon("osd unset", key="nodeep-scrub")
    for pg in pgs(cluster):
        cluster.mgr("pg deep-scrub", pgid=pg["pgid"])
    wait_for("omap of every PG", lambda: all(
        pg["stat_sum"]["num_omap_bytes"] for pg in pgs(cluster)), PATIENCE_SECONDS)
    cluster.mon("osd set", key="nodeep-scrub")


def pgs(cluster: DaemonCluster) -> List[Dict[str, Any]]:
    """The statistics of the PGs; no other pool has any."""
    return list(cluster.mgr_json("pg dump", dumpcontents=["pgs"])["pg_stats"])
