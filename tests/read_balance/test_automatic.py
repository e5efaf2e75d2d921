"""Automatic read balance on a simulated cluster: when it begins, what stops it, what it leaves."""
from __future__ import annotations

from typing import Any, Iterator, List, Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster
from tests.support.fakes import FakeGateway

from equilibrium_mgr.control.auto_planner import NextStep
from equilibrium_mgr.execution.verdict import Verdict
from equilibrium_mgr.snapshot import reason_codes as codes
from equilibrium_mgr.control.automatic import reads
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.read_balance.read_plan import read_plan
from equilibrium_mgr.settings import Settings, default_settings
from mgr_stub.console.session import Session
from tests.commands.asking import run
from tests.read_balance.test_commands import ON, REEF, primaries
from tests.read_balance.test_read_plan import uneven

#: Enough for the demo cluster to be balanced, and not for all primaries.
_BALANCED_SECONDS = 7200


@pytest.fixture
def session() -> Iterator[Session]:
    """The demo cluster; one primary is set at a time."""
    opened = Session.from_state(None, release=20)
    run(opened, "config set mgr mgr/equilibrium/start_delay 0", ON, REEF, "sim backfill rate 1G",
        "config set mgr mgr/equilibrium/max_moves_per_round 1")
    yield opened
    opened.close()


def sent(session: Session) -> int:
    """Primaries that were sent to the monitor."""
    return sum(entry.prefix == "osd pg-upmap-primary" for entry in session.simulation.monitor.log)


def until_it_has_begun(session: Session) -> int:
    """The primaries that are set by then."""
    run(session, "equilibrium on")
    for _ in range(_BALANCED_SECONDS // 10):
        session.host.run_for(10.0)
        if primaries(session):
            return len(primaries(session))
    raise AssertionError("no primary was set")


#: What begins and what ends it.
_STOPS = (
    ("osd set norebalance", "osd unset norebalance"),
    ("config set mgr mgr/equilibrium/end_time 0001", "config rm mgr mgr/equilibrium/end_time"),
    ("config set mgr mgr/balancer/active true", "config set mgr mgr/balancer/active false"))


def test_what_stops_balancing_stops_it(session: Session) -> None:
    """Nobody has asked for it by name."""
    until_it_has_begun(session)
    for stop, go_on in _STOPS:
        run(session, stop)
        session.host.run_for(10.0)
        stopped = sent(session)
        session.host.run_for(120.0)
        assert sent(session) == stopped, stop
        run(session, go_on)
        session.host.run_for(90.0)
        assert sent(session) > stopped, go_on


class Rounds:
    """AutomaticReads at rest; `made` are the seconds at which it was made to plan."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.made: List[float] = []
        self.settings: Settings = default_settings()._replace(active=True, read_balance=True)
        self.reads = reads.AutomaticReads(
            FakeGateway(uneven()), lambda: self.now)  # type: ignore[arg-type]
        monkeypatch.setattr(reads, "read_plan", self._planned)

    def _planned(self, *given: Any) -> Plan:
        self.made.append(self.now)
        return read_plan(*given)

    def until(self, seconds: float, cluster: Cluster) -> Optional[NextStep]:
        """A round a minute; the last step that plans."""
        cluster.extra["require_min_compat_client"] = "reef"
        found, snapshot = None, cluster.snapshot()
        while self.now < seconds:
            idle = NextStep(Verdict(codes.BALANCED), is_idle=True)
            step = self.reads.next_step(idle, snapshot, self.settings)
            found = step if step.plan is not None else found
            self.now += 60.0
        return found


def test_while_all_is_where_it_was_it_plans_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(monkeypatch)
    assert rounds.until(86_400.0, uneven()) is not None   # nobody carries it out
    assert len(rounds.made) <= 10
    assert [later - sooner for sooner, later in zip(rounds.made, rounds.made[1:])][:2] == [
        600.0, 1200.0]


def test_what_has_changed_is_planned_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(monkeypatch)
    rounds.until(86_400.0, uneven())
    count = len(rounds.made)
    rounds.until(rounds.now + 600.0, uneven().pg("1.0", [1, 0]))
    assert len(rounds.made) == count + 1
    rounds.until(rounds.now + 600.0, uneven().pg("1.0", [1, 0]).osd(2, primary_affinity=0.5))
    assert len(rounds.made) == count + 2


def test_options_limit_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they limit moves."""
    rounds = Rounds(monkeypatch)
    rounds.settings = rounds.settings._replace(not_buckets=frozenset({"osd.0"}))
    assert rounds.until(3600.0, uneven()) is None
    rounds.settings = rounds.settings._replace(not_buckets=frozenset({"osd.1"}))
    step = rounds.until(7200.0, uneven())
    assert step is not None and step.plan is not None
    assert {change.primary for change in step.plan.changes} == {2, 3}


def test_osds_of_an_older_release_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = uneven()
    cluster.extra["require_osd_release"] = "quincy"
    assert Rounds(monkeypatch).until(3600.0, cluster) is None
