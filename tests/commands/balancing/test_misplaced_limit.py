"""The misplaced limit is never passed by us, in whatever moment one looks."""

from __future__ import annotations

from typing import List, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.simulation import statistics

from ..asking import (
    ask, misplaced_ratio, optimize, run, shards_in_flight, up_sets)


class Watch:
    """Looks at the cluster after every epoch: (misplaced ratio, PGs under way)."""

    def __init__(self, session: Session) -> None:
        self.seen: List[Tuple[float, int]] = []
        self._session = session
        self._commit = session.simulation.commit
        session.simulation.commit = self._watched  # type: ignore[method-assign]

    def _watched(self) -> None:
        self._commit()
        moving = self._session.simulation.backfill.moving()
        self.seen.append((misplaced_ratio(self._session), len(moving)))

    @property
    def highest(self) -> float:
        return max(ratio for ratio, _ in self.seen)

    def keeps(self, limit: float) -> bool:
        """Never above the limit but with one PG alone."""
        return all(ratio <= limit or pgs <= 1 for ratio, pgs in self.seen)


def test_one_pg_alone_may_pass_it(session: Session) -> None:
    """A limit below any move's share: the moves go one by one, and status says so."""
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.0001")
    plan = optimize(session, "p vms --max-moves 4")
    before = up_sets(session)
    watch = Watch(session)
    run(session, "equilibrium execute p")
    status = ask(session, "status")
    assert shards_in_flight(status) <= 3 and "limit" in status["reason"]
    run(session, "sim run idle")
    assert watch.keeps(0.0001) and watch.highest > 0.0001
    assert up_sets(session) == {**before, **plan["predicted_up"]}


def test_limit_can_be_changed_at_run_time(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.004")
    optimize(session)
    run(session, "equilibrium execute p")
    few = ask(session, "status")
    assert few["limits"]["max_misplaced_ratio"] == 0.004
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.03")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.03
    run(session, "sim run 61s")                 # batches keep their distance
    many = ask(session, "status")
    assert many["execution"]["sent_moves"] > few["execution"]["sent_moves"]
    assert many["misplaced_ratio"] <= 0.03
    watch = Watch(session)
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.01", "sim run 10m")
    assert watch.seen[0][0] > 0.01              # what moves already goes on ...
    sent = ask(session, "status")["execution"]["sent_moves"]
    assert watch.highest <= 0.03 and sent >= many["execution"]["sent_moves"]
    run(session, "config rm mgr mgr/equilibrium/max_misplaced_ratio", "sim failover",
        "sim run 1m")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.05


@pytest.mark.parametrize("begin", [
    [], ["equilibrium on", "sim run idle"], ["equilibrium on", "sim osd down 3"]])
def test_limit_in_force_is_shown_in_every_state(session: Session, begin: List[str]) -> None:
    run(session, *begin, "sim run 20m")
    ask(session, "status")                      # the last look that a poll may ask for a while
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.03", "sim run 61s")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.03
    run(session, "config rm mgr mgr/equilibrium/max_misplaced_ratio", "sim run 61s")
    assert ask(session, "status")["limits"]["max_misplaced_ratio"] == 0.05


def misplaced(session: Session) -> float:
    """Ceph's own ratio."""
    return float(statistics.pg_status(session.cluster).get("misplaced_ratio", 0.0))


def test_room_taken_by_others_counts(session: Session) -> None:
    """Somebody else's upmaps have taken the whole limit: nothing of ours is added."""
    plan = optimize(session)
    changes = sorted(plan["upmap_items"].items())
    for pgid, items in changes[:len(changes) * 2 // 3]:
        pairs = " ".join(f"{source} {target}" for source, target in items)
        run(session, f"osd pg-upmap-items {pgid} {pairs}")
    run(session, "sim run 5s")
    foreign = misplaced(session)
    run(session, f"config set mgr mgr/equilibrium/max_misplaced_ratio {foreign * 0.9}")
    watch = Watch(session)
    run(session, "equilibrium execute p")
    status = ask(session, "status")
    assert status["state"] == "throttled" and status["execution"]["sent_moves"] == 0
    run(session, "sim run idle")
    assert watch.highest <= foreign
    assert ask(session, "status")["last_execution"]["outcome"] == "completed"


def test_statistics_that_come_late(session: Session) -> None:
    """Right after a batch Ceph shows nothing misplaced; a second round must not send again."""
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.01")
    optimize(session)
    watch = Watch(session)
    run(session, "equilibrium execute p")
    for _ in range(5):                          # rounds in which no time passes
        session.module.balancer.require_observation()
        session.host.run_pending()
    assert watch.keeps(0.01)
    assert misplaced(session) < 0.001
    assert ask(session, "status")["misplaced_ratio"] <= 0.01
