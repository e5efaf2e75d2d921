"""`sim` commands for the mgr: failovers, faults of monitors and statistics, clock, balancer."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ..clock import parse_span
from ..errors import invalid
from ..host.module_host import ModuleHost
from ..mgr.mgr_process import CALLS, call_point
from ..simulation.reports import REPORT_SECONDS
from .sim_arguments import (
    command, parse_jump, parse_osd, parse_ratio, parse_whole, split_options)

Command = Callable[[ModuleHost, List[str]], str]


def _mgr_fail(host: ModuleHost, words: List[str]) -> str:
    plain, named = split_options(words, ("takeover",))
    takeover: Optional[float] = parse_span(named["takeover"]) if "takeover" in named else None
    if not plain:
        host.kill_mgr(takeover)
        return ""
    usage = "mgr fail [at POINT [COUNT]] [takeover=SPAN]"
    if plain[0] != "at" or len(plain) not in (2, 3):
        raise invalid(f"it is: sim {usage}")
    count = parse_whole(plain[2]) if len(plain) == 3 else 1
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
    """Makes `run_line` run a command line inside a later API call of the module."""
    if len(words) < 3:
        raise invalid("it is: sim meanwhile POINT COUNT COMMAND")
    try:
        call, after = call_point(words[0])
    except ValueError:
        raise invalid(f"'{words[0]}' is no point of the API") from None
    if call == "send_command":
        raise invalid("a batch is handed over in one piece; take after-map, which comes before it")
    line = " ".join(words[2:])
    host.interrupt_at(call, after, parse_whole(words[1]), lambda: run_line(line))
    return ""


def _fault(name: str) -> Callable[[ModuleHost, float], None]:
    """Sets a fault of the monitor."""
    return lambda host, value: setattr(host.simulation.monitor.faults, name, value)


def _stats_noise(host: ModuleHost, words: List[str]) -> str:
    if len(words) not in (1, 2):
        raise invalid("it is: sim stats noise RATIO [SPAN]")
    reports = host.simulation.reports
    reports.noise = parse_ratio(words[0])
    reports.noise_seconds = max(REPORT_SECONDS, parse_span(words[1]) if words[1:] else 0.0)
    return ""


def _balancer_disable(host: ModuleHost) -> None:
    """Acts like `ceph mgr module force disable balancer` of Ceph 20; the mgr is restarted."""
    host.simulation.disabled_modules.add("balancer")
    host.failover()


#: Arguments, action, and the parser of each argument, by command.
_TABLE: Dict[str, Any] = {
    "failover": ("", lambda host: host.failover()),
    "mon delay": ("SPAN", _fault("delay"), parse_span),
    "mon reject": ("RATIO", _fault("reject_ratio"), parse_ratio),
    "mon lose": ("RATIO", _fault("lose_ratio"), parse_ratio),
    "mon drop": ("RATIO", _fault("drop_ratio"), parse_ratio),
    "mon down": ("", lambda host: setattr(host.mgr, "mon_connected", False)),
    "mon up": ("", lambda host: setattr(host.mgr, "mon_connected", True)),
    "stats freeze": ("SPAN", lambda host, span: host.simulation.reports.freeze(span),
                     parse_span),
    "stats lag": ("SPAN", lambda host, span: host.simulation.reports.lag(span), parse_span),
    "stats gap": ("SPAN N...", lambda host, span, osds: (
        host.simulation.reports.set_unreported(span, osds)), parse_span, parse_osd),
    "stats hang": ("SPAN N...", lambda host, span, osds: host.simulation.reports.hang(span, osds),
                   parse_span, parse_osd),
    "clock jump": ("SPAN", lambda host, span: host.clock.jump(span), parse_jump),
    "balancer on": ("", lambda host: host.mgr.balancer.command(["on"])),
    "balancer off": ("", lambda host: host.mgr.balancer.command(["off"])),
    "balancer disable": ("", _balancer_disable),
}

COMMANDS: Dict[str, Command] = {
    **{name: command(f"{name} {usage}".strip(), *action)
       for name, (usage, *action) in _TABLE.items()},
    "mgr fail": _mgr_fail,
    "stats noise": _stats_noise,
}
