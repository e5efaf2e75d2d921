"""A cluster of which three OSDs have a min_alloc_size of 64 KiB, and two others compress."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import DaemonCluster
from ..hardware.prediction import cluster_of_seven

#: Without hints of clients data is compressed in blobs of the smallest size, 8 KiB by default and
#: so to a half at most, where 4 KiB are allocated.
ODD = {"bluestore compression min blob size": "65536"}
ODD.update({f"[osd.{osd}]\nbluestore min alloc size": "65536" for osd in (0, 1, 2)})
ODD.update({f"[osd.{osd}]\nbluestore compression mode": "force" for osd in (4, 6)})


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from cluster_of_seven(request, ODD)
