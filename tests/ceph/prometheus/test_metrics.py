"""A real Prometheus scrapes a real mgr: figures, standbys, failovers, options.

A Prometheus of its own that scrapes a test cluster, with the module's alert rules.
"""
from __future__ import annotations

import json
import pytest
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness.commands import equilibrium, execute, ready_plan


RULES = Path(__file__).resolve().parents[3] / "equilibrium_mgr" / "monitoring"
NOT_INSTALLED = (None if shutil.which("prometheus") and shutil.which("promtool")
                 else "prometheus and promtool (Debian's prometheus) are not installed")

_CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{rules}/*.yml']
scrape_configs:
  - job_name: equilibrium
    static_configs: [{{targets: {targets}}}]
"""


class Prometheus:
    """Scrapes ports of the loopback each second, until it is left."""

    def __init__(self, work: Path, port: int, targets: Sequence[int]) -> None:
        self._work = work / "prometheus"
        self._port = port
        self._targets = [f"127.0.0.1:{target}" for target in targets]
        self._process: Optional[subprocess.Popen[bytes]] = None

    def __enter__(self) -> Prometheus:
        self._work.mkdir()
        config = self._work / "prometheus.yml"
        config.write_text(_CONFIG.format(rules=RULES, targets=json.dumps(self._targets)))
        with open(self._work / "log", "wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "prometheus", f"--config.file={config}",
                 f"--storage.tsdb.path={self._work / 'data'}",
                 f"--web.listen-address=127.0.0.1:{self._port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        wait_for("Prometheus", self._is_ready, 60)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._work, ignore_errors=True)

    def values(self, query: str) -> List[Dict[str, Any]]:
        """Labels and the value, as `value`, of each series that a query gives now."""
        found = self._ask("query", query=query)["result"]
        return [{**one["metric"], "value": float(one["value"][1])} for one in found]

    def value(self, query: str) -> Optional[float]:
        """The value of a query with one series; None where it gives none."""
        found = self.values(query)
        assert len(found) <= 1, found
        return found[0]["value"] if found else None

    def up(self) -> Dict[str, bool]:
        """`address:port` → whether the last scrape of it went well."""
        return {one["instance"]: one["value"] == 1.0 for one in self.values("up")}

    def rules(self) -> List[Dict[str, Any]]:
        """The rules, with `health` and `lastError`."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ask(self, what: str, **arguments: str) -> Any:
        address = f"http://127.0.0.1:{self._port}/api/v1/{what}?"
        with urllib.request.urlopen(address + urllib.parse.urlencode(arguments), timeout=10) as got:
            answer = json.load(got)
        assert answer["status"] == "success", answer
        return answer["data"]

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


pytestmark = [pytest.mark.releases(16, 20),
              pytest.mark.skipif(NOT_INSTALLED is not None, reason=NOT_INSTALLED or "")]

_P = "ceph_equilibrium_"
_LATE_SECONDS = 60.0


def free_ports(count: int) -> List[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


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
                 for name in ("moved_bytes_total", "moves_total", "episodes_total"))


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
