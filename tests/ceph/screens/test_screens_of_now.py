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
from ..harness.commands import endpoint, equilibrium, equilibrium_json, run, status

pytestmark = pytest.mark.releases(16, 18, 20)

_COMPARED_SECONDS = 60.0
_BALANCE_SECONDS = 240.0
_LATE_SECONDS = 60.0
_MOVES_PER_ROUND = 4
_KIB = 1024

Figures = Dict[Any, Tuple[str, ...]]


def osd_figures(cluster: DaemonCluster) -> Figures:
    """OSD → (size, used, utilization, PGs) as `ceph osd df` prints them."""
    found = {}
    for node in cluster.osd_nodes():
        size, used = node["kb"] * _KIB, node["kb_used"] * _KIB
        found[node["id"]] = texts(size, used, f"{node['utilization']:.2f}", node["pgs"])
    return found


def our_osd_figures(cluster: DaemonCluster) -> Figures:
    """The same of `ceph equilibrium osds`."""
    found = {}
    for row in equilibrium_json(cluster, "osds")["osds"]:
        ratio = in_per_cent(row["utilization"])
        found[row["id"]] = texts(row["size_bytes"], row["used_bytes"], ratio, row["pgs"])
    return found


def pool_figures(cluster: DaemonCluster) -> Figures:
    """Pool → (stored, per cent used, MAX AVAIL) as `ceph df` prints them."""
    return {pool["name"]: of_pool(pool["stats"]) for pool in cluster.mon_json("df")["pools"]}


def our_pool_figures(cluster: DaemonCluster) -> Figures:
    """The same of `ceph equilibrium df`."""
    return {pool["name"]: of_pool(pool) for pool in equilibrium_json(cluster, "df")["pools"]}


def of_pool(stats: Dict[str, Any]) -> Tuple[str, ...]:
    return texts(stats["stored"], in_per_cent(stats["percent_used"]), stats["max_avail"])


def highest(cluster: DaemonCluster) -> Figures:
    """Device class → the highest utilization of its OSDs, as `ceph osd df` prints it."""
    found: Dict[str, float] = {}
    for node in cluster.osd_nodes():
        name = node["device_class"]
        found[name] = max(found.get(name, 0.0), node["utilization"])
    return {name: (f"{ratio:.2f}",) for name, ratio in found.items()}


def our_highest(cluster: DaemonCluster) -> Figures:
    """The same of `ceph equilibrium status`."""
    return {row["device_class"]: (in_per_cent(row["max_utilization"]),)
            for row in status(cluster)["classes"]}


def in_per_cent(ratio: float) -> str:
    return f"{100.0 * ratio:.2f}"


def texts(*values: object) -> Tuple[str, ...]:
    return tuple(map(str, values))


def compare(cluster: DaemonCluster, theirs: Callable[[DaemonCluster], Figures],
            ours: Callable[[DaemonCluster], Figures]) -> None:
    """Asserts that both are equal at a moment at which Ceph's own do not change."""
    seen: List[Any] = []

    def equal() -> bool:
        before, said, after = theirs(cluster), ours(cluster), theirs(cluster)
        seen.append((before, said))
        return before == after == said
    try:
        wait_for("equal figures", equal, _COMPARED_SECONDS)
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
    cluster.remove_option("max_moves_per_round")


def test_figures_of_now_are_those_of_ceph_at_rest(
        cluster: DaemonCluster, unbalanced: workload.Usage) -> None:
    compare(cluster, osd_figures, our_osd_figures)
    compare(cluster, pool_figures, our_pool_figures)
    compare(cluster, highest, our_highest)


def test_off_ends_the_event_and_both_ends_are_in_the_cluster_log(
        cluster: DaemonCluster, unbalanced: workload.Usage, slow: None) -> None:
    before = len(_cluster_log(cluster))
    run(cluster, "on")
    event = wait_for("an event", lambda: _our_events(cluster, "events"), _LATE_SECONDS)[0]
    assert "equilibrium" not in cluster.ceph("-s").out.lower()
    run(cluster, "off")
    wait_for("the end of the event", lambda: not _our_events(cluster, "events"), _LATE_SECONDS)
    ended = _our_events(cluster, "completed")[-1]
    assert ended["id"] == event["id"], ended
    assert ended["failed"], ended
    assert "off" in ended["failure_message"], ended
    shown = cluster.ceph("progress").out
    assert "equilibrium" in shown.lower(), shown
    wait_for("two lines", lambda: len(_cluster_log(cluster)) >= before + 2, _LATE_SECONDS)
    begins, stopped = _cluster_log(cluster)[before:]
    assert begins.startswith("equilibrium: automatic balancing begins: ")
    assert stopped.startswith("equilibrium: automatic balancing stopped ")


def test_what_ceph_shows_while_it_balances(
        cluster: DaemonCluster, unbalanced: workload.Usage, slow: None,
        figure: Callable[[str], None]) -> None:
    seen: Dict[str, Dict[str, Any]] = {}
    compared = 0
    run(cluster, "on")
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
    assert [completed["id"]] == list(seen), completed
    assert not completed.get("failed"), completed
    figure(f"figures compared {compared} times while data moved; one event in `ceph progress`")


def test_services_show_the_endpoint_while_it_is_on(cluster: DaemonCluster) -> None:
    assert not endpoint(cluster)
    cluster.set_option("metrics_port", 19283)
    try:
        wait_for("the endpoint", lambda: "19283" in endpoint(cluster), _LATE_SECONDS)
    finally:
        cluster.remove_option("metrics_port")
    wait_for("no endpoint", lambda: not endpoint(cluster), _LATE_SECONDS)


def _our_events(cluster: DaemonCluster, kind: str) -> List[Dict[str, Any]]:
    return [event for event in cluster.mgr_json("progress json")[kind]
            if "equilibrium" in event["message"].lower()]


def _cluster_log(cluster: DaemonCluster) -> List[str]:
    """The module's lines in the monitor's cluster log, oldest first. `ceph log last` has no more
    than the last minute: Ceph keeps few entries, of which most tell of PGs."""
    lines = (cluster.work / "cluster.log").read_text().splitlines()
    return [line.partition("[INF] ")[2] for line in lines if "[INF] equilibrium:" in line]


def _our_health(cluster: DaemonCluster) -> List[str]:
    return [name for name in cluster.health_checks() if "EQUILIBRIUM" in name]


def _assert_metrics(cluster: DaemonCluster) -> None:
    """The active state is told, and no value is NaN."""
    samples = run(cluster, "metrics").out.splitlines()
    assert "ceph_equilibrium_active 1" in samples
    for line in samples:
        assert line.startswith("#") or not line.lower().endswith(" nan"), line
