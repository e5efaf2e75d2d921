"""Every query of the dashboard answers, in a real Prometheus with four hours of the demo."""
from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Callable, Iterator, List

import pytest
from tests.ceph.daemons import wait_for
from tests.ceph.prometheus.server import NOT_INSTALLED, Prometheus, free_ports
from tests.commands.asking import run

from mgr_stub.console.session import Session

from .test_monitoring import dashboard

pytestmark = pytest.mark.skipif(NOT_INSTALLED is not None, reason=NOT_INSTALLED or "")

_STEP = 300.0
_SPAN = 4 * 3600.0


def scraped(session: Session, end: float) -> Iterator[str]:
    """What Prometheus keeps of four hours that end then: the demo is balanced, the mgr fails over
    meanwhile, and afterwards an OSD is drained. Ceph's own module tells the pools' names."""
    start, mgr = session.clock.now, "x"
    begun = {1800.0: "sim failover", 3 * 3600.0: "equilibrium drain add 3"}
    while session.clock.now < start + _SPAN:
        passed = session.clock.now - start
        if passed in begun:
            run(session, begun[passed])
            mgr = "y" if passed == 1800.0 else mgr
        moment = f"{end - _SPAN + passed:.3f}"
        of_mgr = f'instance="{mgr}:9284",job="equilibrium"'
        for line in run(session, "equilibrium metrics").splitlines():
            if not line.startswith("#"):
                sample, _, value = line.rpartition(" ")
                name, _, labels = sample.rstrip("}").partition("{")
                yield f"{name}{{{','.join(filter(None, [labels, of_mgr]))}}} {value} {moment}"
        for pool, entry in session.cluster.map.pools.items():
            labels = f'pool_id="{pool}",name="{entry["pool_name"]}",instance="{mgr}:9283"'
            yield f"ceph_pool_metadata{{{labels}}} 1 {moment}"
        run(session, f"sim run {_STEP:.0f}s")


def test_each_query_of_each_panel_has_data(
        open_session: Callable[..., Session], tmp_path: Path) -> None:
    session = open_session(18)
    ports, now = free_ports(2), time.time()
    run(session, "sim backfill rate 80M", "equilibrium status", "equilibrium on",
        "config set mgr mgr/equilibrium/metrics_addr 127.0.0.1",
        f"config set mgr mgr/equilibrium/metrics_port {ports[0]}", "sim run 1m")
    past = "\n".join([*scraped(session, now - 60.0), "# EOF\n"])
    with Prometheus(tmp_path, ports[1], [ports[0]], past) as prometheus:
        wait_for("a scrape", lambda: prometheus.value("max(up)") == 1.0, 10)
        wait_for("the rules", lambda: all(
            rule["health"] == "ok" for rule in prometheus.rules()), 10)
        empty: List[str] = []
        for panel in dashboard()["panels"]:
            for target in panel["targets"]:
                found = prometheus.series(target["expr"], now - _SPAN, now, _STEP)
                values = [value for one in found for value in one["values"]]
                if not values or not all(map(math.isfinite, values)):
                    empty.append(f"{panel['title']}: {target['expr']}")
                # a line of a panel has the name that the legend is made of
                labels = target["legendFormat"].split("{{")[1:]
                assert all(label.split("}}")[0] in one for one in found for label in labels)
                # the failover begins no line again
                assert len(found) <= 10
                assert all("instance" not in one for one in found)
        assert not empty
