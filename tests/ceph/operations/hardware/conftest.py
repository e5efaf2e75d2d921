"""A small empty cluster of seven OSDs for each file, with the OSD options that the file names."""

from __future__ import annotations

from typing import Iterator

import pytest

from ...cluster import DaemonCluster
from ...harness.empty_cluster import empty_cluster

HOSTS = {f"h{host}": (2.0,) for host in range(7)}

#: Many small objects are recovered one by one.
_IN_HASTE = {f"osd recovery sleep {kind}": "0" for kind in ("hdd", "ssd", "hybrid")}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """`OSD_OPTIONS`, and `HOSTS` if there are other ones: as DaemonCluster has them."""
    hosts = getattr(request.module, "HOSTS", HOSTS)
    yield from empty_cluster(request, hosts, {**_IN_HASTE, **request.module.OSD_OPTIONS},
                             {"max_moves_per_round": 100})
