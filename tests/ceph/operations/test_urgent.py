"""An OSD above full_ratio in a cluster that is three quarters full: how long until it is below
nearfull, under a small misplaced limit, with and without the urgent one. A measurement.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, Iterator, List, Tuple

import pytest

from ..cluster import GIB, DaemonCluster
from ..conftest import MAX_MISPLACED
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, status

pytestmark = [pytest.mark.long, pytest.mark.releases(16)]

OSD = 6
"""The OSD of 4 GiB, of host h3, whose other OSD is number 7."""
HOST = (6, 7)
MEAN, FULL = 0.76, 0.955
USUAL = {"nearfull": 0.85, "backfillfull": 0.90, "full": 0.95}
FILLING = {"nearfull": 0.975, "backfillfull": 0.98, "full": 0.985}
LIMIT, URGENT = 0.01, 0.2
"""One PG shard is about 0.7 % of all object copies."""
SLOWER = {"osd_recovery_sleep": "0.1", "osd_max_backfills": "2"}
"""Objects of 1 MiB: some 10 MB/s for a backfill, as on a disk that clients use."""
SECONDS = 600


@pytest.fixture
def filled(cluster: DaemonCluster, unbalanced: workload.Usage) -> Iterator[DaemonCluster]:
    """Evened out, and then as full as MEAN."""
    set_ratios(cluster, FILLING)
    assert equilibrium(cluster, "on").rc == 0
    wait_for("balanced", lambda: status(cluster)["state"] == "balanced", 300, pause=1.0)
    equilibrium(cluster, "off")
    size = sum(cluster.osds) * GIB
    used = sum(ratio * cluster.osds[osd] * GIB
               for osd, ratio in workload.settled_usage(cluster).utilization.items())
    workload.write(cluster, "rep", int((MEAN * size - used) / 3 / workload.MIB))
    yield cluster
    equilibrium(cluster, "off")
    set_ratios(cluster, USUAL)
    cluster.set_option("max_misplaced_ratio", MAX_MISPLACED)
    cluster.set_option("urgent_misplaced_ratio", 0)
    for name in SLOWER:
        cluster.mon("config rm", who="osd", name=name)


def test_minutes_until_a_full_osd_is_below_nearfull(
        filled: DaemonCluster, figure: Callable[[str], None]) -> None:
    took: Dict[float, float] = {}
    for urgent in (0.0, URGENT):
        usage = overfill(filled)
        filled.set_option("max_misplaced_ratio", LIMIT)
        filled.set_option("urgent_misplaced_ratio", urgent)
        for name, value in SLOWER.items():
            filled.mon("config set", who="osd", name=name, value=value)
        set_ratios(filled, USUAL)
        began = time.monotonic()
        assert equilibrium(filled, "on").rc == 0
        said, highest = watch(filled)
        took[urgent] = time.monotonic() - began
        figure(f"osd.{OSD} at {usage.utilization[OSD]:.3f}, mean {mean(filled, usage):.3f}, limit"
               f" {LIMIT}, urgent limit {urgent}: below nearfull after {took[urgent] / 60:.1f} min,"
               f" misplaced at most {highest:.4f}; status: {said}")
        equilibrium(filled, "off")
        for name in SLOWER:
            filled.mon("config rm", who="osd", name=name)
        set_ratios(filled, FILLING)
        workload.wait_clean(filled)
    assert took[URGENT] < took[0.0]


def watch(cluster: DaemonCluster) -> Tuple[str, float]:
    """Waits until the OSD is below nearfull: (what status said of the urgent limit, the highest
    misplaced ratio)."""
    highest, said = 0.0, ""

    def below() -> bool:
        nonlocal highest, said
        now = status(cluster)
        highest = max(highest, now["misplaced_ratio"] or 0.0)
        if now["limits"]["urgent_osds"]:
            said = f"urgent for {now['limits']['urgent_osds']}"
        return workload.usage_of(cluster).utilization[OSD] < USUAL["nearfull"]
    wait_for("below nearfull", below, SECONDS, pause=1.0)
    return said, highest


def overfill(cluster: DaemonCluster) -> workload.Usage:
    """Somebody else's upmap items fill the OSD beyond FULL."""
    while True:
        workload.wait_clean(cluster)
        usage = workload.settled_usage(cluster)
        if usage.utilization[OSD] >= FULL:
            return usage
        pushed = push_shard(cluster, usage)
        assert pushed, "no PG is left that could have a shard there"


def push_shard(cluster: DaemonCluster, usage: workload.Usage) -> bool:
    """One more shard of the replicated pool goes to the OSD, off its PG's fullest one."""
    pool = cluster.mon_json("osd pool stats", pool_name="rep")[0]["pool_id"]
    dump = cluster.mon_json("osd dump")
    items: Dict[str, List[Tuple[int, int]]] = {
        entry["pgid"]: [(pair["from"], pair["to"]) for pair in entry["mappings"]]
        for entry in dump["pg_upmap_items"]}
    for pgid, up in sorted(workload.up_sets(cluster).items()):
        if not pgid.startswith(f"{pool}.") or set(up) & set(HOST):
            continue
        source = max(up, key=lambda osd: usage.utilization[osd])
        pairs = items.get(pgid, [])
        if any(origin in HOST for origin, _ in pairs):
            continue
        known = [origin for origin, target in pairs if target == source]
        pairs = [pair for pair in pairs if pair[1] != source] + [
            (known[0] if known else source, OSD)]
        cluster.mon("osd pg-upmap-items", pgid=pgid, id=[osd for pair in pairs for osd in pair])
        return True
    return False


def mean(cluster: DaemonCluster, usage: workload.Usage) -> float:
    """Used bytes of all OSDs as a ratio of their size."""
    return sum(ratio * cluster.osds[osd] for osd, ratio in usage.utilization.items()) / sum(
        cluster.osds)


def set_ratios(cluster: DaemonCluster, ratios: Dict[str, float]) -> None:
    """All three, the highest first where they rise."""
    rising = ratios["full"] > USUAL["full"]
    for name, ratio in sorted(ratios.items(), key=lambda entry: entry[1], reverse=rising):
        cluster.mon(f"osd set-{name}-ratio", ratio=ratio)
