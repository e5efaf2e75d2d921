"""A1 the price of asking: at most one full look in 20 s and three an hour at rest beyond the loop's
own, whatever polls, in whatever state, however many drains are listed.

What asking costs: full looks and monitor commands, as the simulated mgr counts them.
"""
from __future__ import annotations

from bisect import bisect_left
from functools import partial
from operator import sub
from pathlib import Path
from typing import List, NamedTuple, Sequence

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from .. import clusters
from ..drive import command
from .asking import OTHERS, READS


#: What is read in every full look, and in nothing else.
_LOOK = "pg_progress"


class Cost(NamedTuple):
    """Of a span of time."""

    looks: List[float]       # their moments
    monitor_commands: int

    def most_within(self, seconds: float) -> int:
        """The most looks in any span of that length."""
        ends = [bisect_left(self.looks, at + seconds) for at in self.looks]
        return max(map(sub, ends, range(len(ends))), default=0)


def cost_of(session: Session, seconds: float, lines: Sequence[str], every: float) -> Cost:
    """Lets time pass while somebody runs one of the lines every so many seconds."""
    looks: List[float] = []
    commands: List[str] = []
    mgr = session.mgr
    count, send = mgr.count, mgr.send_command

    def counted(name: str) -> None:
        if name == _LOOK:
            looks.append(session.clock.now)
        count(name)

    def sent(result: object, svc_type: str, svc_id: str, command: str) -> None:
        commands.append(command)
        send(result, svc_type, svc_id, command)   # type: ignore[arg-type]
    mgr.count, mgr.send_command = counted, sent   # type: ignore[method-assign]
    start = session.clock.now
    for turn in range(int(seconds / every)):
        session.command(lines[turn % len(lines)])
        session.host.run_until(start + (turn + 1) * every)
    mgr.count, mgr.send_command = count, send     # type: ignore[method-assign]
    return Cost(looks, len(commands))


_HOUR, _POLL_SECONDS = 3600.0, 4.0
_LEAST_SECONDS, _AT_REST_AN_HOUR = 20.0, 3
#: So long somebody makes an epoch every other second, and all those that move are polled.
_EPOCHS_SECONDS = 600.0
_SET = "config set mgr mgr/equilibrium/"


#: State → the commands that lead to it. Stuck is above the bound where not much could be gained;
#: drains are done and listed.
STATES = {
    "balanced": "equilibrium on; sim run 6h",
    "stuck": f"{_SET}min_gain 0.9; equilibrium on; sim run 2h",
    "blocked": "sim flag set norebalance; equilibrium on; sim run 20m",
    "waiting": f"{_SET}begin_time 1200; equilibrium on; sim run 20m",
    "off": "sim run 20m",
    "drained": "equilibrium drain add 1; equilibrium drain add 2 3; sim run 4h",
    "moving": "sim backfill rate 2M; equilibrium on; sim run 10m"}


def _make_epochs(session: Session) -> None:
    """Somebody makes one every other second."""
    for turn in range(int(_EPOCHS_SECONDS / 2)):
        line = f"sim osd primary-affinity 0 {1 - turn % 2 * 0.01}"
        session.simulation.schedule.at(session.clock.now + 2.0 * turn,
                                       partial(session.dispatch, line.split()))


def _cost(folder: Path, state: str, asks: bool, seconds: float) -> Cost:
    folder.mkdir()
    session = clusters.session_of("random", 5, folder)
    for line in ("sim backfill rate 1G; sim run 5m; " + STATES[state]).split("; "):
        command(session, line)
    if state == "drained":
        _make_epochs(session)
    cost = cost_of(session, seconds, READS if asks else OTHERS, _POLL_SECONDS)
    assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks
    session.close()
    return cost


@pytest.mark.parametrize("state", few(reversed(STATES), 1))
def test_the_price_of_asking(state: str, tmp_path: Path) -> None:
    seconds = _EPOCHS_SECONDS if state in ("moving", "drained") else _HOUR
    alone, asked = (_cost(tmp_path / str(asks), state, asks, seconds) for asks in (False, True))
    beyond = len(asked.looks) - len(alone.looks)
    assert beyond <= (seconds / _LEAST_SECONDS if state == "moving" else _AT_REST_AN_HOUR)
    assert asked.most_within(_LEAST_SECONDS) <= max(1, alone.most_within(_LEAST_SECONDS))
    # a look needs a few: flags, options, whether OSDs may be stopped
    assert asked.monitor_commands - alone.monitor_commands <= 10 * max(1, beyond)
