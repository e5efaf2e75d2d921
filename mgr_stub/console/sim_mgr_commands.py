"""`sim` commands that trouble the mgr: failovers, monitors, statistics, clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, Optional

from ..clock import parse_span
from ..errors import invalid
from ..events import cluster_events
from ..mgr.failure_points import CALLS, point_of
from . import sim_arguments as sim_words

if TYPE_CHECKING:
    from .session import Session

Command = Callable[["Session", List[str]], str]


def _failover(session: Session, words: List[str]) -> str:
    sim_words.take(words, 0, "failover")
    session.failover()
    return ""


def _mgr_fail(session: Session, words: List[str]) -> str:
    plain, named = sim_words.options(words, ("takeover",))
    takeover: Optional[float] = parse_span(named["takeover"]) if "takeover" in named else None
    if not plain:
        session.fail_mgr(takeover)
        return ""
    usage = "mgr fail [at POINT [COUNT]] [takeover=SPAN]"
    if plain[0] != "at" or len(plain) not in (2, 3):
        raise invalid(f"it is: sim {usage}")
    count = sim_words.whole(plain[2], "COUNT") if len(plain) == 3 else 1
    if count < 1:
        raise invalid("COUNT is 1 or more")
    try:
        call, after = point_of(plain[1])
    except ValueError:
        points = ", ".join(f"before-{name}, after-{name}" for name in CALLS)
        raise invalid(f"'{plain[1]}' is no point to die at; there are {points}") from None
    session.doom_mgr(call, after, count, takeover)
    return ""


def _meanwhile(session: Session, words: List[str]) -> str:
    """Another thread's work, an operator's or the cluster's, in the middle of a round."""
    if len(words) < 3:
        raise invalid("it is: sim meanwhile POINT COUNT COMMAND")
    try:
        call, after = point_of(words[0])
    except ValueError:
        raise invalid(f"'{words[0]}' is no point of the API") from None
    if call == "send_command":
        raise invalid("a batch is handed over in one piece; take after-map, which comes before it")
    session.come_between(call, after, sim_words.whole(words[1], "COUNT"),
                         " ".join(words[2:]))
    return ""


def _mon_delay(session: Session, words: List[str]) -> str:
    span, = sim_words.take(words, 1, "mon delay SECONDS")
    session.simulation.monitor.faults.delay = parse_span(span)
    return ""


def _mon_reject(session: Session, words: List[str]) -> str:
    ratio, = sim_words.take(words, 1, "mon reject RATIO")
    session.simulation.monitor.faults.reject_ratio = sim_words.ratio(ratio, "RATIO")
    return ""


def _mon_lose(session: Session, words: List[str]) -> str:
    ratio, = sim_words.take(words, 1, "mon lose RATIO")
    session.simulation.monitor.faults.lose_ratio = sim_words.ratio(ratio, "RATIO")
    return ""


def _mon_drop(session: Session, words: List[str]) -> str:
    ratio, = sim_words.take(words, 1, "mon drop RATIO")
    session.simulation.monitor.faults.drop_ratio = sim_words.ratio(ratio, "RATIO")
    return ""


def _mon_connection(connected: bool) -> Command:
    def run(session: Session, words: List[str]) -> str:
        sim_words.take(words, 0, f"mon {'up' if connected else 'down'}")
        session.mgr.mon_connected = connected
        return ""
    return run


def _stats_freeze(session: Session, words: List[str]) -> str:
    span, = sim_words.take(words, 1, "stats freeze SPAN")
    session.simulation.reports.freeze(parse_span(span))
    return ""


def _stats_lag(session: Session, words: List[str]) -> str:
    span, = sim_words.take(words, 1, "stats lag SPAN")
    session.simulation.reports.lag(parse_span(span))
    return ""


def _stats_gap(session: Session, words: List[str]) -> str:
    usage = "stats gap SPAN OSD..."
    if len(words) < 2:
        raise invalid(f"it is: sim {usage}")
    session.simulation.reports.leave_gap(
        parse_span(words[0]), [sim_words.osd_number(word) for word in words[1:]])
    return ""


def _stats_hang(session: Session, words: List[str]) -> str:
    if len(words) < 2:
        raise invalid("it is: sim stats hang SPAN OSD...")
    session.simulation.reports.hang(
        parse_span(words[0]), [sim_words.osd_number(word) for word in words[1:]])
    return ""


def _stats_noise(session: Session, words: List[str]) -> str:
    ratio, = sim_words.take(words, 1, "stats noise RATIO")
    session.simulation.reports.noise = sim_words.ratio(ratio, "RATIO")
    return ""


def _clock_jump(session: Session, words: List[str]) -> str:
    span, = sim_words.take(words, 1, "clock jump SPAN")
    cluster_events.jump_clock(session.simulation, sim_words.jump(span))
    return ""


def _balancer(word: str) -> Command:
    def run(session: Session, words: List[str]) -> str:
        sim_words.take(words, 0, f"balancer {word}")
        session.mgr.balancer.command([word])
        return ""
    return run


def _balancer_disable(session: Session, words: List[str]) -> str:
    """As `ceph mgr module force disable balancer` of Ceph 20; the mgr starts anew."""
    sim_words.take(words, 0, "balancer disable")
    session.simulation.disabled_modules.add("balancer")
    session.failover()
    return ""


COMMANDS: Dict[str, Command] = {
    "failover": _failover,
    "mgr fail": _mgr_fail,
    "meanwhile": _meanwhile,
    "mon delay": _mon_delay,
    "mon reject": _mon_reject,
    "mon lose": _mon_lose,
    "mon drop": _mon_drop,
    "mon down": _mon_connection(False),
    "mon up": _mon_connection(True),
    "stats freeze": _stats_freeze,
    "stats lag": _stats_lag,
    "stats noise": _stats_noise,
    "stats gap": _stats_gap,
    "stats hang": _stats_hang,
    "clock jump": _clock_jump,
    "balancer on": _balancer("on"),
    "balancer off": _balancer("off"),
    "balancer disable": _balancer_disable,
}
