"""What is said of more PGs against splitting for real."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.explain.followed import open_cluster
from tests.report import explanations
from tests.report.explanations import answer_of, explained, looked_at
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.few import few
from tests.support.units import GIB

from equilibrium_mgr.observation.cluster_view import ClusterView

#: What it may be off by, a ratio.
STATED = 0.015


def highest(session: Session, device_class: str = "hdd") -> float:
    found: float = max(osd["utilization"] for osd in ask_df(session) if
                       osd["device_class"] == device_class)
    return found / 100.0


def ask_df(session: Session) -> List[Dict[str, Any]]:
    nodes: List[Dict[str, Any]] = json.loads(run(session, "osd df --format json"))["nodes"]
    return nodes


@pytest.mark.parametrize("pool", few(["rbd", ""], 1))
@pytest.mark.parametrize("name, seed", [
    ("four", 1), *[pytest.param("few", seed, marks=pytest.mark.full) for seed in (1, 2)]])
@pytest.mark.full
def test_splitting_comes_to_what_was_planned(tmp_path: Path, name: str, seed: int,
                                             pool: str) -> None:
    """Of the fullest OSD, and of what a pool can take."""
    session = open_cluster(name, seed, tmp_path)
    run(session, "config set mgr mgr/equilibrium/min_gain 0", "equilibrium on", "sim run 6h")
    before = highest(session)
    advice = [one for one in ask(session, f"explain {pool}".strip())["advice"]
              if one["code"] == "granularity"]
    assert advice, "few PGs are the limit here"
    figures = advice[0]["figures"]
    assert figures["now_ratio"] == pytest.approx(before, abs=0.002)
    run(session, f"sim pool pg_num rbd {figures['pg_num']}", "sim run 1d")
    after, free = highest(session), ask(session, "df")["pools"][0]["free_bytes"]
    assert after == pytest.approx(figures["then_ratio"], abs=STATED)
    assert 0.97 * figures["then_free_bytes"] < free < 1.1 * figures["then_free_bytes"]
    session.close()


def few_shards(*osds: int, gib: int = 30) -> Cluster:
    cluster = Cluster(hosts(3)).pool(1, size=1, name="rbd", pg_num=len(osds))
    for ps, osd in enumerate(osds):
        cluster.pg(f"1.{ps:x}", [osd], gib * GIB)
    return cluster


def two_pools(gib: int, pg_num: int) -> Cluster:
    """The second has so many PGs, of which each OSD but the first has one."""
    cluster = few_shards(0, 0, 1, 2).pool(2, size=1, pg_num=pg_num)
    return cluster.pg("2.0", [1], gib * GIB).pg("2.1", [2], gib * GIB)


@pytest.mark.parametrize("cluster, pg_num", [
    (few_shards(0, 0, 1, 2), [128]), (few_shards(*(0,) * 60, gib=1), []),
    (two_pools(10, 2), [16]),     # the shards of the other pool are no smaller
    (two_pools(1, 700), [32]),    # 250 PGs per OSD
    (few_shards(0, 0, 1, 2).pg("1.4", [1], GIB, acting="2", state="active+remapped"), [])])
def test_more_pgs_are_advised_where_shards_are_large(cluster: Cluster, pg_num: List[int]) -> None:
    """Two shards of 30 GiB on an OSD of 100 GiB: 60 % there, where 40 % is possible."""
    advice = answer_of(looked_at(cluster), "osd.0").data["advice"]
    assert [one["figures"]["pg_num"] for one in advice] == pg_num


def seen_with_few_shards() -> Tuple[Harness, ClusterView]:
    harness = looked_at(few_shards(0, 0, 1, 2))
    view = harness.balancer.status.view
    assert view is not None
    return harness, view


def test_what_was_not_planned_or_gains_nothing_is_not_advised(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bound and the size of shards let hope."""
    harness, view = seen_with_few_shards()
    for usage, said in ((None, ["whether pg_num 128 of pool rbd helps is being planned;"
                                " ask again"]), (view.usage, [])):
        monkeypatch.setattr(explanations, "planned", lambda *_, usage=usage: usage)
        for what in ("osd.0", "rbd"):
            answer = answer_of(harness, what).data
            assert [one["sentence"] for one in answer["advice"]] == said
            assert answer["action"].startswith("nothing; the shards are larger")


def test_a_pool_that_was_renamed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan was made of a snapshot in which it had another name."""
    harness, view = seen_with_few_shards()
    usage = view.usage._replace(pools={
        f"old-{name}": space for name, space in view.usage.pools.items()})
    monkeypatch.setattr(explanations, "planned", lambda *_: usage)
    assert answer_of(harness, "osd.0").data["advice"] == []


def test_a_pool_may_be_gone_since_the_bounds_were_computed() -> None:
    """As after a batch: the bounds stay, and the snapshot is a newer one."""
    harness = looked_at(two_pools(10, 2))
    moving = few_shards(0, 0, 1, 2).pg("1.4", [1], GIB, acting=[2], state="active+remapped")
    status = harness.balancer.status
    assert status.view is not None
    view = status.view._replace(snapshot=moving.snapshot())
    answer = explained(harness, "osd.0", status._replace(view=view))
    assert answer is not None and answer.data["advice"] == []
