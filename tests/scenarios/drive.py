"""Runs a scenario to its end.

A run's outcome as lines of text, coarse enough to stay the same unless something changed.
"""
from __future__ import annotations

import errno
from functools import partial
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
    balancer, figures = session.module.balancer, watch.figures
    found: List[str] = []
    view = balancer.status.view
    for name, by_osd in session.cluster.utilizations().items():
        bound = None if view is None else view.bounds.get(name or "none")
        was = figures.first.get(name, (0.0, 0.0))
        found.append(f"{name or 'none'}: highest {was[0]:.3f} -> {max(by_osd.values()):.3f}, "
                     f"lowest {was[1]:.3f} -> {min(by_osd.values()):.3f}"
                     + ("" if bound is None else f", bound {bound:.3f}"))
    found.append(f"moved: {figures.moved_bytes / TIB:.2f} TiB in {figures.moved_shards} shards by "
                 f"{figures.commands} commands, the last after "
                 f"{figures.last_command_at / 3600.0:.1f} h")
    found.append(f"misplaced by us: at most {figures.highest_misplaced:.4f} of {limit:.4f}")
    found.append(f"fill: at most {figures.highest_fill:.3f} of "
                 f"{cluster_view.fill_limit(session.cluster):.3f}")
    found.append(f"thrashing: at most {100.0 * figures.thrashing():.1f} %")
    found.append(f"upmap items: {sum(len(i) for i in session.cluster.map.upmap_items.values())}")
    if session.cluster.map.chosen_primaries:
        found.append(f"primaries set: {len(session.cluster.map.chosen_primaries)}")
    found.append(f"ends {balancer.status.state}: {balancer.status.reason}")
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
    watch = Watch(session)
    session.host.observers.append(lambda _: watch(session))
    start = session.simulation.clock.now
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


def run_to(session: Session, moment: float, asker: Optional[Asker] = None) -> None:
    """Up to a moment of the virtual clock that never jumps."""
    if moment > session.simulation.clock.now:
        (session.host.run_until if asker is None else partial(asker.run_until, session))(moment)


def play(session: Session, watch: Watch, line: str) -> None:
    """One event. S11: what only looks sends nothing."""
    words = line.split()
    tried = words[0] == TRY
    reading = words[int(tried):][:1] == ["equilibrium"] and (
        words[int(tried) + 1] in _READING or "--dry-run" in words)
    if not reading:
        watch.repeats.begin()
    sent = watch.judge.sent
    asked = line.partition(" ")[2] if tried else line
    watch.judge.answers.before(asked)
    if not asked.startswith("equilibrium off") and not reading:
        # what it starts may be sent before it has answered
        watch.judge.silence.on_answer(asked, 0)
    code = attempt(session, asked) if tried else command(session, asked)[0]
    watch.judge.silence.on_answer(asked, code)
    watch.screen.observe(session, is_event=True)
    if reading and watch.judge.sent > sent:
        watch.judge.note("S11", f"'{line}' sends {watch.judge.sent - sent} commands")


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
