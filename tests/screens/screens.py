"""The commands whose answers are recorded, and the states that the cluster is in then."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Set, Tuple


class Screen(NamedTuple):
    """One command line; its answer is recorded in `golden/STATE/name.txt`."""

    name: str
    line: str   # after `ceph equilibrium`
    has_json: bool = True


#: Asked in every state. Plan p was made at first.
SCREENS: Tuple[Screen, ...] = (
    Screen("status", "status"), Screen("status-brief", "status --brief", False),
    Screen("eval", "eval"), Screen("eval-plan", "eval p"), Screen("eval-pool", "eval {pool}"),
    Screen("eval-fail", "eval --fail osd.6"), Screen("eval-worst", "eval --worst-failure"),
    Screen("df", "df"), Screen("df-plan", "df p"),
    Screen("osds", "osds"), Screen("moves", "moves"),
    Screen("explain", "explain"), Screen("explain-osd", "explain osd.6"),
    Screen("explain-pool", "explain {pool}"), Screen("explain-pg", "explain 2.1f"),
    Screen("explain-pair", "explain 2.1f osd.14"),
    Screen("history", "history"),
    Screen("ls", "ls"), Screen("show", "show p"), Screen("dump", "dump p"),
    Screen("pool-ls", "pool ls"), Screen("drain-ls", "drain ls"),
)
#: Commands that change something or plan: asked one after the other in the state `off` alone, after
#: the others.
WRITES: Tuple[Screen, ...] = (
    Screen("optimize", "optimize q", False), Screen("rm", "rm q", False),
    Screen("pool-add", "pool add {pool} backup", False), Screen("pool-rm", "pool rm {pool}", False),
    Screen("drain-add", "drain add 3", False), Screen("drain-rm", "drain rm 3", False),
    Screen("execute", "execute p", False), Screen("off", "off", False),
    Screen("undo", "undo", False), Screen("cancel", "cancel", False),
    Screen("freeze", "freeze", False),
    Screen("reset", "reset", False), Screen("on", "on", False),
)
#: Commands without a screen.
NOT_SHOWN = {"dump-state": "a state file", "report": "an HTML page",
             "metrics": "for Prometheus"}
#: Screens that may be wider than 80 columns: one line whatever is in it.
TOO_WIDE: Set[str] = {"status-brief"}

_OPTION = "config set mgr mgr/equilibrium/"
_SOON = f"{_OPTION}start_delay 0"

#: State → the lines that lead to it from a cluster that is looked at, with plan p.
STATES: Dict[str, List[str]] = {
    "off": [],
    "planning": [_SOON, "equilibrium on", "sim run 61s"],
    "moving": [_SOON, "equilibrium on", "sim run 150s"],
    "throttled": [_SOON, f"{_OPTION}max_misplaced_ratio 0.01", "sim osd crush-reweight 14 1.4",
                  "sim run 2m", "equilibrium on", "sim run 150s"],
    "waiting": [f"{_OPTION}begin_time 0300", f"{_OPTION}end_time 0400", "equilibrium on",
                "sim run 150s"],
    "blocked": [_SOON, "sim flag set norebalance", "equilibrium on", "sim run 150s"],
    "balanced": [_SOON, "sim backfill rate 1T", "equilibrium on", "sim run 75m"],
    "stuck": [_SOON, f"{_OPTION}fill_limit 0.2", "equilibrium on", "sim run 150s"],
}
