"""What `status` and `explain` say to do, held against its form and against what is wrong.

T17 each `do` is one whole command, or a wait, or one sentence for a person; no command stands in
the reason and not in the `do`; `status` and `explain` say the same; an outage comes first. T18 PGs
that nobody can read or write are part of that.
"""
from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session

from ..rules.under_way import UnderWay

_QUOTED = re.compile(r"'(ceph [^']+)'")
#: What stands for a name that the operator has to know.
_BLANK = re.compile(r"\b(NAME|PGID|RULE|OSDS|FLAG|POOL|NUMBER|RATIO|OPTION|TYPE)\b")
#: What only a person can do begins so.
_BY_HAND = ("add ", "start ", "move host ", "delete data", "make room on ", "bring ", "restart ",
            "set begin_time and end_time ", "give ", "ask ", "raise osd_max_pg_per_osd_hard_ratio ")
_NOTHING = "nothing"
#: Where to read on; it changes nothing.
_READING = ("ceph equilibrium explain", "ceph equilibrium status")
_HOLDING = ("noout", "norecover", "nobackfill")


def plain(session: Session, line: str) -> str:
    code, out, message = session._module_command(["equilibrium", *line.split()])
    return message if code else out


def labelled(text: str, label: str) -> str:
    """The sentence behind a label of a screen, its lines joined; empty where there is none."""
    found = re.search(rf"^{re.escape(label)} *(.*(?:\n +.*)*)", text, re.MULTILINE)
    return " ".join(found.group(1).split()) if found else ""


def formed(action: str) -> Iterator[str]:
    """What is wrong with a `do`."""
    commands = _QUOTED.findall(action)
    if action.startswith("'ceph"):
        if not commands or _BLANK.search(commands[0]):
            yield f"no whole command: {action}"
    elif not (action == _NOTHING or action.startswith((f"{_NOTHING};", f"{_NOTHING} here;",
                                                       *_BY_HAND))):
        yield f"neither a command, nor a wait, nor what a person does: {action}"


def told(status: Dict[str, Any], screen: str) -> Iterator[str]:
    """What is wrong with the advice of `status`, whatever the cluster is like."""
    action = status["action"]
    yield from formed(action)
    if labelled(screen, "do:") != ("" if action == _NOTHING else action):
        yield f"the screen says '{labelled(screen, 'do:')}', JSON '{action}'"
    if len(re.findall(r"^do:", screen, re.MULTILINE)) > 1:
        yield "it says twice what to do"
    for command in _QUOTED.findall(labelled(screen, "why:")):
        if command not in action and not command.startswith(_READING):
            yield f"'{command}' is in the reason, what to do is '{action}'"


def t17_advice(session: Session, ours: UnderWay, status: Dict[str, Any],
               evaluation: Dict[str, Any]) -> Iterator[str]:
    screen = plain(session, "status")
    yield from told(status, screen)
    yield from _outage(session, screen, "cluster:")
    if _down(session) and status["action"].startswith(_NOTHING):
        yield f"OSDs are down, what to do is '{status['action']}'"
    leaves = [move.pgid for move in ours.moves.values() for entry in status["too_full"][:1]
              if entry["osd"] in move.losses and move.pg.backfilling]
    if leaves and status["action"].startswith(("make room on", "'ceph osd set-backfillfull")):
        yield f"our move of {leaves[0]} leaves it already, what to do is '{status['action']}'"


def t17_explained(session: Session, status: Dict[str, Any]) -> Iterator[str]:
    """The same of `explain`, and whether both say the same."""
    screen = plain(session, "explain")
    answer = json.loads(plain(session, "explain --format json"))
    yield from formed(answer["action"])
    yield from _outage(session, screen, "cluster:")
    if labelled(screen, "do:") != answer["action"]:
        yield f"explain says '{labelled(screen, 'do:')}', its JSON '{answer['action']}'"
    if answer["reason_code"] == status["reason_code"] and answer["action"] != status["action"] and (
            not any(command in status["action"] for command in _READING)):
        yield f"status: {status['action']}; explain: {answer['action']}"


def t18_inactive(session: Session, ours: UnderWay, status: Dict[str, Any],
                 evaluation: Dict[str, Any]) -> Iterator[str]:
    inactive = [pg.pgid for pg in session.cluster.unclean.values()
                if "active" not in pg_reports.state_of(session.cluster, pg).split("+")]
    first = labelled(plain(session, "status"), "cluster:") if inactive else ""
    if inactive and "cannot be read or written" not in first:
        yield f"{len(inactive)} PGs are inactive, said is '{first}'"


def _down(session: Session) -> List[int]:
    """OSDs that are in and down."""
    return [osd for osd, entry in session.cluster.map.osds.items()
            if not entry["up"] and float(entry["weight"]) > 0.0]


def _outage(session: Session, screen: str, label: str) -> Iterator[str]:
    """What is missing in the first lines."""
    cluster, down = session.cluster, _down(session)
    full = [osd for osd, usage in cluster.usage.items() if usage.total
            and cluster.map.osds[osd]["up"] and usage.utilization > (
                cluster.map.ratio("full_ratio") + 0.001)]
    said = labelled(screen, label) if screen.startswith(label) else ""
    count = re.search(r"([0-9]+) OSDs? (?:is|are) down: ", said)
    if down and (count is None or int(count.group(1)) < len(down)):
        yield f"{len(down)} OSDs are down, first is said '{said}'"
    if down and "seen since" not in said:
        yield f"not since when: '{said}'"
    if full and not ("writes to" in said and "above full_ratio" in said):
        yield f"osd.{full[0]} takes no writes, first is said '{said}'"
    for flag in _HOLDING:
        if down and flag in cluster.map.flags and f"flag {flag} " not in said:
            yield f"flag {flag} is not in '{said}'"
