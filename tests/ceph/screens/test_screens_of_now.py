"""What screens say of now is what Ceph says, to the digits that Ceph prints, while it balances; and
what Ceph itself shows of equilibrium meanwhile: progress, health, services, metrics.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for
from ..harness import workload
from ..harness.commands import equilibrium, equilibrium_json, status

pytestmark = pytest.mark.releases(16, 18, 20)

_COMPARED_SECONDS = 60.0
_BALANCE_SECONDS = 240.0
_LATE_SECONDS = 60.0
_MOVES_PER_ROUND = 4
_KIB = 1024

Figures = Dict[Any, Tuple[str, ...]]


def osd_figures(cluster: DaemonCluster) -> Figures:
    """OSD → (size, used, utilization, PGs) as `ceph osd df` prints them."""
    return {node["id"]: (str(node["kb"] * _KIB), str(node["kb_used"] * _KIB),
                         f"{node['utilization']:.2f}", str(node["pgs"]))
            for node in cluster.mgr_json("osd df")["nodes"]}


def our_osd_figures(cluster: DaemonCluster) -> Figures:
    """The same of `ceph equilibrium osds`."""
    return {row["id"]: (str(row["size_bytes"]), str(row["used_bytes"]),
                        f"{100.0 * row['utilization']:.2f}", str(row["pgs"]))
            for row in equilibrium_json(cluster, "osds")["osds"]}


def pool_figures(cluster: DaemonCluster) -> Figures:
    """Pool → (stored, per cent used, MAX AVAIL) as `ceph df` prints them."""
    return {pool["name"]: (str(pool["stats"]["stored"]),
                           f"{100.0 * pool['stats']['percent_used']:.2f}",
                           str(pool["stats"]["max_avail"]))
            for pool in cluster.mon_json("df")["pools"]}


def our_pool_figures(cluster: DaemonCluster) -> Figures:
    """The same of `ceph equilibrium df`."""
    return {pool["name"]: (str(pool["stored"]), f"{100.0 * pool['percent_used']:.2f}",
                           str(pool["max_avail"]))
            for pool in equilibrium_json(cluster, "df")["pools"]}


def highest(cluster: DaemonCluster) -> Figures:
    """Device class → the highest utilization of its OSDs, as `ceph osd df` prints it."""
    found: Dict[str, float] = {}
    for node in cluster.mgr_json("osd df")["nodes"]:
        found[node["device_class"]] = max(found.get(node["device_class"], 0.0),
                                          node["utilization"])
    return {name: (f"{ratio:.2f}",) for name, ratio in found.items()}


def our_highest(cluster: DaemonCluster) -> Figures:
    """The same of `ceph equilibrium status`."""
    return {row["device_class"]: (f"{100.0 * row['max_utilization']:.2f}",)
            for row in status(cluster)["classes"]}


def compare(cluster: DaemonCluster, theirs: Callable[[DaemonCluster], Figures],
            ours: Callable[[DaemonCluster], Figures]) -> None:
    """Asserts that both are equal at a moment at which Ceph's own do not change."""
    seen: List[Any] = []

    def equal() -> bool:
        before, said, after = theirs(cluster), ours(cluster), theirs(cluster)
        seen.append({key: (value, said.get(key)) for key, value in before.items()
                     if value != said.get(key)})
        return before == after and said == before
    try:
        wait_for("equal figures", equal, _COMPARED_SECONDS, pause=0.5)
    except ClusterError:
        raise AssertionError(f"Ceph's figures, and ours: {seen[-3:]}") from None


@pytest.fixture(autouse=True)
def observed(cluster: DaemonCluster) -> None:
    """The module has looked at the cluster: until then screens with figures say EAGAIN."""
    wait_for("an observation", lambda: equilibrium(cluster, "osds").rc == 0, _LATE_SECONDS)


@pytest.fixture
def slow(cluster: DaemonCluster) -> Iterator[None]:
    """Few moves a round, so that balancing takes long enough to be looked at."""
    cluster.set_option("max_moves_per_round", _MOVES_PER_ROUND)
    yield
    equilibrium(cluster, "off")
    cluster.mon("config rm", who="mgr", name="mgr/equilibrium/max_moves_per_round")


def test_figures_of_now_are_those_of_ceph_at_rest(
        cluster: DaemonCluster, unbalanced: workload.Usage) -> None:
    compare(cluster, osd_figures, our_osd_figures)
    compare(cluster, pool_figures, our_pool_figures)
    compare(cluster, highest, our_highest)


def test_off_ends_the_event_and_both_ends_are_in_the_cluster_log(
        cluster: DaemonCluster, unbalanced: workload.Usage, slow: None) -> None:
    before = len(_cluster_log(cluster))
    assert equilibrium(cluster, "on").rc == 0
    event = wait_for("an event", lambda: _our_events(cluster, "events"), _LATE_SECONDS)[0]
    assert "equilibrium" not in cluster.ceph("-s").out.lower()
    assert equilibrium(cluster, "off").rc == 0
    wait_for("the end of the event", lambda: not _our_events(cluster, "events"), _LATE_SECONDS)
    ended = _our_events(cluster, "completed")[-1]
    assert ended["id"] == event["id"] and ended["failed"], ended
    assert "off" in ended["failure_message"], ended
    shown = cluster.ceph("progress").out
    assert "equilibrium" in shown.lower(), shown
    lines = wait_for("two lines", lambda: _cluster_log(cluster)[before + 1:]
                     and _cluster_log(cluster)[before:], _LATE_SECONDS)
    assert [line.split()[1:4] for line in lines] == [
        ["automatic", "balancing", "begins:"], ["automatic", "balancing", "stopped"]], lines


def test_what_ceph_shows_while_it_balances(
        cluster: DaemonCluster, unbalanced: workload.Usage, slow: None,
        figure: Callable[[str], None]) -> None:
    seen: Dict[str, Dict[str, Any]] = {}
    compared = 0
    assert equilibrium(cluster, "on").rc == 0
    end = time.monotonic() + _BALANCE_SECONDS
    while time.monotonic() < end and status(cluster)["state"] != "balanced":
        for event in _our_events(cluster, "events"):
            previous = seen.get(event["id"])
            assert previous is None or event["progress"] >= previous["progress"], event
            seen[event["id"]] = event
        if status(cluster)["moving"]["shards"]:
            compare(cluster, osd_figures, our_osd_figures)
            compare(cluster, highest, our_highest)
            compared += 1
        assert _our_health(cluster) == []
        _assert_metrics(cluster)
        time.sleep(0.5)
    assert status(cluster)["state"] == "balanced"
    wait_for("the end of the event", lambda: not _our_events(cluster, "events"), _LATE_SECONDS)
    assert len(seen) == 1, "one event an episode"
    assert compared, "figures were compared while data moved"
    completed = _our_events(cluster, "completed")[-1]
    assert [completed["id"]] == list(seen) and not completed.get("failed"), completed
    figure(f"figures compared {compared} times while data moved; one event in `ceph progress`")


def test_services_show_the_endpoint_while_it_is_on(cluster: DaemonCluster) -> None:
    def services() -> Dict[str, str]:
        found: Dict[str, str] = cluster.mon_json("mgr services")
        return found
    assert "equilibrium" not in services()
    cluster.set_option("metrics_port", 19283)
    try:
        wait_for("the endpoint", lambda: "19283" in services().get("equilibrium", ""),
                 _LATE_SECONDS)
    finally:
        cluster.mon("config rm", who="mgr", name="mgr/equilibrium/metrics_port")
    wait_for("no endpoint", lambda: "equilibrium" not in services(), _LATE_SECONDS)


def _our_events(cluster: DaemonCluster, kind: str) -> List[Dict[str, Any]]:
    return [event for event in cluster.mgr_json("progress json")[kind]
            if "equilibrium" in event["message"].lower()]


def _cluster_log(cluster: DaemonCluster) -> List[str]:
    """The module's lines of `ceph log last`, oldest first."""
    entries = cluster.mon_json("log last", num=1000, level="info", channel="cluster")
    return [entry["message"] for entry in entries if entry["message"].startswith("equilibrium:")]


def _our_health(cluster: DaemonCluster) -> List[str]:
    checks = cluster.mon_json("health", detail="detail")["checks"]
    return [name for name in checks if "EQUILIBRIUM" in name]


def _assert_metrics(cluster: DaemonCluster) -> None:
    """The active state is told, and no value is NaN."""
    answer = equilibrium(cluster, "metrics")
    assert answer.rc == 0, answer
    samples = [line for line in answer.out.splitlines() if line and not line.startswith("#")]
    assert "ceph_equilibrium_active 1" in samples
    assert not [line for line in samples if line.split()[-1].lower() == "nan"]
