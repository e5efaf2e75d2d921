"""A small empty cluster whose OSDs wait as long between two deletions as rotating disks do."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import DaemonCluster
from ..hardware.prediction import cluster_of_seven


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from cluster_of_seven(request, {"osd delete sleep": "5"})
