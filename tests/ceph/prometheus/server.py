"""A Prometheus of its own with the module's alert rules, for any test."""
from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from ..daemons import wait_for


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
    """Scrapes ports of the loopback each second, until it is left.

    `past`: what it has scraped before, in the OpenMetrics format with times in seconds.
    """

    def __init__(self, work: Path, port: int, targets: Sequence[int], past: str = "") -> None:
        self._past = past
        self._work = work / "prometheus"
        self._port = port
        self._targets = [f"127.0.0.1:{target}" for target in targets]
        self._process: Optional[subprocess.Popen[bytes]] = None

    def __enter__(self) -> Prometheus:
        self._work.mkdir()
        config = self._work / "prometheus.yml"
        config.write_text(_CONFIG.format(rules=RULES, targets=json.dumps(self._targets)))
        past, data = self._work / "past", self._work / "data"
        if self._past:
            past.write_text(self._past)
            subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q",
                            str(past), str(data)], check=True)
        argv = ["setpriv", "--pdeathsig", "KILL", "prometheus", f"--config.file={config}",
                f"--storage.tsdb.path={data}", f"--web.listen-address=127.0.0.1:{self._port}"]
        with open(self._work / "log", "wb") as log:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
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

    def series(self, query: str, start: float, end: float, step: float) -> List[Dict[str, Any]]:
        """Labels and all values, as `values`, of each series that a query gives over that time, as
        a panel asks for; moments in seconds since the epoch."""
        found = self._ask("query_range", query=query, start=f"{start}", end=f"{end}",
                          step=f"{step}")["result"]
        series = []
        for one in found:
            values = [float(value) for _, value in one["values"]]
            series.append({**one["metric"], "values": values})
        return series

    def up(self) -> Dict[str, bool]:
        """`address:port` → whether the last scrape of it went well."""
        return {one["instance"]: one["value"] == 1.0 for one in self.values("up")}

    def rules(self) -> List[Dict[str, Any]]:
        """The rules, with `health` and `lastError`."""
        rules: List[Dict[str, Any]] = []
        for group in self._ask("rules")["groups"]:
            rules += group["rules"]
        return rules

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


def free_ports(count: int) -> List[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
