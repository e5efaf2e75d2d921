"""A cluster of which three OSDs have a min_alloc_size of 64 KiB, and another one compresses."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import DaemonCluster
from ..hardware.prediction import empty_cluster

ODD = {f"[osd.{osd}]\nbluestore min alloc size": "65536" for osd in (0, 1, 2)}
ODD["[osd.6]\nbluestore compression mode"] = "force"


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    yield from empty_cluster(request, ODD)
