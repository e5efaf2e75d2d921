"""What `status` and `explain` say to do, held against its form and against what is wrong.

T17 each `do` is one whole command, or a wait, or one sentence for a person; the block below it has
the commands that it names; no command stands in the reason and not in the `do`; `status` and
`explain` say the same; an outage comes first; no command sets what is so already. T18 PGs that nobody can read or write are part of
that.
"""
from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR

from ..rules.under_way import UnderWay

_QUOTED = re.compile(r"'(ceph [^']+)'")
#: How a line of a block begins that is to be pasted into a shell.
_PASTED = r"\n  (?:\(until )?ceph "
#: What stands for a name that the operator has to know.
_BLANK = re.compile(r"\b(NAME|PGID|RULE|OSDS|FLAG|POOL|NUMBER|RATIO|OPTION|TYPE)\b")
#: What only a person can do begins so.
_BY_HAND = ("add ", "start ", "move host ", "delete data", "make room on ", "bring ", "restart ",
            "set begin_time and end_time ", "give ", "ask ", "raise osd_max_pg_per_osd_hard_ratio ")
_NOTHING = "nothing"
#: Where to read on; it changes nothing.
_READING = ("ceph equilibrium explain", "ceph equilibrium status")
#: An end that only copied bytes lead to.
_BY_COPYING = re.compile("nothing; it ends by itself (as |when what leaves|when all that moves)")
#: Seconds after which a PG that was sent has peered, and a look has shown that it is copied or waits.
_PEERED_SECONDS = 420.0
#: Rounds after a batch until the next one has gone, where all of the first has arrived meanwhile.
_ROUNDS = 2.0
_HOLDING = ("noout", "norecover", "nobackfill")


def plain(session: Session, line: str) -> str:
    code, out, message = session._module_command(["equilibrium", *line.split()])
    return message if code else out


def labelled(text: str, label: str) -> str:
    """The sentence behind a label of a screen, its lines joined, without a block below it; empty
    where there is none."""
    return _parts(text, label)[0]


def _parts(text: str, label: str) -> Tuple[str, List[str]]:
    """(the sentence behind a label, the commands of the block below it)."""
    found = re.search(rf"^{re.escape(label)} *(.*(?:(?!{_PASTED})\n +.*)*)((?:{_PASTED}.*)*)", text,
                      re.MULTILINE)
    return ("", []) if found is None else (
        " ".join(found[1].split()), re.findall(r"ceph (?:[^;&\n]*[^;& \n])", found[2]))


def _shown(screen: str, action: str) -> Iterator[str]:
    """What is wrong with the `do` of a screen, and with the block below it, beside JSON."""
    (said, block), commands = _parts(screen, "do:"), _QUOTED.findall(action)
    if said != action:
        yield f"the screen says '{said}', JSON '{action}'"
    if (block or "ceph equilibrium freeze" in commands) and list(dict.fromkeys(block)) != commands:
        yield f"{block} is to be pasted, said is '{action}'"


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
    yield from _shown(screen, "" if action == _NOTHING else action)
    if len(re.findall(r"^do:", screen, re.MULTILINE)) > 1:
        yield "it says twice what to do"
    for command in _QUOTED.findall(labelled(screen, "why:")):
        if command not in action and not command.startswith(_READING):
            yield f"'{command}' is in the reason, what to do is '{action}'"


def needless(session: Session, action: str) -> Iterator[str]:
    """The commands of a `do` that set an option, a ratio, a weight or a flag to what it is."""
    for number, command in enumerate(_QUOTED.findall(action)):
        wanted, there = _setting(session, command.split()[1:], is_first=not number)
        if wanted is not None and _figure(wanted) == _figure(there):
            yield f"'{command}' sets what is so already"


def _setting(session: Session, words: List[str], is_first: bool) -> Tuple[Optional[str], str]:
    """(the value that a command sets, the value that there is); None of a command that sets none.
    What comes before a later command may have changed a flag."""
    osdmap, config = session.cluster.map, session.simulation.config
    if words[:2] == ["config", "set"] and not _BLANK.search(words[4]):
        return words[4], config.get(words[2], words[3])
    if words[0] == "osd" and words[1] in ("set-full-ratio", "set-backfillfull-ratio",
                                          "set-nearfull-ratio"):
        return words[2], str(osdmap.ratio(words[1][len("set-"):].replace("-", "_")))
    if words[:2] == ["osd", "reweight"]:
        return words[3], str(osdmap.reweight(int(words[2])))
    if words[0] == "osd" and words[1] in ("set", "unset") and is_first:
        is_set = any(flag.startswith(words[2]) for flag in osdmap.flags)
        return words[1], "set" if is_set else "unset"
    return None, ""


def _figure(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def t17_advice(session: Session, ours: UnderWay, status: Dict[str, Any],
               evaluation: Dict[str, Any]) -> Iterator[str]:
    screen = plain(session, "status")
    yield from told(status, screen)
    yield from needless(session, status["action"])
    yield from _outage(session, screen, "cluster:")
    if _down(session) and status["action"].startswith(_NOTHING):
        yield f"OSDs are down, what to do is '{status['action']}'"
    if _BY_COPYING.match(status["action"]) and not _is_copied(session):
        yield f"nothing is copied, what to do is '{status['action']}'"
    leaves = [move.pgid for move in ours.moves.values() for entry in status["too_full"][:1]
              if entry["osd"] in move.losses and move.pg.backfilling]
    if leaves and status["action"].startswith(("make room on", "'ceph osd set-backfillfull")):
        yield f"our move of {leaves[0]} leaves it already, what to do is '{status['action']}'"


def t17_explained(session: Session, status: Dict[str, Any]) -> Iterator[str]:
    """The same of `explain`, and whether both say the same."""
    screen = plain(session, "explain")
    answer = json.loads(plain(session, "explain --format json"))
    yield from formed(answer["action"])
    yield from needless(session, answer["action"])
    yield from _outage(session, screen, "cluster:")
    yield from _shown(screen, answer["action"])
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


def _is_copied(session: Session) -> bool:
    """Whether a shard is copied now, or one of ours has just been sent."""
    copied = any({"backfilling", "recovering"}.intersection(
        pg_reports.state_of(session.cluster, pg).split("+"))
        for pg in session.cluster.unclean.values())
    some_rounds = _ROUNDS * float(session.module.settings().sleep_interval)
    since = session.clock.now - max(_PEERED_SECONDS, some_rounds)
    return copied or any(entry.sender == MGR and not entry.returncode and entry.sent_at > since
                         for entry in reversed(session.simulation.monitor.log))


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
