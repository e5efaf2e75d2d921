"""The pg_num that is advised against splitting for real."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.explain.followed import open_cluster
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.planner.bound.lower_bound import pg_num_advice, utilization_bounds

#: What the expected utilization may be off by, a ratio.
STATED = 0.015


def highest(session: Session, device_class: str = "hdd") -> float:
    found: float = max(osd["utilization"] for osd in ask_df(session) if
                       osd["device_class"] == device_class)
    return found / 100.0


def ask_df(session: Session) -> List[Dict[str, Any]]:
    nodes: List[Dict[str, Any]] = json.loads(run(session, "osd df --format json"))["nodes"]
    return nodes


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_splitting_comes_to_what_is_expected(tmp_path: Path, seed: int) -> None:
    session = open_cluster("few", seed, tmp_path)
    run(session, "config set mgr mgr/equilibrium/min_gain 0", "equilibrium on", "sim run 6h")
    before = highest(session)
    advice = [one for one in ask(session, "explain")["advice"] if one["code"] == "granularity"]
    assert advice, "few PGs are the limit here"
    figures = advice[0]["figures"]
    assert figures["now_ratio"] == pytest.approx(before, abs=0.002)
    run(session, f"sim pool pg_num {figures['pool']} {figures['pg_num']}", "sim run 1d")
    after = highest(session)
    print(f"{seed}: {before:.4f} -> {figures['then_ratio']:.4f} said, {after:.4f} seen")
    assert after == pytest.approx(figures["then_ratio"], abs=STATED)
    assert after < before
    session.close()


def advised(cluster: Cluster) -> Tuple[int, float]:
    snapshot = cluster.snapshot()
    (osd_set,) = utilization_bounds(snapshot).sets
    return pg_num_advice(snapshot, osd_set, 1, 0)


def test_shards_of_a_few_pgs() -> None:
    """Four shards of 30 GiB on three OSDs of 100 GiB; with shards of 0.94 GiB: 40.9 %."""
    cluster = Cluster(hosts(3)).pool(1, size=1, name="rbd", pg_num=4)
    cluster.pg("1.0", [0], 30 * GIB).pg("1.1", [0], 30 * GIB)
    cluster.pg("1.2", [1], 30 * GIB).pg("1.3", [2], 30 * GIB)
    assert advised(cluster) == (128, pytest.approx(0.409, abs=0.001))


def test_small_shards_need_no_splitting() -> None:
    cluster = Cluster(hosts(3)).pool(1, size=1, name="rbd")
    for ps in range(60):
        cluster.pg(f"1.{ps:x}", [0], GIB // 4)
    assert advised(cluster)[0] == cluster.snapshot().pools[1].pg_num
