"""Situations of the simulated cluster, the reason that `explain` gives, and what it says to do.

`pytest -s tests/explain/test_followed.py` prints the rows of the table.
"""
from __future__ import annotations

import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from mgr_stub.console.session import Session
from tests.commands.asking import ask
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Osds, PoolPlan, fill
from tests.scenarios.clusters import crush_places, session_of
from tests.support.rules import HDD_HOSTS

OPTION = "config set mgr mgr/equilibrium/"


class Situation(NamedTuple):
    """How a reason comes about, and for how long what it says takes to end it."""

    name: str
    code: str
    setup: Tuple[str, ...]          # command lines; "option NAME VALUE" for one of the module's
    wait: str                       # of `sim run`, after what the action says was done
    what: str = ""                  # OSD, pool or PG that is explained
    cluster: Tuple[str, int] = ("random", 20)
    follow: Tuple[str, ...] = ()    # what the operator does where the action is no one command
    must_act: str = ""              # the action begins so


class Followed(NamedTuple):
    """What was seen: before, and after the action."""

    code: str
    state: str
    action: str
    done: Tuple[str, ...]
    code_after: str
    state_after: str

    @property
    def ended(self) -> bool:
        """Whether the state, or the reason, is another one."""
        return (self.code_after, self.state_after) != (self.code, self.state)


def follow(situation: Situation) -> Followed:
    """Makes the situation, asks, does what the answer says, and asks again."""
    with tempfile.TemporaryDirectory() as folder:
        session = open_cluster(*situation.cluster, Path(folder))
        try:
            for line in situation.setup:
                _do(session, line)
            what = _named(session, situation.what)
            before = explained(session, what)
            done = situation.follow or console_lines(before["action"], session)
            for line in done:
                _do(session, line)
            _do(session, f"sim run {situation.wait}")
            after = explained(session, what)
        finally:
            session.close()
    return Followed(before["reason_code"], before["state"], before["action"], tuple(done),
                    after["reason_code"], after["state"])


def open_cluster(name: str, seed: int, folder: Path) -> Session:
    """A cluster of the scenarios, or `few`: 8 PGs with most of the data on ten OSDs."""
    if name != "few":
        return session_of(name, seed, folder)
    rng, osds = random.Random(f"few/{seed}"), Osds()
    tree = {f"host h{h}": osds.host([1, 1]) for h in range(5)}
    layout = osds.layout(tree, {0: HDD_HOSTS}, [PoolPlan("rbd", 0.98, 8), PoolPlan("fs", 0.02, 32)])
    path = folder / "state.json"
    path.write_text(json.dumps(state_of(fill(layout, rng, crush_places))))
    return Session.from_state(str(path), release=18, seed=seed)


def explained(session: Session, what: str) -> Dict[str, Any]:
    """`explain`, on a view that is not older than a moment, with the state that holds."""
    session.command("equilibrium explain")   # has the cluster looked at where that is long ago
    _do(session, "sim run 2s")
    data: Dict[str, Any] = ask(session, f"explain {what}".strip())
    return dict(data, state=ask(session, "status")["state"])


def console_lines(action: str, session: Session) -> List[str]:
    """The lines of the simulator for the command that an action names; none where it says to wait.
    """
    found = re.match(r"'ceph ([^']+)'", action) or (
        None if action.startswith("nothing") else re.search(r"'ceph ([^']+)'", action))
    if found is None:
        return []
    words = found.group(1).split()
    ratio = session.cluster.map.ratio
    simulated: Dict[str, Callable[[], str]] = {
        "osd pool set": lambda: f"sim pool pg_num {words[3]} {words[5]}",
        "osd reweight": lambda: f"sim osd reweight {words[2]} {words[3]}",
        "osd crush reweight": lambda: f"sim osd crush-reweight {words[3][4:]} {words[4]}",
        "osd set-nearfull-ratio": lambda: (
            f"sim osd full-ratios {words[2]} {ratio('backfillfull_ratio')} {ratio('full_ratio')}"),
        "osd set-backfillfull-ratio": lambda: (
            f"sim osd full-ratios {ratio('nearfull_ratio')} {words[2]} {ratio('full_ratio')}"),
        "osd tree": lambda: "sim run 1s",
        "mgr fail": lambda: "sim mgr fail"}
    for prefix, line in simulated.items():
        if found.group(1).startswith(prefix):
            return [line()]
    return [found.group(1)]


def _named(session: Session, what: str) -> str:
    """The PG that stands for a word in capitals."""
    status = session.module.balancer.status
    if what == "MOVING":
        return min(pgid for pgid, pg in status.view.snapshot.pgs.items() if pg.is_moving)
    if what == "REJECTED":
        return min(status.rejected)
    if what == "MOVED":
        moved = session.module.balancer.dispatcher.cooldown.moved
        return min(pgid for pgid in moved if not status.view.snapshot.pgs[pgid].is_moving)
    return what


def _do(session: Session, line: str) -> None:
    words = line.split()
    if words[0] == "option":
        line = f"{OPTION}{words[1]} {words[2]}"
    rc, _, error = session.command(line)
    assert rc == 0, (line, error)


def table(rows: Sequence[Tuple[Situation, Followed]]) -> str:
    """For reports: one line a situation, in Markdown."""
    lines = ["| situation | code | action | done in the simulator | then |",
             "|---|---|---|---|---|"]
    for situation, seen in rows:
        done = "; ".join(seen.done) or "-"
        lines.append(f"| {situation.name} | `{seen.code}` | {seen.action} | {done},"
                     f" {situation.wait} | {seen.state}: {seen.code} → {seen.state_after}:"
                     f" {seen.code_after} |")
    return "\n".join(lines)
