"""Runs a scenario to its end.

A run's outcome as lines of text, coarse enough to stay the same unless something changed.
"""
from __future__ import annotations

import errno
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Tuple

from mgr_stub.console.session import Session
from tests.support.units import TIB

from . import clusters
from .awake.asking import Asker
from .scenario import TRY, Scenario
from .watch import cluster_view
from .watch.truth import ask
from .watch.watch import Watch


def lines(session: Session, watch: Watch, limit: float) -> List[str]:
    """`limit` is the misplaced ratio that was allowed."""
    figures = watch.figures
    cluster, status, found = session.cluster, session.module.balancer.status, []
    bounds = {} if status.view is None else status.view.bounds
    for name, by_osd in cluster.utilizations().items():
        (highest, lowest), now = figures.first.get(name, (0.0, 0.0)), by_osd.values()
        said = name or "none"
        line = f"{said}: highest {highest:.3f} -> {max(now):.3f}"
        line += f", lowest {lowest:.3f} -> {min(now):.3f}"
        if said in bounds:
            line += f", bound {bounds[said]:.3f}"
        found.append(line)
    found += [
        f"moved: {figures.moved_bytes / TIB:.2f} TiB in {figures.moved_shards} shards by "
        f"{figures.commands} commands, the last after {figures.last_command_at / 3600.0:.1f} h",
        f"misplaced by us: at most {figures.highest_misplaced:.4f} of {limit:.4f}",
        f"fill: at most {figures.highest_fill:.3f} of {cluster_view.fill_limit(cluster):.3f}",
        f"thrashing: at most {100.0 * figures.thrashing():.1f} %",
        f"upmap items: {sum(map(len, cluster.map.upmap_items.values()))}"]
    if cluster.map.chosen_primaries:
        found.append(f"primaries set: {len(cluster.map.chosen_primaries)}")
    found.append(f"ends {status.state}: {status.reason}")
    return found + [f"BROKEN {text}" for text in watch.broken]


_DEFAULT_LIMIT = 0.05
#: Commands of the module that only look.
_READING = ("status", "eval", "optimize", "show", "ls", "dump", "explain")
#: An operator asks again when no mgr was there.
_AGAIN_SECONDS, _ATTEMPTS = 60.0, 5


class Result(NamedTuple):
    """What came of a run."""

    lines: List[str]
    limit: float     # the misplaced ratio that was allowed
    watch: Watch
    session: Session
    status: str = ""   # what `status` says at the end


def run(scenario: Scenario, folder: Path,
        before: Optional[Callable[[str, Session, Watch], None]] = None,
        asker: Optional[Asker] = None) -> Result:
    """Plays the events at their moments; `before` is called ahead of each, and at the end, and
    `asker` asks between them.

    Raises AssertionError for a command that fails.
    """
    session = clusters.session_of(scenario.cluster, scenario.seed, folder, scenario.release)
    for name, value in scenario.options:
        command(session, f"config set mgr mgr/equilibrium/{name} {value}")
    watch, start = watched(session), session.clock.now
    for event in scenario.events:
        run_to(session, start + event.at, asker)
        if before is not None:
            before(event.line, session, watch)
        play(session, watch, event.line)
    run_to(session, start + scenario.seconds, asker)
    if before is not None:
        before("", session, watch)
    options = dict(scenario.options)
    limit = max(float(options.get("max_misplaced_ratio", _DEFAULT_LIMIT)),
                float(options.get("urgent_misplaced_ratio", 0.0)))
    status = "" if session.module is None else str(ask(session, "status").get("reason"))
    found = Result(lines(session, watch, limit), limit, watch, session, status)
    session.close()
    return found


def watched(session: Session) -> Watch:
    """The watch of a session from now on."""
    watch = Watch(session)
    session.host.observers.append(lambda _: watch(session))
    return watch


def run_to(session: Session, moment: float, asker: Optional[Asker] = None) -> None:
    """Up to a moment of the virtual clock that never jumps."""
    if moment <= session.clock.now:
        return
    if asker is None:
        session.host.run_until(moment)
    else:
        asker.run_until(session, moment)


def play(session: Session, watch: Watch, line: str) -> None:
    """One event. S11: what only looks sends nothing."""
    words = line.split()
    judge, tried = watch.judge, words[0] == TRY
    asked = line.partition(" ")[2] if tried else line
    words = words[int(tried):]
    reading = words[0] == "equilibrium" and (words[1] in _READING or "--dry-run" in words)
    if not reading:
        watch.repeats.begin()
    sent = judge.sent
    judge.answers.before(asked)
    if not asked.startswith("equilibrium off") and not reading:
        # what it starts may be sent before it has answered
        judge.silence.on_answer(asked, 0)
    code = attempt(session, asked) if tried else command(session, asked)[0]
    judge.silence.on_answer(asked, code)
    watch.screen.observe(session, is_event=True)
    if reading and judge.sent > sent:
        judge.note("S11", f"'{line}' sends {judge.sent - sent} commands")


def command(session: Session, line: str) -> Tuple[int, str, str]:
    answer = session.command(line)
    assert answer[0] == 0, f"'{line}' failed: {answer[2]}"
    hold_width(line, answer[1])
    return answer


def hold_width(line: str, plain: str) -> None:
    """Answers fit a terminal; commands to be pasted are not broken, and JSON is for programs."""
    wide = [said for said in plain.splitlines() if len(said) > 80 and not said.startswith("ceph ")]
    assert not (line.startswith("equilibrium ") and "--format" not in line and wide), (line, wide)


def attempt(session: Session, line: str) -> int:
    """A command that may be refused, though never by an exception; returns its last code."""
    code = 0
    for _ in range(_ATTEMPTS):
        code, plain, message = session.command(line)
        assert "Traceback" not in message, f"'{line}' failed: {message}"
        hold_width(line, plain)
        if code not in (-errno.EAGAIN, -errno.ETIMEDOUT):
            break
        session.host.run_for(_AGAIN_SECONDS)
    return code
