"""`sim` commands for the mgr: failovers, faults of monitors and statistics, clock, balancer."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
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
    takeover: Optional[float] = None
    if "takeover" in named:
        takeover = parse_span(named["takeover"])
    if not plain:
        host.kill_mgr(takeover)
        return ""
    usage = "mgr fail [at POINT [COUNT]] [takeover=SPAN]"
    if plain[0] != "at" or len(plain) not in (2, 3):
        raise invalid(f"it is: sim {usage}")
    count = 1
    if len(plain) == 3:
        count = parse_whole(plain[2])
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
    host.interrupt_at(call, after, parse_whole(words[1]), partial(run_line, line))
    return ""


def _fault(name: str) -> Callable[[ModuleHost, float], None]:
    """Returns the action that sets a fault of the monitor."""
    def act(host: ModuleHost, value: float) -> None:
        setattr(host.simulation.monitor.faults, name, value)
    return act


def _calls(path: str, *first: Any) -> Callable[..., Any]:
    """Returns the action that calls a method of the host or of a part of it, first with these
    arguments.
    """
    def act(host: ModuleHost, *values: Any) -> Any:
        return attrgetter(path)(host)(*first, *values)
    return act


def _connect(host: ModuleHost, connected: bool) -> None:
    host.mgr.mon_connected = connected


def _stats_noise(host: ModuleHost, words: List[str]) -> str:
    if len(words) not in (1, 2):
        raise invalid("it is: sim stats noise RATIO [SPAN]")
    reports = host.simulation.reports
    reports.noise = parse_ratio(words[0])
    reports.noise_seconds = max([REPORT_SECONDS, *map(parse_span, words[1:])])
    return ""


def _balancer_disable(host: ModuleHost) -> None:
    """Acts like `ceph mgr module force disable balancer` of Ceph 20; the mgr is restarted."""
    host.simulation.disabled_modules.add("balancer")
    host.failover()


#: Arguments, action, and the parser of each argument, by command.
_TABLE: Dict[str, Any] = {
    "failover": ("", _calls("failover")),
    "mon delay": ("SPAN", _fault("delay"), parse_span),
    "mon reject": ("RATIO", _fault("reject_ratio"), parse_ratio),
    "mon lose": ("RATIO", _fault("lose_ratio"), parse_ratio),
    "mon drop": ("RATIO", _fault("drop_ratio"), parse_ratio),
    "mon down": ("", partial(_connect, connected=False)),
    "mon up": ("", partial(_connect, connected=True)),
    "stats freeze": ("SPAN", _calls("simulation.reports.freeze"), parse_span),
    "stats lag": ("SPAN", _calls("simulation.reports.lag"), parse_span),
    "stats gap": ("SPAN N...", _calls("simulation.reports.set_unreported"), parse_span, parse_osd),
    "stats hang": ("SPAN N...", _calls("simulation.reports.hang"), parse_span, parse_osd),
    "clock jump": ("SPAN", _calls("clock.jump"), parse_jump),
    "balancer on": ("", _calls("mgr.balancer.command", ["on"])),
    "balancer off": ("", _calls("mgr.balancer.command", ["off"])),
    "balancer disable": ("", _balancer_disable),
}

COMMANDS: Dict[str, Command] = {
    **{name: command(f"{name} {usage}".strip(), *action)
       for name, (usage, *action) in _TABLE.items()},
    "mgr fail": _mgr_fail,
    "stats noise": _stats_noise,
}
