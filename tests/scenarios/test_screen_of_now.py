"""What `status` says from the first command on, in situations that one look does not show: runs of
the demo cluster, and random streams (`--event-streams N`), asked at every event and between."""
from __future__ import annotations

from pathlib import Path
from typing import Dict

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from . import drive, random_events
from .rules.screen_rules import ScreenOfNow

#: Name → command lines, one after the other.
RUNS: Dict[str, str] = {
    "full while off": "sim write fast 240G; sim run 2m; sim run 20m",
    "full from the start": "sim write fast 240G; osd set-full-ratio 0.97; sim run 5m;"
                           " osd set-full-ratio 0.95",
    "paused while on": "equilibrium on; sim run 5m; osd set pause; sim run 5m; osd unset pause;"
                       " sim run 5m",
    "a flag comes and goes": "sim osd down 3; osd set noout; sim run 2m; osd unset noout;"
                             " sim run 1m; sim osd up 3; sim run 5m",
    "down while off": "sim run 30m; sim host down host3; sim run 1m; sim host up host3;"
                      " sim run 1m",
    "a class is nearly full": "sim write fast 240G; sim run 14m; equilibrium on; sim run 2m",
    "no monitor": "equilibrium on; sim run 10m; sim mon down; sim run 15m; sim mon up;"
                  " sim run 5m",
    "a new mgr": "equilibrium on; sim run 7m; sim failover; sim run 17s; sim run 10m;"
                 " balancer on; sim run 90s; balancer off; sim run 5m",
    "flags of a host and a class": "equilibrium on; sim run 5m; osd set-group noout host3;"
                                   " sim host down host3; sim run 1m; osd unset-group noout host3;"
                                   " osd set-group noup hdd; sim run 1m; osd unset-group noup hdd;"
                                   " sim host up host3; sim run 5m",
    "all that is copied fast": "config set osd osd_mclock_profile high_recovery_ops;"
                               " sim backfill rate 20M; equilibrium on; sim run 30m",
    "a class is full": "sim write fast 240G; equilibrium on; sim run 34m; sim write fast 240G;"
                       " sim run 40m",
    "one after the other": "equilibrium on; sim run 20m; equilibrium drain add osd.6;"
                           " sim run 90m",
    "recovery does not fit": "equilibrium on; sim run 3h; sim osd out 16 20 8; sim run 1h",
    "it becomes full, not fits": "equilibrium on; sim run 10m; sim osd crush-reweight 16 2;"
                                 " sim run 45m",
}
_RELEASE = {"all that is copied fast": 20}   # of Ceph, where it matters
#: Streams for one of `--event-streams`.
_STREAMS = 2


#: The last ones take long, and others show a part of them.
_LONG = 4


@pytest.mark.parametrize("name", few(RUNS, len(RUNS) - _LONG))
def test_screen_of_a_run(name: str) -> None:
    session, screen = Session.from_state(None, _RELEASE.get(name)), ScreenOfNow()
    session.host.observers.append(lambda _: screen.observe(session))
    for line in ["equilibrium status", *RUNS[name].split("; ")]:
        drive.command(session, line)
        screen.observe(session, is_event=True)
    session.close()
    assert screen.asked > 3 and not screen.broken, "\n".join(screen.broken)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "screen_seed" in metafunc.fixturenames:
        count: int = metafunc.config.getoption("--event-streams")
        metafunc.parametrize("screen_seed", few(range(100, 100 + count * _STREAMS), 1))


def test_screen_of_a_stream(screen_seed: int, tmp_path: Path) -> None:
    result = drive.run(random_events.scenario(screen_seed), tmp_path)
    screen = result.watch.screen
    assert screen.asked > 25 and not screen.broken, "\n".join(screen.broken)
