"""The demo: balances an unbalanced cluster in virtual time and shows the progress."""

from __future__ import annotations

import sys

from ..clock import format_span
from ..errors import StubError, error_name
from ..simulation.statistics import pg_status
from .session import Session
from .sim_commands import run_idle

#: Shortest virtual time between two progress lines, in seconds.
_LINE_EVERY = 600.0

#: Virtual seconds after which the demo stops with an error.
_LIMIT = 10 * 86400.0


class Progress:
    """Prints progress lines while the simulation runs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next_line = session.clock.now
        self._was_moving = False
        classes = "  ".join(f"{name + ' HIGHEST':>12}  {name + ' LOWEST':>10}"
                            for name in session.cluster.utilizations())
        print(f"\n   TIME   {classes}  MISPLACED  MOVING       LEFT  UPMAPS")

    def __call__(self) -> None:
        """Shows the cluster; called after every round."""
        moving = bool(self._session.simulation.backfill.moving())
        if self._session.clock.now >= self._next_line or moving != self._was_moving:
            self._next_line = self._session.clock.now + _LINE_EVERY
            self._was_moving = moving
            self.line()

    def line(self) -> None:
        cluster = self._session.cluster
        clock = self._session.clock
        moving = self._session.simulation.backfill.moving()
        classes = "  ".join(f"{max(used.values()):>12.1%}  {min(used.values()):>10.1%}"
                            for used in cluster.utilizations().values())
        misplaced = pg_status(cluster).get("misplaced_ratio", 0.0)
        shards = sum(len(pg.transfers) for pg in moving)
        gib = sum(pg.remaining_bytes() for pg in moving) / (1 << 30)
        items = len(cluster.map.upmap_items)
        moving_columns = f"{misplaced:>9.2%}  {shards:>6}  {gib:>5.0f} GiB"
        print(f"{format_span(clock.elapsed()):>7}   {classes}  {moving_columns}  {items:>6}",
              flush=True)


def run_demo(session: Session) -> int:
    """Runs the demo; returns 0 or an errno."""
    print("A cluster that CRUSH alone has filled:")
    try:
        for command in ("equilibrium eval", "equilibrium on"):
            _show(session, command)
        progress = Progress(session)
        run_idle(session.host, progress, _LIMIT)
        progress.line()
        print("\nThe same cluster after that:")
        _show(session, "equilibrium eval")
    except StubError as error:
        print(f"Error {error_name(error.code)}: {error.message}", file=sys.stderr)
        return abs(error.code)
    return 0


def _show(session: Session, command: str) -> None:
    """Runs a command and prints it with its answer; StubError if it fails."""
    print(f"\n$ ceph {command}")
    rc, out, err = session.command(command)
    if rc:
        raise StubError(rc, err)
    print("\n".join(text.rstrip("\n") for text in (out, err) if text))
