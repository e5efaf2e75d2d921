"""A mgr that sees the cluster late, or in part, ends where one that sees it well ends."""
from __future__ import annotations

from pathlib import Path
from typing import List

import pytest

from . import drive, random_events
from .scenario import Event, Scenario

_SAME_UTILIZATION = 0.01   # of the highest utilization at the end
#: One plan more is allowed: so many commands in proportion, and in number.
_MORE, _A_FEW = 1.3, 5


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "perturbed_seed" in metafunc.fixturenames:
        metafunc.parametrize("perturbed_seed", range(-(
            -metafunc.config.getoption("--event-streams") // 20)))


def perturbed(quiet: Scenario) -> Scenario:
    """Statistics are 60 s old, as Ceph 20's may be; new mgrs have not heard of some OSDs."""
    events: List[Event] = [Event(0.0, "sim stats lag 60s")]
    events += list(quiet.events[:1])
    for at in (700.0, 2400.0, 7200.0):
        events += [Event(at, "sim failover"), Event(at + 1.0, "sim stats gap 120s 0 1 2")]
    events.append(Event(random_events.REST_SECONDS - 3600.0, "sim stats lag 0s"))
    return quiet._replace(events=tuple(events + list(quiet.events[1:])))


def highest(result: drive.Result) -> float:
    return max(max(by_osd.values()) for by_osd in result.session.cluster.utilizations().values())


@pytest.mark.full
def test_it_ends_the_same_way(perturbed_seed: int, tmp_path: Path) -> None:
    quiet = random_events.quiet(perturbed_seed)
    results = []
    for name, played in (("clear", quiet), ("perturbed", perturbed(quiet))):
        (tmp_path / name).mkdir()
        results.append(drive.run(played, tmp_path / name))
    clear, blurred = results
    assert not blurred.watch.broken
    assert blurred.session.module.balancer.status.state == (
        clear.session.module.balancer.status.state)
    assert highest(blurred) <= highest(clear) + _SAME_UTILIZATION
    assert blurred.watch.figures.commands <= _MORE * clear.watch.figures.commands + _A_FEW
