"""Commands that only read, and scrapes, put in at random moments: between rounds and inside them,
as other threads of the mgr do."""
from __future__ import annotations

import errno
import random
import shlex
from typing import Sequence

from mgr_stub.console.session import Session

READS: Sequence[str] = ["equilibrium " + line for line in (
    "status; status --format json; osds; osds --format json; eval; eval --format json; explain; "
    "explain osd.1; explain 1.0; df; moves; ls; history; eval --add new:2x1T:hdd@default; "
    "eval --pg-num rbd=256; drain ls; pool ls; metrics; metrics; report; dump-state").split("; ")]
#: Foreign commands that ask nothing of the module.
OTHERS: Sequence[str] = ("osd dump", "health")
#: Of the asks inside a round, calls of the mgr's API at which they come.
_CALLS = ("get", "get_osdmap", "set_store", "send_command")
_INSIDE, _LATEST_CALL = 0.3, 40


class Asker:
    """Asks on average once in `mean` seconds: now in bursts, now seldom. With OTHERS for `lines` it
    does nothing but cut time into the same pieces."""

    def __init__(self, seed: str, mean: float, lines: Sequence[str] = READS) -> None:
        self._rng = random.Random(seed)
        self._mean = mean
        self._lines = lines
        self.asked = 0

    def run_until(self, session: Session, moment: float) -> None:
        """Lets time pass up to a moment of the clock that never jumps."""
        while True:
            after = self._rng.expovariate(1.0 / self._mean)
            due = session.clock.now + (after if self._rng.random() < 0.7 else 0.1 * after)
            if due >= moment:
                session.host.run_until(max(moment, session.clock.now))
                return
            session.host.run_until(due)
            self._ask(session)

    def _ask(self, session: Session) -> None:
        line = self._rng.choice(self._lines)
        inside = self._rng.random() < _INSIDE
        point = self._rng.choice(_CALLS), self._rng.random() < 0.5, self._rng.randint(
            1, _LATEST_CALL)
        if inside and session.module is not None and not session.mgr.process.counts_calls:
            session.host.interrupt_at(*point, lambda: self.ask(session, line, inside=True))
        else:
            self.ask(session, line)

    def ask(self, session: Session, line: str, inside: bool = False) -> None:
        """Raises AssertionError where a command fails, but for want of a look or of a mgr."""
        self.asked += 1
        code, _, message = (session.dispatch(shlex.split(line)) if inside
                            else session.command(line))
        assert -code in (0, errno.EAGAIN, errno.ENOENT, errno.ETIMEDOUT), f"'{line}': {message}"
