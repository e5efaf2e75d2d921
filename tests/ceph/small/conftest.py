"""A small cluster for pools whose sizes Ceph tells late or not at all: one OSD a host."""

from __future__ import annotations

from typing import Iterator

import pytest

from ..cluster import Cluster
from ..conftest import PACKAGE, SLEEP_INTERVAL
from ..release import RELEASES

HOSTS = {"h0": (2.0,), "h1": (2.0,), "h2": (2.0,), "h3": (3.0,), "h4": (2.0,)}


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Empty, the module enabled and off, without scrubs."""
    release = RELEASES[request.param]
    with Cluster(release, PACKAGE, request.config.getoption("--ceph-keep"), HOSTS) as made:
        made.mgr("balancer off")
        for flag in ("noscrub", "nodeep-scrub"):
            made.mon("osd set", key=flag)
        made.mon("config set", who="mon", name="mon_allow_pool_delete", value="true")
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", 1.0)
        made.hurry()
        yield made
        failures = made.module_failures()
    assert not failures, f"the module raised exceptions on Ceph {release.version}:\n{failures}"
