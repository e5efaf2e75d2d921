"""What only reports, and fails: rounds go on, and `off` is stored."""
from __future__ import annotations

from typing import Any

import pytest

from tests.support.fakes import FakeGateway, Harness
from tests.support.rounds import executing, successor, uneven


def _fails(*_: Any) -> Any:
    raise ZeroDivisionError("a report")


def _executing(monkeypatch: pytest.MonkeyPatch, broken: str) -> Harness:
    if broken == "cluster log":
        monkeypatch.setattr(FakeGateway, "write_to_cluster_log", _fails)
    harness = Harness(uneven(), max_moves_per_round=1)
    if broken == "rates":
        monkeypatch.setattr(
            "equilibrium_mgr.observation.observer.measured_rates", _fails)
    executing(harness)
    harness.round()
    return harness


BROKEN = pytest.mark.parametrize("broken", ["cluster log", "rates"])


@BROKEN
def test_off_is_final_all_the_same(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    harness = _executing(monkeypatch, broken)
    assert harness.balancer.switch_off() == "p"
    assert harness.kv.values.get("execution") is None
    again = successor(harness)
    again.round()
    assert len(harness.sent) == 1
    assert not again.sent
    assert [entry["moves"] for entry in again.history] == [1]
