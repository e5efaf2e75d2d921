"""Statistics right after a failover, when not every OSD has reported to the new mgr."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import pytest

from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(clusters.state(
        [clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [1, 0, 3])]))


def numbers(session: Any) -> List[int]:
    return [record.get("seq", 0) for record in session.mgr.get("osd_stats")["osd_stats"]]


def test_sequence_numbers_of_hanging_osds_stay(session: Any) -> None:
    run(session, "sim stats hang 10m 1")
    before = numbers(session)
    run(session, "sim run 5m")
    later = [now > then for now, then in zip(numbers(session), before)]
    assert later == [True, False, True, True, True, True]
    assert session.simulation.reports.hanging_since == {1: session.clock.now - 300.0}
    run(session, "sim run 5m")
    for now, then in zip(numbers(session), before):
        assert now > then


def test_command_in_the_middle_of_a_call(session: Any) -> None:
    def flags() -> List[str]:
        return list(session.mgr.get("osd_map")["flags_set"])
    told: List[Tuple[str, int]] = []
    session.listeners.append(lambda line, code: told.append((line, code)))
    run(session, "sim meanwhile before-get 2 sim flag set norebalance")
    assert "norebalance" not in flags() and not told
    assert "norebalance" in flags()
    assert told == [("sim flag set norebalance", 0)]
