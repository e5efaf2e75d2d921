"""Predicted against real used bytes per OSD after a balance, where OSDs of one class differ."""

from __future__ import annotations

from typing import Callable, Iterator

import pytest

from ..cluster import DaemonCluster
from .prediction import balance, cluster_of_seven, delete_pools, make_pool, write

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

#: Without hints of clients data is compressed in blobs of the smallest size, 8 KiB by default and
#: so to a half at most, where 4 KiB are allocated.
ODD = {"bluestore compression min blob size": "65536"}
ODD.update({f"[osd.{osd}]\nbluestore min alloc size": "65536" for osd in (0, 1, 2)})
ODD.update({f"[osd.{osd}]\nbluestore compression mode": "force" for osd in (4, 6)})
#: Ratio of an OSD's size.
TOLERANCE = 0.01


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from cluster_of_seven(request, ODD)


def test_small_objects(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """An object of 10 kB takes 12 KiB on one OSD and 64 KiB on another."""
    make_pool(cluster, "small")
    write(cluster, "small", 10_000, 10_000)
    found = balance(cluster, ["small"])
    figure(f"mixed min_alloc_size, a pool of small objects: {found}")
    assert found.moves and found.largest <= TOLERANCE


def test_small_and_large_objects(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """On the same OSD a pool of large objects takes what it takes anywhere."""
    make_pool(cluster, "large")
    write(cluster, "large", 500, 1_000_000)
    found = balance(cluster, ["small", "large"])
    figure(f"mixed min_alloc_size, small and large objects: {found}")
    delete_pools(cluster, ["small", "large"])
    assert found.moves and found.largest <= TOLERANCE


def test_osds_that_compress(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """Two compress what they store to a third or less, the others do not."""
    make_pool(cluster, "text")
    write(cluster, "text", 1200, 2_000_000, 4)
    found = balance(cluster, ["text"])
    figure(f"OSDs that compress and others: {found}")
    delete_pools(cluster, ["text"])
    compressed = [found.allocated[f"osd.{osd}"] for osd in (4, 6)]
    assert max(compressed) < 0.4 < 0.9 < min(
        ratio for osd, ratio in found.allocated.items() if osd not in ("osd.4", "osd.6"))
    assert found.moves and found.largest <= TOLERANCE
