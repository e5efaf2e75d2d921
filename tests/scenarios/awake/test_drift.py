"""R1 a rest is deserved, over random streams of drift (`--drift-streams N`)."""
from __future__ import annotations

from pathlib import Path
from typing import Tuple

import pytest

from equilibrium_mgr.planner.planner import make_plan
from tests.support.few import few

from ..drive import command
from . import drift


@pytest.mark.full
def test_drift_is_acted_on(drift_seed: int, tmp_path: Path,
                           request: pytest.FixtureRequest) -> None:
    steps = 4 if request.config.getoption("--full") else 2
    played = drift.play(drift_seed, tmp_path / "state", steps=steps)
    assert not played.watch.broken, [phase.step for phase in played.phases]


@pytest.mark.parametrize("case", few([(False, 0.007), (True, 0.01)], 1))
def test_a_shard_that_others_move_is_no_drift(case: Tuple[bool, float]) -> None:
    """What is worth no plan that follows drift is taken back where others have done it, at rest or
    while a plan that follows drift is carried out."""
    is_moving, cost = case
    session, watch = drift.balanced_demo()
    session.host.observers.append(lambda _: watch(session))
    session.host.run_for(drift.HOUR)
    cluster = session.cluster
    usage, items = cluster.usage, cluster.map.upmap_items
    highest = max(cluster.utilizations()["hdd"].values())

    def distance(pgid: str) -> float:
        """Of what the fullest source would be without the PG's items."""
        size, sources = cluster.pgs[pgid].shard.total, [usage[osd] for osd, _ in items[pgid]]
        return abs(highest + cost - max(
            one.utilization + size / one.total for one in sources))
    pgid = min(items, key=distance)
    if is_moving:
        command(session, "sim backfill rate 2M")
        command(session, "sim osd allocation 1.03 5")
        session.host.run_for(drift.HOUR)
        assert session.module.balancer.status.state == "moving"
    command(session, f"osd rm-pg-upmap-items {pgid}")
    command(session, "sim backfill rate 1G")
    session.host.run_for(2 * drift.HOUR)
    assert not watch.broken
    plan = make_plan(session.module.balancer.observer.view.snapshot)
    assert plan.before.classes["hdd"].max - plan.after.classes["hdd"].max < 0.002
    session.close()


@pytest.mark.full
def test_drift_moves_little_more_than_a_plan_a_day_and_leaves_no_point() -> None:
    weeks = [drift.week(seed, 5, is_continuous=True) for seed in range(2)]
    daily = sum(drift.week(seed, 5, is_continuous=False).moved_bytes for seed in range(2))
    assert sum(one.moved_bytes for one in weeks) <= 1.3 * daily
    assert max(one.worst for one in weeks) < 0.01
