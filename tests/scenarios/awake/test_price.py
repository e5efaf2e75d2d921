"""A1 the price of asking: at most one full look in 20 s and three an hour at rest beyond the loop's
own, whatever polls, in whatever state, however many drains are listed.

What asking costs: full looks and monitor commands, as the simulated mgr counts them.
"""
from __future__ import annotations

import pytest
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence

from mgr_stub.console.session import Session

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
        return max((sum(at <= look < at + seconds for look in self.looks) for at in self.looks),
                   default=0)


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


def _balanced(session: Session) -> None:
    command(session, "equilibrium on")
    session.host.run_for(6 * _HOUR)


def _stuck(session: Session) -> None:
    """Above the bound, and not much could be gained."""
    command(session, _SET + "min_gain 0.9")
    command(session, "equilibrium on")
    session.host.run_for(2 * _HOUR)


def _blocked(session: Session) -> None:
    command(session, "sim flag set norebalance")
    command(session, "equilibrium on")
    session.host.run_for(1200.0)


def _waiting(session: Session) -> None:
    command(session, _SET + "begin_time 1200")
    command(session, "equilibrium on")
    session.host.run_for(1200.0)


def _off(session: Session) -> None:
    session.host.run_for(1200.0)


def _drained(session: Session) -> None:
    """Done and listed, while somebody makes an epoch every other second."""
    command(session, "equilibrium drain add 1")
    command(session, "equilibrium drain add 2 3")
    session.host.run_for(4 * _HOUR)
    for turn in range(int(_EPOCHS_SECONDS / 2)):
        session.simulation.schedule.at(session.clock.now + 2.0 * turn, partial(
            session.dispatch, ["sim", "osd", "primary-affinity", "0", str(1 - turn % 2 * 0.01)]))


def _moving(session: Session) -> None:
    command(session, "sim backfill rate 2M")
    command(session, "equilibrium on")
    session.host.run_for(600.0)


STATES: Dict[str, Callable[[Session], None]] = {
    "balanced": _balanced, "stuck": _stuck, "blocked": _blocked, "waiting": _waiting, "off": _off,
    "drained": _drained, "moving": _moving}


def _cost(folder: Path, state: str, asks: bool, seconds: float) -> Cost:
    folder.mkdir()
    session = clusters.session_of("random", 5, folder)
    command(session, "sim backfill rate 1G")
    session.host.run_for(300.0)
    STATES[state](session)
    cost = cost_of(session, seconds, READS if asks else OTHERS, _POLL_SECONDS)
    assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks
    session.close()
    return cost


@pytest.mark.parametrize("state", [
    "moving",
    *(pytest.param(state, marks=pytest.mark.full) for state in (
        "balanced", "off", "drained", "stuck", "blocked", "waiting"))])
def test_the_price_of_asking(state: str, tmp_path: Path) -> None:
    seconds = _EPOCHS_SECONDS if state in ("moving", "drained") else _HOUR
    alone, asked = (_cost(tmp_path / str(asks), state, asks, seconds) for asks in (False, True))
    beyond = len(asked.looks) - len(alone.looks)
    assert beyond <= (seconds / _LEAST_SECONDS if state == "moving" else _AT_REST_AN_HOUR)
    assert asked.most_within(_LEAST_SECONDS) <= max(1, alone.most_within(_LEAST_SECONDS))
    # a look needs a few: flags, options, whether OSDs may be stopped
    assert asked.monitor_commands - alone.monitor_commands <= 10 * max(1, beyond)
