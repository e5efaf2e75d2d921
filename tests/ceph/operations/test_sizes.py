"""Predicted against real used bytes per OSD after a balance: plain, compressed, EC-optimized."""

from __future__ import annotations

from typing import Callable, Iterator

import pytest

from ..cluster import DaemonCluster
from ..harness import workload
from .prediction import cluster_of_seven, judge, make_pool, write

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from cluster_of_seven(request, {})


@pytest.mark.releases(16, 20)
def test_plain(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    make_pool(cluster, "plain")
    write(cluster, "plain", 900, 2_000_000)
    judge(cluster, figure, "plain pool", ["plain"])


@pytest.mark.releases(16, 20)
def test_a_compressed_pool(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    make_pool(cluster, "compressed")
    workload.set_pool(cluster, "compressed", "compression_mode", "force")
    workload.set_pool(cluster, "compressed", "compression_min_blob_size", 65536)
    write(cluster, "compressed", 1500, 2_000_000, 4)
    found = judge(cluster, figure, "compressed pool", ["compressed"])
    assert max(found.allocated.values()) < 0.4   # it does compress


@pytest.mark.releases(20)
def test_small_objects_in_an_optimized_pool(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """Of 4+2 with stripe units of 16 KiB, objects of 10 kB are at positions 0, 4 and 5 alone."""
    make_optimized_pool(cluster, "small", 16384)
    write(cluster, "small", 24_000, 10_000)
    judge(cluster, figure, "EC-optimized pool of small objects", ["small"])


@pytest.mark.releases(20)
def test_objects_of_less_than_a_stripe_unit(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """The same with few objects: of 200 kB, with stripe units of 256 KiB."""
    make_optimized_pool(cluster, "optimized", 262_144)
    write(cluster, "optimized", 2500, 200_000)
    judge(cluster, figure, "EC-optimized pool of objects below its stripe unit", ["optimized"],
          is_compacted=False)


def make_optimized_pool(cluster: DaemonCluster, name: str, stripe_unit: int) -> None:
    """4+2 with allow_ec_optimizations."""
    cluster.mon("osd erasure-code-profile set", name=name, profile=[
        "k=4", "m=2", "crush-failure-domain=osd", f"stripe_unit={stripe_unit}"])
    make_pool(cluster, name, "erasure")
    workload.set_pool(cluster, name, "allow_ec_optimizations", "true")
