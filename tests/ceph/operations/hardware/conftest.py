"""A small cluster of OSDs that are all alike, empty."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import DaemonCluster
from .prediction import cluster_of_seven


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from cluster_of_seven(request, {})
