"""Command lines that speak to the simulation: `sim run`, `sim save`, `sim status`, ..."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from . import statistics
from .clock import format_span, format_time, parse_span
from .errors import StubError, invalid
from .save import save_state

if TYPE_CHECKING:
    from .session import Session

Answer = Tuple[int, str, str]

#: Virtual seconds after which `sim run idle` gives up.
IDLE_LIMIT = 60 * 86400.0

#: Quiet rounds of the module after which the simulation counts as idle.
QUIET_ROUNDS = 2


def run(session: "Session", words: List[str]) -> Answer:
    """Runs `sim WORDS`; StubError for what it does not know."""
    name = words[0] if words else ""
    handler = _HANDLERS.get(name)
    if handler is None:
        known = ", ".join(sorted(_HANDLERS))
        raise invalid(f"'sim {' '.join(words)}' is not known; there are {known}")
    return handler(session, words[1:])


def _run_time(session: "Session", words: List[str]) -> Answer:
    if len(words) != 1:
        raise invalid("sim run needs a time span such as 2h, or idle")
    if words[0] == "idle":
        run_idle(session)
    else:
        session.run_until(session.clock.now + parse_span(words[0]))
    return 0, "", ""


def run_idle(session: "Session", report: Optional[Callable[[], None]] = None,
             limit: float = IDLE_LIMIT) -> None:
    """Runs rounds until nothing moves, nothing is planned, and two more rounds have been quiet.

    `report` is called after every round. StubError (ETIMEDOUT) when that takes longer than
    `limit` virtual seconds.
    """
    end = session.clock.now + limit
    quiet = 0
    while quiet < QUIET_ROUNDS:
        if session.clock.now >= end:
            raise StubError(errno.ETIMEDOUT,
                            f"the simulation is not idle after {format_span(limit)}")
        epoch = session.cluster.map.epoch
        was_busy = session.busy()
        session.next_round_and_rest()
        if report is not None:
            report()
        still = epoch == session.cluster.map.epoch
        quiet = quiet + 1 if still and not was_busy and not session.busy() else 0


def _save(session: "Session", words: List[str]) -> Answer:
    if len(words) != 1:
        raise invalid("sim save needs one file name")
    save_state(session.cluster, words[0])
    return 0, "", ""


def _status(session: "Session", words: List[str]) -> Answer:
    status = status_of(session)
    if words in (["--format", "json"], ["--format=json"], ["-f", "json"]):
        return 0, json.dumps(status), ""
    if words:
        raise invalid("sim status takes no arguments but --format json")
    lines = [f"time: {status['time']} ({format_span(status['elapsed_seconds'])} since the start)",
             f"osdmap epoch: {status['osdmap_epoch']}",
             f"misplaced: {status['misplaced_ratio'] * 100:.3f} %",
             f"moving: {status['moving_pgs']} PGs, {status['remaining_bytes']} bytes left"]
    lines += [f"class {name}: highest {use['max'] * 100:.2f} %, lowest {use['min'] * 100:.2f} %"
              for name, use in status["classes"].items()]
    return 0, "\n".join(lines), ""


def status_of(session: "Session") -> Dict[str, Any]:
    """What goes on in the simulation: raw bytes, ratios 0..1, seconds."""
    cluster = session.cluster
    moving = session.simulation.backfill.moving()
    ratio = statistics.pg_status(cluster).get("misplaced_ratio", 0.0)
    return {
        "time": format_time(cluster.clock()),
        "elapsed_seconds": session.clock.elapsed(),
        "osdmap_epoch": cluster.map.epoch,
        "misplaced_ratio": ratio,
        "moving_pgs": len(moving),
        "moving_shards": sum(len(pg.flows) for pg in moving),
        "remaining_bytes": sum(pg.remaining_bytes() for pg in moving),
        "upmap_items": len(cluster.map.upmap_items),
        "classes": {name: {"max": max(used.values()), "min": min(used.values()),
                           "mean": sum(used.values()) / len(used)}
                    for name, used in cluster.utilizations().items()},
    }


def _failover(session: "Session", words: List[str]) -> Answer:
    if words:
        raise invalid("sim failover takes no arguments")
    session.failover()
    return 0, "", ""


def _pool(session: "Session", words: List[str]) -> Answer:
    if len(words) != 2 or words[0] != "rm":
        raise invalid("sim pool knows only: sim pool rm NAME")
    answers: List[Answer] = []
    session.simulation.monitor.submit(
        json.dumps({"prefix": "osd pool rm", "pool": words[1]}),
        lambda rc, out, err: answers.append((rc, out, err)))
    session.mgr.commit()
    return answers[0]


_HANDLERS: Dict[str, Callable[["Session", List[str]], Answer]] = {
    "run": _run_time,
    "save": _save,
    "status": _status,
    "failover": _failover,
    "pool": _pool,
}
