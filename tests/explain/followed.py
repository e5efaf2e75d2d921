"""Situations of the simulated cluster, the reason that `explain` gives, and what it says to do.

`pytest -s tests/explain/test_followed.py` prints what was seen.
"""
from __future__ import annotations

import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from tests.commands.asking import ask, paste
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Osds, PoolPlan, fill
from tests.explain.same_figures import differing
from tests.scenarios.clusters import crush_places, session_of
from tests.scenarios.watch import advice
from tests.support.rules import HDD_HOSTS

OPTION = "config set mgr mgr/equilibrium/"
#: What is said where shards are as small as advice makes them.
LEAST = "nothing; the shards are larger than the difference"


class Situation(NamedTuple):
    """How a reason comes about, and for how long what it says takes to end it. The line PASTE of
    `follow` runs the block below what the screen says to do."""

    name: str
    code: str
    setup: Tuple[str, ...]          # command lines; "option NAME VALUE" for one of the module's
    wait: str                       # of `sim run`, after what the action says was done
    what: str = ""                  # OSD, pool or PG that is explained
    cluster: Tuple[str, int] = ("random", 20)
    follow: Tuple[str, ...] = ()    # what the operator does where the action is no one command
    begins: str = ""                # the action does so
    is_outage: bool = False         # it ends, and nothing is worse than where nobody acts
    is_better: bool = False         # the fullest OSD is clearly less full than where nobody acts
    screens: int = 1                # that are followed, one after the other


class Followed(NamedTuple):
    """What was seen: before, and after the action."""

    code: str
    state: str
    action: str
    done: Tuple[str, ...]
    code_after: str
    state_after: str
    outage: Optional[Dict[str, Any]] = None
    outage_after: Optional[Dict[str, Any]] = None
    action_after: str = ""

    @property
    def ended(self) -> bool:
        """Whether the outage is over; else whether the state, or the reason, is another one, or
        there is no more to be done about it."""
        if self.outage is not None:
            return self.outage_after is None
        return (self.code_after, self.state_after) != (self.code, self.state) or (
            self.action_after.startswith(LEAST) and not self.action.startswith(LEAST))


def follow(situation: Situation) -> Followed:
    """Makes the situation, asks, does what the answer says, and asks again; and holds how the
    cluster is then against how it is where nobody acts."""
    with tempfile.TemporaryDirectory() as folder:
        before, done, after, harm = _played(situation, Path(folder), True)
        if (situation.is_outage or situation.is_better) and done:
            _, _, _, alone = _played(situation, Path(folder), False)
            for one, other in zip(harm, alone):
                assert one <= other + _SLACK, (before["action"], done, harm, alone)
            assert not situation.is_better or harm[0] < alone[0] - 0.01, (done, harm, alone)
    return Followed(before["reason_code"], before["state"], before["action"], tuple(done),
                    after["reason_code"], after["state"],
                    before["outage"], after["outage"], after["action"])


def _played(situation: Situation, folder: Path, acts: bool
            ) -> Tuple[Dict[str, Any], Sequence[str], Dict[str, Any], Tuple[float, ...]]:
    """(the answer before, the lines that were run, the answer after, the harm then)."""
    session = open_cluster(*situation.cluster, folder)
    try:
        for line in situation.setup:
            _do(session, line)
        what = _named(session, situation.what)
        before = after = explained(session, what)
        done: List[str] = []
        for _ in range(situation.screens):
            lines = (situation.follow or carried_out(after["action"], session)) if acts else ()
            for line in lines:
                _do(session, line)
            done.extend(lines)
            _do(session, f"sim run {situation.wait}")
            after = explained(session, what)
        return before, done, after, harm(session)
    finally:
        session.close()


#: By which the measures of a cluster may be higher where somebody has acted.
_SLACK = 0.002


def harm(session: Session) -> Tuple[float, ...]:
    """(highest utilization, OSDs above full_ratio, PGs that cannot be read or written)."""
    cluster = session.cluster
    used = [usage.utilization for osd, usage in cluster.usage.items()
            if usage.total and cluster.map.osds[osd]["up"]]
    inactive = [pg for pg in cluster.unclean.values()
                if "active" not in pg_reports.state_of(cluster, pg).split("+")]
    return (max(used), float(sum(ratio > cluster.map.ratio("full_ratio") for ratio in used)),
            float(len(inactive)))


def open_cluster(name: str, seed: int, folder: Path) -> Session:
    """A cluster of the scenarios; `few`: 8 PGs with most of the data on ten OSDs; or `four`: 4 PGs
    without copies on three OSDs."""
    osds = Osds()
    if name == "few":
        tree = {f"host h{number}": osds.host([1, 1]) for number in range(5)}
        pools = [PoolPlan("rbd", 0.98, 8), PoolPlan("fs", 0.02, 32)]
    elif name == "four":
        tree = {f"host h{number}": osds.host([1]) for number in range(3)}
        pools = [PoolPlan("rbd", 1.0, 4, size=1)]
    else:
        return session_of(name, seed, folder)
    rng = random.Random(f"{name}/{seed}")
    layout = osds.layout(tree, {0: HDD_HOSTS}, pools)
    path = folder / "state.json"
    path.write_text(json.dumps(state_of(fill(layout, rng, crush_places))))
    return Session.from_state(str(path), release=18, seed=seed)


def explained(session: Session, what: str) -> Dict[str, Any]:
    """`explain`, on a view that is not older than a moment, with the state that holds. What the
    screens say to do has its form, in JSON and in plain."""
    session.command("equilibrium explain")   # has the cluster looked at where that is long ago
    _do(session, "sim run 2s")
    data: Dict[str, Any] = ask(session, f"explain {what}".strip())
    status = ask(session, "status")
    wrong = [*advice.formed(data["action"]), *advice.told(status, advice.plain(session, "status"))]
    if not what:
        wrong += [*advice.t17_explained(session, status), *differing(session)]
    assert not wrong, wrong
    return dict(data, state=status["state"], outage=status["outage"])


def carried_out(action: str, session: Session) -> List[str]:
    """The lines for what is to be done: the command as it stands; none where it says to wait; what
    a person does where it is that."""
    command = re.match(r"'(ceph [^']+)'", action)
    if command is not None:
        return [command.group(1)]
    if action.startswith("nothing"):
        return []
    moved = re.match("move host ([^ ]+) from [^ ]+ to the ([^ ]+) ", action)
    if moved is not None:
        buckets = session.cluster.crush.buckets.values()
        place = min(b["name"] for b in buckets if b["type_name"] == moved.group(2)
                    and "~" not in b["name"])
        return [f"ceph osd crush move {moved.group(1)} {moved.group(2)}={place}"]
    if action.startswith("start "):
        listed = session.command("ceph osd tree down")[1]
        return [f"sim osd up {osd}" for osd in re.findall(r"osd\.([0-9]+)", listed)]
    if action.startswith(("make room", "delete data")):
        pool = max(session.cluster.map.pools.values(), key=lambda pool: pool["pg_num"])
        return [f"sim delete {pool['pool_name']} {_part(session, pool['pool'])}"]
    named = re.search(r"'(ceph [^']+)'", action)   # of a sentence that is for a person
    return [named.group(1)] if named is not None else []


def _part(session: Session, pool_id: int) -> int:
    """A fifth of what a pool stores."""
    return sum(pg.num_bytes for pg in session.cluster.pgs.values() if pg.pool_id == pool_id) // 5


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
    if line == "PASTE":   # the block below what is to be done
        assert paste(session, advice.plain(session, "status"))
        return
    if words[0] == "option":
        line = f"{OPTION}{words[1]} {words[2]}"
    rc, _, error = session.command(line)
    assert rc == 0, (line, error)
