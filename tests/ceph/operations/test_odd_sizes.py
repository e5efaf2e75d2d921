"""Predicted against real used bytes per OSD after a balance, where OSDs of one class differ."""

from __future__ import annotations

from typing import Callable, Iterator

import pytest

from ..cluster import DaemonCluster
from .prediction import TOLERANCE, balance, cluster_of_seven, judge, make_pool, write

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

#: Without hints of clients data is compressed in blobs of the smallest size, 8 KiB by default and
#: so to a half at most, where 4 KiB are allocated.
ODD = {"bluestore compression min blob size": "65536"}
ODD.update({f"[osd.{osd}]\nbluestore min alloc size": "65536" for osd in (0, 1, 2)})
COMPRESSING = (4, 6)
ODD.update({f"[osd.{osd}]\nbluestore compression mode": "force" for osd in COMPRESSING})


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from cluster_of_seven(request, ODD)


def test_small_objects(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """An object of 10 kB takes 12 KiB on one OSD and 64 KiB on another."""
    make_pool(cluster, "small")
    write(cluster, "small", 10_000, 10_000)
    found = balance(cluster, ["small"])
    figure(f"mixed min_alloc_size, a pool of small objects: {found}")
    assert found.moves
    assert found.largest <= TOLERANCE


def test_small_and_large_objects(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """On the same OSD a pool of large objects takes what it takes anywhere."""
    make_pool(cluster, "large")
    write(cluster, "large", 500, 1_000_000)
    judge(cluster, figure, "mixed min_alloc_size, small and large objects", ["small", "large"])


def test_osds_that_compress(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """Two compress what they store to a third or less, the others do not."""
    make_pool(cluster, "text")
    write(cluster, "text", 1200, 2_000_000, 4)
    found = judge(cluster, figure, "OSDs that compress and others", ["text"])
    others = dict(found.allocated)
    for osd in COMPRESSING:
        assert others.pop(f"osd.{osd}") < 0.4
    assert min(others.values()) > 0.9
