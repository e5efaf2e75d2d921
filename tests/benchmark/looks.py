"""What a look at a cluster costs: processor seconds, the simulated mgr's answers among them."""
from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict

from mgr_stub.console.session import Session
from tests.support.units import MIB

from .clusters import Source

CHANGED_PGS = 100   # or all, where there are fewer
_TIMES = 3


def look_seconds(source: Source) -> Dict[str, float]:
    """The first look, and the median of later ones before which clients have written to 100 PGs."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session.from_state(str(source.write_state(Path(folder))), release=18)
    look: Callable[[], Any] = session.module.gateway.snapshot
    first = _seconds(look)
    later = []
    for number in range(_TIMES):
        _write(session, number)
        later.append(_seconds(look))
    session.close()
    return {"first_look_seconds": first, "changed_look_seconds": median(later)}


def _write(session: Session, number: int) -> None:
    """Every so-manieth PG holds more, and five seconds pass."""
    pgs = list(session.cluster.pgs.values())
    for pg in pgs[number::max(1, len(pgs) // CHANGED_PGS)][:CHANGED_PGS]:
        pg.forget_reports()
        pg.num_bytes += MIB
    session.cluster.invalidate_sums()
    session.command("sim run 5s")


def _seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
