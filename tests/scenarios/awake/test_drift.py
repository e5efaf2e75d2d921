"""R1 a rest is deserved, over random streams of drift (`--drift-streams N`)."""
from __future__ import annotations

from pathlib import Path

import pytest

from equilibrium_mgr.planner.planner import make_plan
from mgr_stub.console.session import Session

from ..drive import command
from ..watch.watch import Watch
from . import drift


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "drift_seed" in metafunc.fixturenames:
        metafunc.parametrize("drift_seed",
                             range(3, 3 + metafunc.config.getoption("--drift-streams")))


def test_drift_is_acted_on(drift_seed: int, tmp_path: Path,
                           request: pytest.FixtureRequest) -> None:
    steps = 4 if request.config.getoption("--full") else 2
    played = drift.play(drift_seed, tmp_path / "state", steps=steps)
    assert not played.watch.broken, [phase.step for phase in played.phases]


@pytest.mark.parametrize("is_moving, cost", [(False, 0.007), (True, 0.01)])
def test_a_shard_that_others_move_is_no_drift(is_moving: bool, cost: float) -> None:
    """What is worth no plan that follows drift is taken back where others have done it, at rest or
    while a plan that follows drift is carried out."""
    session = Session.from_state(release=18)
    command(session, "sim backfill rate 1G")
    watch = Watch(session)
    command(session, "equilibrium on")
    session.host.run_for(5 * drift.HOUR)
    session.host.observers.append(lambda _: watch(session))
    session.host.run_for(drift.HOUR)
    cluster = session.cluster
    usage, items = cluster.usage, cluster.map.upmap_items
    highest = max(cluster.utilizations()["hdd"].values())
    pgid = min(items, key=lambda one: abs(highest + cost - max(
        usage[source].utilization + cluster.pgs[one].shard.total / usage[source].total
        for source, _ in items[one])))
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
