"""Dashboard and alert rules name what the renderer emits, and promtool has nothing to say."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from tests.commands.asking import run
from tests.support.exposition import FAMILIES, PREFIX

from equilibrium_mgr.control.journal import Totals
from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.observation.cluster_view import STATES
from equilibrium_mgr.report.metrics import report_metrics
from mgr_stub.console.session import Session

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "equilibrium_mgr" / "monitoring"
RULES = FOLDER / "equilibrium_alerts.yml"
ALERTS = ("EquilibriumStuck", "EquilibriumStandstill", "EquilibriumDrainStuck", "EquilibriumGone",
          "EquilibriumStatisticsOld", "EquilibriumConflict", "EquilibriumOSDImbalance",
          "EquilibriumNearfullAhead", "EquilibriumNearfullLasts", "EquilibriumPGsTooFull",
          "EquilibriumOSDFull")
#: As Ceph's own rules have it: what stops clients, or leaves copies missing, is critical.
CRITICAL = {"EquilibriumPGsTooFull", "EquilibriumOSDFull"}
RUNBOOK = "equilibrium_mgr/doc/troubleshooting.md#"
#: Of promtool: what fires and what does not, and what of it takes days.
CASES = [Path(__file__).parent / f"alerts_{name}.yml" for name in ("test", "days_test")]
#: Of Ceph's own mgr module prometheus.
OF_CEPH = {"ceph_health_detail", "ceph_pool_metadata"}
#: Labels that Prometheus adds, and those of OF_CEPH.
_OTHER_LABELS = {"instance", "pod", "name"}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (Debian's prometheus) is not installed")


def dashboard() -> Dict[str, Any]:
    shown: Dict[str, Any] = json.loads((FOLDER / "equilibrium_dashboard.json").read_text())
    return shown


def expressions() -> List[str]:
    """Of the dashboard's panels, and of the rules: from a key to the next one."""
    of_panels: List[str] = []
    for panel in dashboard()["panels"]:
        of_panels += [target["expr"] for target in panel["targets"]]
    of_rules = re.findall(r"expr: (.*?)\n +for:", RULES.read_text(), re.DOTALL)
    assert len(of_panels) >= 10
    assert len(of_rules) == len(ALERTS)
    return of_panels + of_rules


def emitted() -> List[str]:
    found = report_metrics(BalancerStatus(), Totals(), 0.0, False, None, None).data
    return [family["name"] for family in found["metrics"]]


@pytest.mark.parametrize("expression", expressions())
def test_expressions_name_metrics_that_are_emitted(expression: str) -> None:
    names = set(re.findall(r"\bceph_\w+", expression))
    assert names
    assert names <= set(emitted()) | OF_CEPH
    lists = re.findall(r"(?:without|by|on|ignoring|group_left) \(([^)]*)\)", expression)
    labels = {label for part in lists for label in re.split(r"[, ]+", part)} | set(
        re.findall(r"(\w+)(?:!?=|!~)", expression))
    known = {str(FAMILIES[name[len(PREFIX):]]) for name in names - OF_CEPH} | _OTHER_LABELS
    assert labels <= known
    assert set(re.findall(r'state="(\w+)"', expression)) <= set(STATES)


def test_the_dashboard_is_for_any_data_source() -> None:
    shown = dashboard()
    only, = shown["templating"]["list"]
    assert (only["type"], only["query"]) == ("datasource", "prometheus")
    ids = set()
    for panel in shown["panels"]:
        for one in (panel, *panel["targets"]):
            assert one["datasource"]["uid"] == "${datasource}"
        assert panel["title"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        ids.add(panel["id"])
    assert len(ids) == len(shown["panels"])


def test_each_alert_says_how_bad_it_is_and_where_to_read_on() -> None:
    rules = RULES.read_text().split("- alert: ")[1:]
    assert [rule.split()[0] for rule in rules] == list(ALERTS)
    for name, rule in zip(ALERTS, rules):
        assert re.findall(r"severity: (\w+)", rule) == [
            "critical" if name in CRITICAL else "warning"]
        assert re.findall(r"runbook_url: (.*)", rule) == [RUNBOOK + name.lower()]
        assert "summary: " in rule
        assert "description: " in rule


def test_each_alert_is_seen_to_fire_and_not_to() -> None:
    text = "".join([path.read_text() for path in CASES])
    for name in ALERTS:
        cases = re.findall(rf"alertname: {name}(?:, |\s+)exp_alerts: *(\[\])?", text)
        assert {bool(silent) for silent in cases} == {True, False}, name


def test_the_handbook_has_a_row_for_each_alert_and_metric() -> None:
    text = (ROOT / "equilibrium_mgr/doc/monitoring.md").read_text(encoding="utf-8")
    to_do = (ROOT / "equilibrium_mgr/doc/troubleshooting.md").read_text(encoding="utf-8")
    for name in ALERTS:
        assert f"| `{name}` |" in text
        assert f"\n### {name}\n" in to_do
    for name in FAMILIES:
        assert re.search(f"`{name}[`{{]", text), name


def promtool(*arguments: str, text: str = "") -> str:
    done = subprocess.run(["promtool", *arguments], cwd=ROOT, input=text, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", str(RULES))


@needs_promtool
def test_alerts_fire_when_they_should_and_not_before() -> None:
    promtool("test", "rules", *map(str, CASES))


def _states(session: Session) -> Iterator[str]:
    """Brings a session into one state after another; the metrics in each."""
    yield run(session, "equilibrium metrics")
    run(session, "sim backfill rate 4M", "equilibrium on", "sim run 10m")
    yield run(session, "equilibrium metrics")
    run(session, "sim flag set norebalance", "sim run 5m")
    yield run(session, "equilibrium metrics")
    run(session, "sim flag unset norebalance", "sim backfill rate 1G", "sim run 12h")
    assert session.module.balancer.status.state == "balanced"
    yield run(session, "equilibrium metrics")
    run(session, "equilibrium off", "sim mon down", "sim run 2m")
    yield run(session, "equilibrium metrics")


@pytest.mark.full
@needs_promtool
def test_promtool_accepts_the_metrics_in_each_state(
        open_session: Callable[..., Session]) -> None:
    for text in _states(open_session(18)):
        assert promtool("check", "metrics", text=text) == ""
