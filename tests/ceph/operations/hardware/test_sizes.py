"""Predicted against real used bytes per OSD after a balance: plain, compressed, EC-optimized."""

from __future__ import annotations

from typing import Callable

import pytest

from ...cluster import DaemonCluster
from .prediction import balance, delete_pools, make_pool, write

#: Ratio of an OSD's size.
TOLERANCE = 0.01


@pytest.mark.long
@pytest.mark.releases(16, 20)
def test_plain(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    make_pool(cluster, "plain")
    write(cluster, "plain", 900, 2_000_000)
    found = balance(cluster, ["plain"])
    figure(f"plain pool: {found}")
    delete_pools(cluster, ["plain"])
    assert found.moves and found.largest <= TOLERANCE


@pytest.mark.long
@pytest.mark.releases(16, 20)
def test_a_compressed_pool(cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    make_pool(cluster, "compressed")
    cluster.mon("osd pool set", pool="compressed", var="compression_mode", val="force")
    write(cluster, "compressed", 1500, 2_000_000, 3)
    found = balance(cluster, ["compressed"])
    figure(f"compressed pool: {found}")
    delete_pools(cluster, ["compressed"])
    assert found.moves and found.largest <= TOLERANCE


@pytest.mark.releases(20)
def test_small_objects_in_an_optimized_pool(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    """Of 4+2 with stripe units of 16 KiB, objects of 10 kB are at positions 0, 4 and 5 alone."""
    cluster.mon("osd erasure-code-profile set", name="sizes42",
                profile=["k=4", "m=2", "crush-failure-domain=osd", "stripe_unit=16384"])
    make_pool(cluster, "optimized", pool_type="erasure", erasure_code_profile="sizes42")
    cluster.mon("osd pool set", pool="optimized", var="allow_ec_optimizations", val="true")
    write(cluster, "optimized", 24_000, 10_000)
    found = balance(cluster, ["optimized"])
    figure(f"EC-optimized pool of small objects: {found}")
    delete_pools(cluster, ["optimized"])
    assert found.moves and found.largest <= TOLERANCE
