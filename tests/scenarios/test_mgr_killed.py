"""The mgr dies at every step of the loop; its successor finishes, and nothing illegal is left."""
from __future__ import annotations

from pathlib import Path

import pytest

from . import drive
from .scenario import Event, Scenario

_HOURS = 12
#: Before the first such call, and after the fourth: in the first batch and in the middle of one.
_POINTS = [when + "-" + what for what in ("get", "map", "send", "store")
           for when in ("before", "after")]
_COUNTS = {"before": 1, "after": 4}
#: The highest utilization may end so much higher than without the death: a new plan of the rest.
_SAME = 0.005


def story(death: str = "") -> Scenario:
    events = [Event(0.0, "equilibrium on")]
    if death:
        events.append(Event(120.0, "sim mgr fail at " + death))
    return Scenario(name="killed", description="", cluster="erasure", seed=2,
                    options=(("max_misplaced_ratio", "0.05"),), events=tuple(events),
                    seconds=_HOURS * 3600.0, expected=())


def highest(result: drive.Result) -> float:
    return max(max(by_osd.values()) for by_osd in result.session.cluster.utilizations().values())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> float:
    return highest(drive.run(story(), tmp_path_factory.mktemp("undisturbed")))


@pytest.mark.parametrize("point", _POINTS)
def test_the_successor_finishes(point: str, undisturbed: float, tmp_path: Path) -> None:
    count = _COUNTS[point.partition("-")[0]]
    result = drive.run(story(f"{point} {count}"), tmp_path)
    assert not result.watch.broken
    assert result.session.module.balancer.state == "balanced", result.lines
    assert highest(result) <= undisturbed + _SAME
