"""Omap that PG statistics do not tell until a deep scrub: what plans foretell, what OSDs take."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator

import pytest

from .. import workload
from ..cluster import GIB, Cluster
from ..commands import equilibrium, execute, ready_plan, status
from ..daemons import ClusterError, wait_for
from .filling import compacted_usage, delete_pool, make_pool, write

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

KEYS = 400
TOLERANCE = 0.02
NOISE = 0.005
"""Ratios of an OSD's size."""
MISPREDICTED = "MGR_EQUILIBRIUM_MISPREDICTED"
PATIENCE_SECONDS = 200


@pytest.fixture(scope="module", autouse=True)
def all_at_once(cluster: Cluster) -> None:
    cluster.set_option("max_moves_per_round", 100)


@pytest.fixture
def omap_pool(cluster: Cluster) -> Iterator[str]:
    """A pool of omap alone."""
    make_pool(cluster, "omap")
    write(cluster, "omap", "o", 500, 0, KEYS)
    yield "omap"
    equilibrium(cluster, "off")
    workload.wait_clean(cluster)
    delete_pool(cluster, "omap")


@pytest.fixture
def mixed_pool(cluster: Cluster) -> Iterator[str]:
    """A pool of which most objects have bytes alone, and some much omap: 80 MB in each PG."""
    make_pool(cluster, "mixed", pgs=4)
    write(cluster, "mixed", "bytes", 900, 100000, 0)
    write(cluster, "mixed", "omap", 400, 0, 2 * KEYS)
    yield "mixed"
    equilibrium(cluster, "off")
    workload.wait_clean(cluster)
    delete_pool(cluster, "mixed")


def test_a_pool_of_omap_alone(
        cluster: Cluster, omap_pool: str, figure: Callable[[str], None]) -> None:
    """Ceph 16 tells a pool's omap once RocksDB has compacted it, 20 at once."""
    if cluster.release.major < 20:
        fresh_look(cluster)
        plan = ready_plan(cluster, "untold", pools=[omap_pool], aim="even")
        figure(f"pool of omap alone, {told_omap(cluster, omap_pool)} bytes told: "
               f"{len(plan['moves'])} moves planned, skipped {plan['skipped']}")
        assert told_omap(cluster, omap_pool) or plan["moves"] == [], plan
    before = compacted_usage(cluster)
    fresh_look(cluster)
    plan = ready_plan(cluster, "omap", pools=[omap_pool], aim="even")
    explained = equilibrium(cluster, "explain", what=omap_pool).out
    figure(f"compacted: {told_omap(cluster, omap_pool)} bytes told, {len(plan['moves'])} moves")
    if not told_omap(cluster, omap_pool):
        assert plan["moves"] == [], plan
        return
    assert plan["moves"], explained
    execute(cluster, "omap", PATIENCE_SECONDS)
    workload.wait_clean(cluster, PATIENCE_SECONDS)
    after = compacted_usage(cluster)
    off = {osd: (after[osd] - predicted) / (cluster.osds[osd] * GIB)
           for osd, predicted in predicted_usage(before, plan).items()}
    # RocksDB gives back what has left long afterwards, even when told to compact
    sources = {move["from"] for move in plan["moves"]} - {move["to"] for move in plan["moves"]}
    figure(f"pool of omap alone: {len(plan['moves'])} moves of "
           f"{sum(move['bytes'] for move in plan['moves']) >> 20} MiB; measured less predicted, of "
           f"each OSD's size: {rounded(off)}, sources {sources}; {levels(cluster, before, after)}")
    if cluster.release.major < 20:   # RocksDB's logs alone come and go by more there
        return
    assert min(off.values()) >= -TOLERANCE
    assert max(ratio for osd, ratio in off.items() if osd not in sources) <= TOLERANCE
    assert all(after[osd] <= before[osd] + NOISE * cluster.osds[osd] * GIB for osd in sources)
    assert highest(cluster, after) <= highest(cluster, before) + NOISE
    assert MISPREDICTED not in checks(cluster)


def test_a_mixed_pool(
        cluster: Cluster, mixed_pool: str, figure: Callable[[str], None]) -> None:
    """Not compacted: on Ceph 16 nobody knows of the omap, and only what arrives tells of it."""
    before = used(workload.settled_usage(cluster), cluster)
    fresh_look(cluster)
    told = told_omap(cluster, mixed_pool)
    cluster.set_option("max_misplaced_ratio", 0.1)   # a shard or two at a time, as elsewhere
    assert equilibrium(cluster, "on").rc == 0
    try:
        now = wait_rest(cluster)
        found = checks(cluster).get(MISPREDICTED)
    finally:
        equilibrium(cluster, "off")
        cluster.set_option("max_misplaced_ratio", 1.0)
    after = compacted_usage(cluster)
    figure(f"mixed pool, {told >> 20} MiB of omap told: {len(workload.upmap_items(cluster))} PGs "
           f"with upmaps; {now['state']}: {now['reason']}; {found}; "
           f"{levels(cluster, before, after)}")
    assert highest(cluster, after) <= highest(cluster, before) + NOISE


def used(usage: workload.Usage, cluster: Cluster) -> Dict[int, int]:
    """Bytes used by OSD."""
    return {osd: int(ratio * cluster.osds[osd] * GIB)
            for osd, ratio in usage.utilization.items()}


def told_omap(cluster: Cluster, pool: str) -> int:
    """Omap of all copies of a pool as its own statistics tell it."""
    number = next(entry["pool"] for entry in cluster.mon_json("osd dump")["pools"]
                  if entry["pool_name"] == pool)
    stats = cluster.mgr_json("pg dump", dumpcontents=["pools"])["pool_stats"]
    return next(int(entry["store_stats"].get("omap_allocated", 0)) for entry in stats
                if entry["poolid"] == number)


def fresh_look(cluster: Cluster) -> None:
    """The module knows the OSDs as they are now."""
    equilibrium(cluster, "reset")
    wait_for("a look of now", lambda: 0 <= (
        status(cluster)["snapshot_age_seconds"] or 99.0) < 2.0, 60)


def wait_rest(cluster: Cluster) -> Dict[str, Any]:
    """Until it is balanced or has stopped a pool, five times in a row; its status then."""
    seen = []

    def rests() -> Dict[str, Any]:
        now = status(cluster)
        seen.append(bool(now["state"] in ("balanced", "stuck") or now["mispredicted"]))
        return now if seen[-5:] == [True] * 5 else {}
    try:
        now = wait_for("rest", rests, PATIENCE_SECONDS, pause=2.0)
    except ClusterError:
        pytest.fail(f"no rest: {status(cluster)}")
    workload.wait_clean(cluster, PATIENCE_SECONDS)
    return now


def predicted_usage(before: Dict[int, int], plan: Dict[str, Any]) -> Dict[int, int]:
    """Bytes used by OSD when all that the plan moves has arrived and left."""
    used = dict(before)
    for move in plan["moves"]:
        used[move["from"]] -= move["bytes"]
        used[move["to"]] += move["bytes"]
    return used


def highest(cluster: Cluster, used: Dict[int, int]) -> float:
    """Utilization of the fullest OSD."""
    return max(held / (cluster.osds[osd] * GIB) for osd, held in used.items())


def levels(cluster: Cluster, before: Dict[int, int], after: Dict[int, int]) -> str:
    """Utilization of each OSD before and after."""
    return "; ".join(f"{what} " + str(rounded({
        osd: held / (cluster.osds[osd] * GIB) for osd, held in used.items()}))
        for what, used in (("before", before), ("after", after)))


def rounded(ratios: Dict[int, float]) -> Dict[int, float]:
    return {osd: round(ratio, 4) for osd, ratio in ratios.items()}


def checks(cluster: Cluster) -> Dict[str, Any]:
    """Health checks by code, with their messages."""
    found: Dict[str, Any] = cluster.mon_json("health", detail="detail")["checks"]
    return {code: check.get("summary", {}).get("message") for code, check in found.items()}
