"""A small cluster of OSDs that are all alike, empty."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import DaemonCluster
from .prediction import empty_cluster


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from empty_cluster(request, {})
