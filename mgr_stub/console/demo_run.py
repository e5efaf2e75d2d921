"""The demo: balances an unbalanced cluster in virtual time and shows the progress."""

from __future__ import annotations

import sys
from typing import List

from ..clock import format_span
from ..errors import StubError, error_name
from . import tables
from .session import Session
from .sim_commands import run_idle, status_of

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
        print(f"   TIME   {classes}  MISPLACED  MOVING        LEFT  UPMAPS")

    def __call__(self) -> None:
        """Called after every round."""
        moving = bool(self._session.simulation.backfill.moving())
        if self._session.clock.now >= self._next_line or moving != self._was_moving:
            self._next_line = self._session.clock.now + _LINE_EVERY
            self._was_moving = moving
            self.line()

    def line(self) -> None:
        status = status_of(self._session.host)
        classes = "  ".join(f"{use['max']:>12.1%}  {use['min']:>10.1%}"
                            for use in status["classes"].values())
        print(f"{format_span(status['elapsed_seconds']):>7}   {classes}  "
              f"{status['misplaced_ratio']:>9.2%}  {status['moving_shards']:>6}  "
              f"{tables.format_bytes(status['remaining_bytes']):>10}  "
              f"{status['upmap_items']:>6}", flush=True)


def run_demo(session: Session) -> int:
    """Runs the demo; returns 0 or an errno."""
    cluster = session.cluster
    before = tables.usage_of(cluster)
    _print("A cluster that CRUSH alone has filled", _full_tables(session, before))
    command = "equilibrium on"
    print(f"\n$ ceph {command}")
    rc, out, err = session.command(command)
    for text in (out, "" if rc else err):
        if text:
            print(text.rstrip("\n"))
    if rc:
        print(f"Error {error_name(rc)}: {err}", file=sys.stderr)
        return abs(rc)
    print()
    progress = Progress(session)
    try:
        run_idle(session.host, progress, _LIMIT)
    except StubError as error:
        print(f"Error {error_name(error.code)}: {error.message}", file=sys.stderr)
        return abs(error.code)
    progress.line()
    after = tables.usage_of(cluster)
    _print("The same cluster after that", _full_tables(session, after))
    _print("Before and after", tables.comparison(before, after))
    return 0


def _full_tables(session: Session, usage: tables.ClusterUsage) -> List[str]:
    cluster = session.cluster
    return (tables.class_table(usage) + [""] + tables.osd_table(cluster, usage) + [""]
            + tables.pool_table(cluster, usage))


def _print(title: str, lines: List[str]) -> None:
    print(f"\n{title}\n")
    for line in lines:
        print(f"  {line}".rstrip())
