"""The mgr dies at every step of the loop; its successor finishes, and nothing illegal is left."""
from __future__ import annotations

from pathlib import Path
from typing import Tuple

import pytest

from tests.support.few import few
from . import drive
from .scenario import Event, Scenario

_HOURS = 12
#: Before the first such call, and after the fourth: in the first batch and in the middle of one.
_POINTS = [when + "-" + what for what in ("send", "store", "get", "map")
           for when in ("before", "after")]
_COUNTS = {"before": 1, "after": 4}
#: The highest utilization may end so much higher than without the death: a new plan of the rest.
_SAME = 0.005


#: (layout, seed)
Cluster = Tuple[str, int]


def story(cluster: Cluster, death: str = "") -> Scenario:
    events = [Event(0.0, "equilibrium on")]
    if death:
        events.append(Event(120.0, "sim mgr fail at " + death))
    return Scenario(name="killed", description="", cluster=cluster[0], seed=cluster[1],
                    options=(("max_misplaced_ratio", "0.05"),), events=tuple(events),
                    seconds=_HOURS * 3600.0, expected=())


def highest(result: drive.Result) -> float:
    return max(max(by_osd.values()) for by_osd in result.session.cluster.utilizations().values())


@pytest.fixture(scope="module", params=[
    ("random", 6), pytest.param(("erasure", 2), marks=pytest.mark.full)], ids=lambda made: made[0])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    made: Cluster = request.param
    return made


@pytest.fixture(scope="module")
def undisturbed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> float:
    return highest(drive.run(story(cluster), tmp_path_factory.mktemp("undisturbed")))


@pytest.mark.parametrize("point", few(_POINTS, 1))
def test_the_successor_finishes(point: str, cluster: Cluster, undisturbed: float,
                                tmp_path: Path) -> None:
    count = _COUNTS[point.partition("-")[0]]
    result = drive.run(story(cluster, f"{point} {count}"), tmp_path)
    assert not result.watch.broken
    assert result.session.module.balancer.status.state == "balanced", result.lines
    assert highest(result) <= undisturbed + _SAME
