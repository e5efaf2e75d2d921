"""What `status` and `explain` say to do, held against its form and against what is wrong.

T17 each `do` is one whole command, or a wait, or one sentence for a person; the block below it has
the commands that it names; no command stands in the reason and not in the `do`; `status` and
`explain` say the same; an outage comes first; no command sets what is so already. T18 PGs that
nobody can read or write are part of that.
"""
from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from mgr_stub.clock import format_time
from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR

from ..rules.under_way import UnderWay
from . import cluster_view

_QUOTED = re.compile(r"'(ceph [^']+)'")
#: How a line of a block begins that is to be pasted into a shell.
_PASTED = r"\n  (?:\(until )?ceph "
#: What stands for a name that the operator has to know.
_BLANK = re.compile(r"\b(NAME|PGID|RULE|OSDS|FLAG|POOL|NUMBER|RATIO|OPTION|TYPE)\b")
#: What only a person can do begins so.
_BY_HAND = ("add ", "start ", "move host ", "delete data", "make room on ", "bring ", "restart ",
            "set begin_time and end_time ", "give ", "ask ", "raise osd_max_pg_per_osd_hard_ratio ")
_NOTHING = "nothing"
_WITHOUT_COMMAND = ("nothing;", "nothing here;", *_BY_HAND)
#: Where to read on; it changes nothing.
_READING = ("ceph equilibrium explain", "ceph equilibrium status")
#: An end that only copied bytes lead to.
_BY_COPYING = re.compile("nothing; it ends by itself (as |when what leaves|when all that moves)")
#: Seconds after which a PG that was sent has peered, and a look has shown that it is copied.
_PEERED_SECONDS = 420.0
#: Rounds after a batch until the next one has gone, where all of the first has arrived meanwhile.
_ROUNDS = 2.0
_HOLDING = ("noout", "norecover", "nobackfill")


def plain(session: Session, line: str) -> str:
    """The answer of a reading command that nothing comes of."""
    code, out, message = session._module_command(["equilibrium", *line.split()])
    if code:
        return message
    return out


def ask(session: Session, line: str) -> Dict[str, Any]:
    """The same as data."""
    said = plain(session, line + " --format json")
    answer: Dict[str, Any] = {"refused": said}
    if said.startswith("{"):
        answer = json.loads(said)
    return answer


def labelled(text: str, label: str) -> str:
    """The sentence behind a label of a screen, its lines joined, without a block below it; empty
    where there is none."""
    return _parts(text, label)[0]


def _parts(text: str, label: str) -> Tuple[str, List[str]]:
    """(the sentence behind a label, the commands of the block below it)."""
    found = re.search(rf"^{re.escape(label)} *(.*(?:(?!{_PASTED})\n +.*)*)((?:{_PASTED}.*)*)", text,
                      re.MULTILINE)
    if found is None:
        return "", []
    return " ".join(found[1].split()), re.findall(r"ceph (?:[^;&\n]*[^;& \n])", found[2])


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
    elif action != _NOTHING and not action.startswith(_WITHOUT_COMMAND):
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
    osdmap, (kind, name, *values) = session.cluster.map, [*words, ""]
    if kind == "config" and name == "set" and not _BLANK.search(values[2]):
        return values[2], session.simulation.config.get(*values[:2])
    if kind != "osd":
        return None, ""
    ratio = re.fullmatch(r"set-(full|backfillfull|nearfull)-ratio", name)
    if ratio is not None:
        return values[0], str(osdmap.ratio(f"{ratio[1]}_ratio"))
    if name == "reweight":
        return values[1], str(osdmap.reweight(int(values[0])))
    if is_first and name in ("set", "unset"):
        is_set = any(flag.startswith(values[0]) for flag in osdmap.flags)
        return name, "set" if is_set else "unset"
    return None, ""


def _figure(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def shown(session: Session, status: Dict[str, Any]) -> Tuple[Any, ...]:
    """What the screen's advice is about: where it is the same, the screen says the same."""
    cluster = session.cluster
    full = [osd for osd, usage in cluster.usage.items()
            if usage.utilization > cluster.map.ratio("full_ratio")]
    return (status["state"], status["action"], status["reason"], status["outage"], full,
            cluster_view.down(cluster), cluster.map.flags)


def t17_screen(session: Session, status: Dict[str, Any]) -> Iterator[str]:
    screen = plain(session, "status")
    yield from told(status, screen)
    yield from _outage(session, screen, "cluster:")


def t17_advice(session: Session, ours: UnderWay, status: Dict[str, Any]) -> Iterator[str]:
    yield from needless(session, status["action"])
    if cluster_view.down(session.cluster) and status["action"].startswith(_NOTHING):
        yield f"OSDs are down, what to do is '{status['action']}'"
    if _BY_COPYING.match(status["action"]) and not _is_copied(session):
        yield f"nothing is copied, what to do is '{status['action']}'"
    if status["action"].startswith(("make room on", "'ceph osd set-backfillfull")):
        too_full = [entry["osd"] for entry in status["too_full"][:1]]
        for move in ours.moves.values():
            if move.pg.backfilling and not set(too_full).isdisjoint(move.losses):
                yield (f"our move of {move.pgid} leaves it already, what to do is"
                       f" '{status['action']}'")
                break


def t17_explained(session: Session, status: Dict[str, Any]) -> Iterator[str]:
    """The same of `explain`, and whether both say the same."""
    screen = plain(session, "explain")
    answer = ask(session, "explain")
    yield from formed(answer["action"])
    yield from needless(session, answer["action"])
    yield from _outage(session, screen, "cluster:")
    yield from _shown(screen, answer["action"])
    is_same = answer["reason_code"] != status["reason_code"] or answer["action"] == status["action"]
    if not is_same and not any(command in status["action"] for command in _READING):
        yield f"status: {status['action']}; explain: {answer['action']}"


def t18_inactive(session: Session, ours: UnderWay, status: Dict[str, Any]) -> Iterator[str]:
    cluster = session.cluster
    inactive = sum("active" not in cluster_view.words_of(cluster, pg)
                   for pg in cluster.unclean.values())
    if not inactive:
        return
    first = labelled(plain(session, "status"), "cluster:")
    if "cannot be read or written" not in first:
        yield f"{inactive} PGs are inactive, said is '{first}'"


def _is_copied(session: Session) -> bool:
    """Whether a shard is copied now or, by an osdmap of this very second, is about to be; or one
    of ours has just been sent."""
    if session.cluster.map.modified == format_time(session.clock.now):
        return True
    for pg in session.cluster.unclean.values():
        if cluster_view.words_of(session.cluster, pg) & {"backfilling", "recovering"}:
            return True
    some_rounds = _ROUNDS * float(session.module.settings().sleep_interval)
    since = session.clock.now - max(_PEERED_SECONDS, some_rounds)
    ours = [entry for entry in session.command_log if entry.sender == MGR]
    return any(entry.sent_at > since and not entry.returncode for entry in reversed(ours))


def _outage(session: Session, screen: str, label: str) -> Iterator[str]:
    """What is missing in the first lines."""
    cluster, down = session.cluster, cluster_view.down(session.cluster)
    most = cluster.map.ratio("full_ratio") + 0.001
    full = [osd for osd, usage in cluster.usage.items()
            if cluster.map.is_up(osd) and usage.utilization > most]
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
