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
    Screen("moves-by-osd", "moves --by-osd"), Screen("metrics", "metrics", False),
)
#: State → what is asked in it alone, after the others.
QUESTIONS: Dict[str, Tuple[Screen, ...]] = {
    "off": (
        Screen("osds-some", "osds {host}3 ssd 3 osd.4 --sort id"), Screen("osds-class", "osds ssd"),
        Screen("osds-hosts", "osds --sort=-host --limit 5"),
        Screen("df-id", "df --sort id --limit 3"),
        Screen("eval-pool-id", "eval pool/2"), Screen("eval-plan-name", "eval plan/p"),
        Screen("eval-waste", "eval --add h9:24x16T:hdd"),
        Screen("eval-unreached", "eval --add h9:1x16T:nvme"),
        Screen("eval-too-full", "eval --remove osd.3"),
        Screen("eval-no-place", "eval --remove {host}1,{host}2"),
        Screen("eval-several", "eval --add h9:2x8T:hdd --add=h10:1x4T:ssd,h11:1x4T:ssd --remove=3"
               " --resize osd.2=20T --pg-num {pool}=64"),
        Screen("eval-pg-num", "eval --pg-num {pool}=64"),
        Screen("explain-pool-id", "explain pool/2"), Screen("explain-osd-id", "explain 2"),
        Screen("explain-class", "explain 2.1f osd.7"), Screen("explain-there", "explain 2.1f 9"),
        Screen("report", "report", False), Screen("report-plan", "report p", False)),
    "moving": (
        Screen("moves-host", "moves {host}3"), Screen("explain-host", "explain {host}3"),
        Screen("report-plan", "report p", False)),
    "outage-blocked": (
        Screen("eval-fail-both", "eval --fail osd.6,osd.21"),
        Screen("explain-down", "explain osd.21"),
        Screen("report-plan", "report p", False)),
    "drains-moving": (
        Screen("drain-more", "drain add osd.6 --dry-run"),
        Screen("explain-drained", "explain osd.3"),
        Screen("drain-too-much", "drain add {host}3 {host}4 {host}5 --dry-run")),
    "expanded-off": (
        Screen("freeze-dry-run", "freeze --dry-run"), Screen("explain-new", "explain osd.24")),
}
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
NOT_SHOWN = {"dump-state": "a state file"}
#: Screens that may be wider than 80 columns: one line whatever is in it, and what is for programs.
TOO_WIDE: Set[str] = {"status-brief", "metrics", "report", "report-plan"}
#: States in which what failures lead to is computed: that takes long.
WITH_FAILURES = ("off", "outage-blocked")

_OPTION = "config set mgr mgr/equilibrium/"
_SOON = f"{_OPTION}start_delay 0"

#: State, behind what has happened → the lines that lead to it from a cluster that is looked at,
#: with plan p.
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
    "outage-blocked": [_SOON, "sim osd reweight 2 0.5", "sim osd out 1", "equilibrium on",
                       "sim run 150s", "osd set noout", "sim host down {host}5", "sim run 150s"],
    "drains-moving": [_SOON, "sim backfill rate 4M", "equilibrium drain add 3 4", "sim run 5m"],
    "expanded-off": ["sim flag set norebalance", "sim host add new0 4 8T", "sim osd out 3",
                     "sim run 2m", "equilibrium eval", "sim run 30s"],
    "stuck": [_SOON, f"{_OPTION}fill_limit 0.2", "equilibrium on", "sim run 150s"],
}
