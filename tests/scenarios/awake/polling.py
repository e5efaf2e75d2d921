"""What asking costs: full looks and monitor commands, as the simulated mgr counts them."""
from __future__ import annotations

from typing import List, NamedTuple, Sequence

from mgr_stub.console.session import Session

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
    mgr.count, mgr.send_command = counted, sent   # type: ignore[assignment]
    start = session.clock.now
    for turn in range(int(seconds / every)):
        session.command(lines[turn % len(lines)])
        session.host.run_until(start + (turn + 1) * every)
    mgr.count, mgr.send_command = count, send     # type: ignore[assignment]
    return Cost(looks, len(commands))
