"""The same of an EC-optimized pool, whose shards differ by position as well."""

from __future__ import annotations

from typing import Callable

import pytest

from ...cluster import DaemonCluster
from ..hardware.prediction import balance, delete_pools, write
from ..hardware.test_sizes import make_optimized_pool
from .test_odd_sizes import TOLERANCE

pytestmark = [pytest.mark.releases(20), pytest.mark.long]


def test_small_objects_of_an_optimized_pool(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """Of 4+2 with stripe units of 16 KiB, objects of 10 kB are at positions 0, 4 and 5 alone."""
    make_optimized_pool(cluster, "optimized", 16384)
    write(cluster, "optimized", 10_000, 10_000)
    found = balance(cluster, ["optimized"])
    figure(f"mixed min_alloc_size, an EC-optimized pool of small objects: {found}")
    delete_pools(cluster, ["optimized"])
    assert found.moves and found.largest <= TOLERANCE
