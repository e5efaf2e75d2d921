"""What is said of more PGs against splitting for real."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.explain.followed import open_cluster
from tests.report.explanations import answer_of, looked_at
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

#: What it may be off by, a ratio.
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
def test_splitting_comes_to_what_the_model_says(tmp_path: Path, seed: int) -> None:
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


@pytest.mark.parametrize("osds, gib, pg_num", [((0, 0, 1, 2), 30, [128]), ((0,) * 60, 1, [])])
def test_more_pgs_are_advised_where_shards_are_large(
        osds: Tuple[int, ...], gib: int, pg_num: List[int]) -> None:
    """Two shards of 30 GiB on an OSD of 100 GiB: 60 % there, where 40 % is possible."""
    cluster = Cluster(hosts(3)).pool(1, size=1, name="rbd", pg_num=len(osds))
    for ps, osd in enumerate(osds):
        cluster.pg(f"1.{ps:x}", [osd], gib * GIB)
    advice = answer_of(looked_at(cluster), "osd.0").data["advice"]
    assert [one["figures"]["pg_num"] for one in advice] == pg_num
