"""The commands whose answers are recorded, and the states that the cluster is in then."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Set, Tuple

from tests.support.tables import rows


class Screen(NamedTuple):
    """One command line; its answer is recorded in `golden/STATE/name.txt`."""

    name: str
    line: str   # after `ceph equilibrium`
    has_json: bool = True


def _screens(table: str, has_json: bool = True) -> Tuple[Screen, ...]:
    """The names and lines of a table; behind them `plain` where there is no JSON."""
    found = []
    for name, line, *how in rows(table):
        found.append(Screen(name, line, has_json and how != ["plain"]))
    return tuple(found)


#: Asked in every state. Plan p was made at first.
SCREENS = _screens("""
status            status
status-brief      status --brief  plain
eval              eval
eval-plan         eval p
eval-pool         eval {pool}
eval-fail         eval --fail osd.6
eval-worst        eval --worst-failure
df                df
df-plan           df p
osds              osds
moves             moves
explain           explain
explain-osd       explain osd.6
explain-pool      explain {pool}
explain-pg        explain 2.1f
explain-pair      explain 2.1f osd.14
history           history
ls                ls
show              show p
dump              dump p
pool-ls           pool ls
drain-ls          drain ls
moves-by-osd      moves --by-osd
metrics           metrics  plain
""")
#: State → what is asked in it alone, after the others.
QUESTIONS: Dict[str, Tuple[Screen, ...]] = {
    "off": _screens("""
osds-some         osds {host}3 ssd 3 osd.4 --sort id
osds-class        osds ssd
osds-hosts        osds --sort=-host --limit 5
df-id             df --sort id --limit 3
eval-pool-id      eval pool/2
eval-plan-name    eval plan/p
eval-waste        eval --add h9:24x16T:hdd
eval-unreached    eval --add h9:1x16T:nvme
eval-too-full     eval --remove osd.3
eval-no-place     eval --remove {host}1,{host}2
eval-several      eval --add h9:2x8T:hdd --add=h10:1x4T:ssd,h11:1x4T:ssd --remove=3\
 --resize osd.2=20T --pg-num {pool}=64
eval-pg-num       eval --pg-num {pool}=64
explain-pool-id   explain pool/2
explain-osd-id    explain 2
explain-class     explain 2.1f osd.7
explain-there     explain 2.1f 9
report            report  plain
report-plan       report p  plain
"""),
    "moving": _screens("""
moves-host        moves {host}3
explain-host      explain {host}3
report-plan       report p  plain
"""),
    "outage-blocked": _screens("""
eval-fail-both    eval --fail osd.6,osd.21
explain-down      explain osd.21
report-plan       report p  plain
"""),
    "drains-moving": _screens("""
drain-more        drain add osd.6 --dry-run
explain-drained   explain osd.3
drain-too-much    drain add {host}3 {host}4 {host}5 --dry-run
"""),
    "expanded-off": _screens("""
freeze-dry-run    freeze --dry-run
explain-new       explain osd.24
""")}
#: Commands that change something or plan: asked one after the other in the state `off` alone, after
#: the others.
WRITES = _screens("""
optimize          optimize q
rm                rm q
pool-add          pool add {pool} backup
pool-rm           pool rm {pool}
drain-add         drain add 3
drain-rm          drain rm 3
execute           execute p
off               off
undo              undo
cancel            cancel
freeze            freeze
reset             reset
on                on
""", has_json=False)
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
