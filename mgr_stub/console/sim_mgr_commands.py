"""`sim` commands for the mgr: failovers, faults of monitors and statistics, clock, balancer."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional

from ..clock import parse_span
from ..errors import invalid
from ..events import cluster_events
from ..host.module_host import ModuleHost
from ..mgr.mgr_process import CALLS, call_point
from ..simulation.reports import REPORT_SECONDS
from .sim_arguments import (
    exact_words, parse_jump, parse_osd, parse_ratio, parse_whole, split_options)

Command = Callable[[ModuleHost, List[str]], str]


def _failover(host: ModuleHost, words: List[str]) -> str:
    exact_words(words, 0, "failover")
    host.failover()
    return ""


def _mgr_fail(host: ModuleHost, words: List[str]) -> str:
    plain, named = split_options(words, ("takeover",))
    takeover: Optional[float] = parse_span(named["takeover"]) if "takeover" in named else None
    if not plain:
        host.kill_mgr(takeover)
        return ""
    usage = "mgr fail [at POINT [COUNT]] [takeover=SPAN]"
    if plain[0] != "at" or len(plain) not in (2, 3):
        raise invalid(f"it is: sim {usage}")
    count = parse_whole(plain[2], "COUNT") if len(plain) == 3 else 1
    if count < 1:
        raise invalid("COUNT is 1 or more")
    try:
        call, after = call_point(plain[1])
    except ValueError:
        points = ", ".join(f"before-{name}, after-{name}" for name in CALLS)
        raise invalid(f"'{plain[1]}' is no point to die at; there are {points}") from None
    host.kill_mgr_at(call, after, count, takeover)
    return ""


def interrupt_call(host: ModuleHost, words: List[str], run_line: Callable[[str], None]) -> str:
    """Has `run_line` run a command line inside a later API call of the module."""
    if len(words) < 3:
        raise invalid("it is: sim meanwhile POINT COUNT COMMAND")
    try:
        call, after = call_point(words[0])
    except ValueError:
        raise invalid(f"'{words[0]}' is no point of the API") from None
    if call == "send_command":
        raise invalid("a batch is handed over in one piece; take after-map, which comes before it")
    line = " ".join(words[2:])
    host.interrupt_at(call, after, parse_whole(words[1], "COUNT"), lambda: run_line(line))
    return ""


def _mon_delay(host: ModuleHost, words: List[str]) -> str:
    span, = exact_words(words, 1, "mon delay SECONDS")
    host.simulation.monitor.faults.delay = parse_span(span)
    return ""


def _mon_reject(host: ModuleHost, words: List[str]) -> str:
    ratio, = exact_words(words, 1, "mon reject RATIO")
    host.simulation.monitor.faults.reject_ratio = parse_ratio(ratio, "RATIO")
    return ""


def _mon_lose(host: ModuleHost, words: List[str]) -> str:
    ratio, = exact_words(words, 1, "mon lose RATIO")
    host.simulation.monitor.faults.lose_ratio = parse_ratio(ratio, "RATIO")
    return ""


def _mon_drop(host: ModuleHost, words: List[str]) -> str:
    ratio, = exact_words(words, 1, "mon drop RATIO")
    host.simulation.monitor.faults.drop_ratio = parse_ratio(ratio, "RATIO")
    return ""


def _mon_connection(connected: bool) -> Command:
    def run(host: ModuleHost, words: List[str]) -> str:
        exact_words(words, 0, f"mon {'up' if connected else 'down'}")
        host.mgr.mon_connected = connected
        return ""
    return run


def _stats_freeze(host: ModuleHost, words: List[str]) -> str:
    span, = exact_words(words, 1, "stats freeze SPAN")
    host.simulation.reports.freeze(parse_span(span))
    return ""


def _stats_lag(host: ModuleHost, words: List[str]) -> str:
    span, = exact_words(words, 1, "stats lag SPAN")
    host.simulation.reports.lag(parse_span(span))
    return ""


def _stats_gap(host: ModuleHost, words: List[str]) -> str:
    usage = "stats gap SPAN OSD..."
    if len(words) < 2:
        raise invalid(f"it is: sim {usage}")
    host.simulation.reports.set_unreported(
        parse_span(words[0]), [parse_osd(word) for word in words[1:]])
    return ""


def _stats_hang(host: ModuleHost, words: List[str]) -> str:
    if len(words) < 2:
        raise invalid("it is: sim stats hang SPAN OSD...")
    host.simulation.reports.hang(
        parse_span(words[0]), [parse_osd(word) for word in words[1:]])
    return ""


def _stats_noise(host: ModuleHost, words: List[str]) -> str:
    if len(words) not in (1, 2):
        raise invalid("it is: sim stats noise RATIO [SPAN]")
    reports = host.simulation.reports
    reports.noise = parse_ratio(words[0], "RATIO")
    reports.noise_seconds = max(REPORT_SECONDS, parse_span(words[1]) if words[1:] else 0.0)
    return ""


def _clock_jump(host: ModuleHost, words: List[str]) -> str:
    span, = exact_words(words, 1, "clock jump SPAN")
    cluster_events.jump_clock(host.simulation, parse_jump(span))
    return ""


def _balancer(word: str) -> Command:
    def run(host: ModuleHost, words: List[str]) -> str:
        exact_words(words, 0, f"balancer {word}")
        host.mgr.balancer.command([word])
        return ""
    return run


def _balancer_disable(host: ModuleHost, words: List[str]) -> str:
    """As `ceph mgr module force disable balancer` of Ceph 20; the mgr is restarted."""
    exact_words(words, 0, "balancer disable")
    host.simulation.disabled_modules.add("balancer")
    host.failover()
    return ""


COMMANDS: Dict[str, Command] = {
    "failover": _failover,
    "mgr fail": _mgr_fail,
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
