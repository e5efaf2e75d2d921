"""A small cluster for pools whose sizes Ceph tells late or not at all: one OSD a host."""

from __future__ import annotations

from typing import Iterator

import pytest

from ..cluster import DaemonCluster
from ..harness.empty_cluster import empty_cluster

HOSTS = {"h0": (2.0,), "h1": (2.0,), "h2": (2.0,), "h3": (3.0,), "h4": (2.0,)}


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Empty, the module enabled and off, without scrubs."""
    yield from empty_cluster(request, HOSTS, {}, {"min_omap_osd_size": 0})
