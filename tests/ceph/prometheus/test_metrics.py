"""A real Prometheus scrapes a real mgr: figures, standbys, failovers, options."""
from __future__ import annotations

import pytest
import socket
import subprocess
import time
import urllib.request
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness.commands import equilibrium, execute, ready_plan
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
    wait_for("the endpoint", lambda: listens(ports[cluster.active_mgr()])
             and str(ports[cluster.active_mgr()]) in services(cluster), _LATE_SECONDS)
    yield ports
    for name in ports:
        cluster.mon("config rm", who="mgr", name=f"mgr/equilibrium/{name}/metrics_port")
    wait_for("nothing in `ceph mgr services`", lambda: not services(cluster), _LATE_SECONDS)


def services(cluster: DaemonCluster) -> str:
    """What `ceph mgr services` shows of the module; "" for nothing."""
    return str(cluster.mon_json("mgr services").get("equilibrium", ""))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(5.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def counters(prometheus: Prometheus) -> Tuple[float, ...]:
    return tuple(sum(one["value"] for one in prometheus.values(f"{_P}{name}"))
                 for name in ("moved_bytes_total", "moves_total"))


def fullest(cluster: DaemonCluster) -> float:
    """Used ÷ size of the fullest OSD, as `ceph osd df` tells it."""
    return max(node["kb_used"] / node["kb"] for node in cluster.mgr_json("osd df")["nodes"])


def test_prometheus_scrapes_the_active_mgr(
        cluster: DaemonCluster, unbalanced: object, ports: Dict[str, int],
        figure: Callable[[str], None]) -> None:
    active, standby = cluster.active_mgr(), [n for n in ports if n != cluster.active_mgr()][0]
    assert services(cluster).endswith(f":{ports[active]}/")
    assert listens(ports[active]) and not listens(ports[standby])
    equilibrium(cluster, "status")   # has the cluster looked at
    with Prometheus(cluster.work, free_ports(1)[0], list(ports.values())) as prometheus:
        wait_for("a scrape", lambda: prometheus.value(f"sum({_P}state)") == 1.0, _LATE_SECONDS)
        wait_for("a scrape of each", lambda: prometheus.up() == {
            f"127.0.0.1:{ports[active]}": True, f"127.0.0.1:{ports[standby]}": False},
            _LATE_SECONDS)
        wait_for("the fullest OSD", lambda: prometheus.value(f"{_P}utilization_max_ratio")
                 == pytest.approx(fullest(cluster), abs=0.002), _LATE_SECONDS, 1.0)
        before = counters(prometheus)
        ready_plan(cluster, "kept", max_moves=6)
        execute(cluster, "kept", 300)
        moved = wait_for("the counters", lambda: _grown(prometheus, before), _LATE_SECONDS)
        assert cluster.fail_mgr() == standby
        cluster.wait_module()
        wait_for("a scrape", lambda: prometheus.up() == {
            f"127.0.0.1:{ports[active]}": False, f"127.0.0.1:{ports[standby]}": True},
            _LATE_SECONDS)
        counted = f'{_P}moves_total{{instance="127.0.0.1:{ports[standby]}"}}'
        wait_for("counters of the other mgr, which begin anew",
                 lambda: prometheus.value(counted) == 0.0, _LATE_SECONDS)
        rules = prometheus.rules()
        assert len(rules) == 11 and all(rule["health"] == "ok" for rule in rules), rules
    wait_for("`ceph mgr services`", lambda: services(cluster).endswith(f":{ports[standby]}/"),
             _LATE_SECONDS)
    assert not listens(ports[active])
    figure(f"Prometheus scraped {moved[1]:.0f} moves, {moved[0]:.0f} bytes")


def _grown(prometheus: Prometheus, before: Tuple[float, ...]) -> Tuple[float, ...]:
    now = counters(prometheus)
    return now if all(new > old for new, old in zip(now, before)) else ()


def test_promtool_accepts_the_metrics(cluster: DaemonCluster, ports: Dict[str, int],
                                      figure: Callable[[str], None]) -> None:
    times: List[float] = []
    for _ in range(20):
        started = time.monotonic()
        text = scrape(ports[cluster.active_mgr()])
        times.append(1000.0 * (time.monotonic() - started))
        time.sleep(0.1)
    for shown in (text, equilibrium(cluster, "metrics").out):
        done: Any = subprocess.run(["promtool", "check", "metrics"], input=shown,
                                   capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stdout + done.stderr, done
    figure(f"20 scrapes: median {sorted(times)[10]:.1f} ms, slowest {max(times):.1f} ms")


def test_off_is_off(cluster: DaemonCluster, ports: Dict[str, int]) -> None:
    port = ports[cluster.active_mgr()]
    assert listens(port)
    for name in ports:
        cluster.set_option(f"{name}/metrics_port", 0)
    wait_for("nothing in `ceph mgr services`", lambda: not services(cluster), _LATE_SECONDS)
    assert not listens(port)


def test_a_port_in_use_is_a_warning(cluster: DaemonCluster, ports: Dict[str, int]) -> None:
    active = cluster.active_mgr()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        cluster.set_option(f"{active}/metrics_port", other.getsockname()[1])
        wait_for("the warning", lambda: _is_warned(cluster) and not services(cluster),
                 _LATE_SECONDS)
    wait_for("no warning", lambda: not _is_warned(cluster) and services(cluster), 3 * _LATE_SECONDS)


def _is_warned(cluster: DaemonCluster) -> bool:
    checks = cluster.mon_json("health", detail="detail")["checks"]
    return "Address already in use" in str(checks.get("MGR_EQUILIBRIUM_BAD_OPTION", ""))
