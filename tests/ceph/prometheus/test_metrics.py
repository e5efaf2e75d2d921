"""A real Prometheus scrapes a real mgr: figures, standbys, failovers, options."""
from __future__ import annotations

import pytest
import socket
import subprocess
import time
import urllib.request
from typing import Callable, Dict, Iterator, List, Tuple

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import endpoint, equilibrium, execute, ready_plan
from .server import NOT_INSTALLED, Prometheus, free_ports


pytestmark = [pytest.mark.releases(16, 20),
              pytest.mark.skipif(NOT_INSTALLED is not None, reason=NOT_INSTALLED or "")]

_P = "ceph_equilibrium_"
_LATE_SECONDS = 60.0


@pytest.fixture(name="ports")
def make_ports(cluster: DaemonCluster) -> Iterator[Dict[str, int]]:
    """mgr → the port of its own at which it serves metrics while it is active."""
    ports = dict(zip("xy", free_ports(2)))
    for name, port in ports.items():
        cluster.set_option(f"{name}/metrics_port", port)

    def is_served() -> bool:
        port = ports[cluster.active_mgr()]
        return listens(port) and str(port) in endpoint(cluster)
    wait_for("the endpoint", is_served, _LATE_SECONDS)
    yield ports
    for name in ports:
        cluster.remove_option(f"{name}/metrics_port")
    wait_no_endpoint(cluster)


def wait_no_endpoint(cluster: DaemonCluster) -> None:
    wait_for("nothing in `ceph mgr services`", lambda: not endpoint(cluster), _LATE_SECONDS)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(5.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def wait_scraped(prometheus: Prometheus, active: int, standby: int) -> None:
    """Waits until the port of the active mgr was scraped, and that of the other was not."""
    wanted = {f"127.0.0.1:{active}": True, f"127.0.0.1:{standby}": False}
    wait_for("a scrape of each", lambda: prometheus.up() == wanted, _LATE_SECONDS)


def total(prometheus: Prometheus, name: str) -> float:
    return sum(one["value"] for one in prometheus.values(f"{_P}{name}"))


def counters(prometheus: Prometheus) -> Tuple[float, float]:
    return total(prometheus, "moved_bytes_total"), total(prometheus, "moves_total")


def test_prometheus_scrapes_the_active_mgr(
        cluster: DaemonCluster, unbalanced: object, ports: Dict[str, int],
        figure: Callable[[str], None]) -> None:
    active = cluster.active_mgr()
    other = "y" if active == "x" else "x"
    old, new = ports[active], ports[other]
    assert endpoint(cluster).endswith(f":{old}/")
    assert listens(old)
    assert not listens(new)
    equilibrium(cluster, "status")   # has the cluster looked at
    with Prometheus(cluster.work, free_ports(1)[0], list(ports.values())) as prometheus:
        wait_for("a scrape", lambda: prometheus.value(f"sum({_P}state)") == 1.0, _LATE_SECONDS)
        wait_scraped(prometheus, old, new)

        def is_of_now() -> bool:
            told = prometheus.value(f"{_P}utilization_max_ratio")
            return told == pytest.approx(workload.usage_of(cluster).highest, abs=0.002)
        wait_for("the fullest OSD", is_of_now, _LATE_SECONDS, 1.0)
        bytes_before, moves_before = counters(prometheus)
        ready_plan(cluster, "kept", max_moves=6)
        execute(cluster, "kept", 300)

        def grown() -> Tuple[float, ...]:
            moved, moves = counters(prometheus)
            return (moved, moves) if moved > bytes_before and moves > moves_before else ()
        moved, moves = wait_for("the counters", grown, _LATE_SECONDS)
        assert cluster.fail_mgr() == other
        cluster.wait_module()
        wait_scraped(prometheus, new, old)
        counted = f'{_P}moves_total{{instance="127.0.0.1:{new}"}}'
        wait_for("counters of the other mgr, which begin anew",
                 lambda: prometheus.value(counted) == 0.0, _LATE_SECONDS)
        health = [rule["health"] for rule in prometheus.rules()]
        assert health == ["ok"] * 11, prometheus.rules()
    wait_for("`ceph mgr services`", lambda: endpoint(cluster).endswith(f":{new}/"), _LATE_SECONDS)
    assert not listens(old)
    figure(f"Prometheus scraped {moves:.0f} moves, {moved:.0f} bytes")


def test_promtool_accepts_the_metrics(cluster: DaemonCluster, ports: Dict[str, int],
                                      figure: Callable[[str], None]) -> None:
    times: List[float] = []
    for _ in range(20):
        started = time.monotonic()
        text = scrape(ports[cluster.active_mgr()])
        times.append(1000.0 * (time.monotonic() - started))
        time.sleep(0.1)
    for shown in (text, equilibrium(cluster, "metrics").out):
        done = subprocess.run(["promtool", "check", "metrics"], input=shown,
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    figure(f"20 scrapes: median {sorted(times)[10]:.1f} ms, slowest {max(times):.1f} ms")


def test_off_is_off(cluster: DaemonCluster, ports: Dict[str, int]) -> None:
    port = ports[cluster.active_mgr()]
    assert listens(port)
    for name in ports:
        cluster.set_option(f"{name}/metrics_port", 0)
    wait_no_endpoint(cluster)
    assert not listens(port)


def test_a_port_in_use_is_a_warning(cluster: DaemonCluster, ports: Dict[str, int]) -> None:
    active = cluster.active_mgr()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        cluster.set_option(f"{active}/metrics_port", other.getsockname()[1])
        wait_for("the warning", lambda: _is_warned(cluster) and not endpoint(cluster),
                 _LATE_SECONDS)
    wait_for("no warning", lambda: not _is_warned(cluster) and endpoint(cluster), 3 * _LATE_SECONDS)


def _is_warned(cluster: DaemonCluster) -> bool:
    warning = cluster.health_checks().get("MGR_EQUILIBRIUM_BAD_OPTION")
    return "Address already in use" in str(warning)
