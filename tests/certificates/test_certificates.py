"""Certificates of real answers are accepted, forged ones are refused, each for its own reason.

`check_certificate.py` shares nothing with the module, and can be run by itself.
"""
from __future__ import annotations

import copy
import json
import lzma
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.demo import DEMO_STATE
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import SHAPES, make_cluster
from tests.certificates import check_certificate
from tests.certificates.check_certificate import check
from tests.commands.asking import ask, optimize
from tests.support.clusters.bound_clusters import mixed_classes
from tests.support.clusters.unit_cluster import plan_of
from tests.support.few import few

from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import make_view
from equilibrium_mgr.planner.bound.lower_bound import cluster_bounds
from equilibrium_mgr.report.cluster.evaluation import Look, evaluate_plan

Json = Dict[str, Any]


def read(path: Path) -> Json:
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt") as stream:
        state: Json = json.load(stream)
    return state


def made(name: str, folder: Path) -> Path:
    """The state file of a made cluster."""
    path = folder / "state.json"
    path.write_text(json.dumps(state_of(
        mixed_classes() if name == "mixed" else make_cluster(name))))
    return path


def evaluation(path: Path) -> Json:
    """As `eval p --format json`, for a plan without moves: the cluster's cuts are those of any
    plan."""
    session = Session.from_state(str(path), release=18)
    snapshot = session.module.gateway.snapshot()
    view = make_view(snapshot, cluster_bounds(snapshot), PendingMoves(), 0.05, False)
    plan = plan_of(epoch=snapshot.epoch)
    answer = evaluate_plan(
        "p", plan, Look(view, 0.0, session.module.gateway.pool_space()), snapshot.epoch)
    session.close()
    found: Json = json.loads(json.dumps(answer.data))
    return found


def without_moves(answer: Json) -> Json:
    """As `show p --format json` of that plan."""
    return {"osdmap_epoch": answer["osdmap_epoch"], "moves": []}


def demo_answers() -> Tuple[Json, Json]:
    """`eval p` and `show p` of a plan of the demo cluster, by the commands."""
    session = Session.from_state(None, release=18)
    optimize(session)
    found = ask(session, "eval p"), ask(session, "show p")
    session.close()
    return found


@pytest.mark.parametrize("name", few(["demo", "mixed", *SHAPES], 4))
def test_certificates_of_answers_are_accepted(name: str, tmp_path: Path) -> None:
    if name == "demo":
        path, answers = Path(DEMO_STATE), demo_answers()
    else:
        path = made(name, tmp_path)
        empty = evaluation(path)
        answers = empty, without_moves(empty)
    answer, files = answers[0], [path]
    for number, content in enumerate(answers):
        files.append(tmp_path / f"answer-{number}.json")
        files[-1].write_text(json.dumps(content))
    said = subprocess.run([sys.executable, check_certificate.__file__, *map(str, files)],
                          capture_output=True, text=True)
    assert said.stdout == "accepted\n", said.stderr
    proof = answer["certificates"]
    assert {entry["device_class"] for entry in proof["classes"]} == {
        row["device_class"] for row in answer["classes"]}
    assert {entry["id"] for entry in proof["pools"]} == {row["id"] for row in answer["pools"]}
    for row, entry in zip(answer["classes"], proof["classes"]):
        assert entry["bound_utilization"] == pytest.approx(row["bound_utilization"], rel=1e-9)


def test_the_checker_is_short_and_shares_nothing() -> None:
    text = Path(check_certificate.__file__).read_text()
    assert len(text.splitlines()) <= 80
    assert not re.search("(import|from) (equilibrium|tests)", text)


# -- forgeries -------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What the checker is given."""

    state: Json
    answer: Json   # of `eval`
    plan: Json     # of `show`


@pytest.fixture(scope="module")
def giant(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A cluster whose rules keep bytes off a giant host."""
    path = made("giant", tmp_path_factory.mktemp("state"))
    answer = evaluation(path)
    return Case(read(path), answer, without_moves(answer))


@pytest.fixture(scope="module")
def demo() -> Case:
    """The demo cluster, and a plan."""
    return Case(read(Path(DEMO_STATE)), *demo_answers())


def cut_of(proof: Json) -> Json:
    """The cut of the first class."""
    found: Json = proof["cuts"][proof["classes"][0]["cut"]]
    return found


def with_bound(proof: Json) -> None:
    """Makes the bounds follow from the cuts again."""
    for entry in proof["classes"]:
        cut = proof["cuts"][entry["cut"]]
        entry["bound_utilization"] = (
            cut["used_bytes"] - cut["can_leave_bytes"]) / cut["size_bytes"]


MISSING = "a set or pool with data is missing"
MISQUOTED = "limits of a pool, or a pool that has nothing there"

#: Forgery → where it is, how it is changed, and what the checker has to say to it. `proof`: in the
#: certificates of the cluster with the giant host; `cut`: in that of their first class; `state`;
#: `demo`: in the certificates of the demo cluster; `plan`: in its plan.
CHANGES: Dict[str, Tuple[str, Callable[[Any], Any], str]] = {
    "bound too high": ("proof classes 0 bound_utilization", lambda old: old + 0.0001,
                       "bound of a set"),
    "bound is no number": ("proof classes 0 bound_utilization", lambda old: float("nan"),
                           "bound of a set"),
    "less can leave": ("cut can_leave_bytes", lambda old: old - (1 << 40), "more can leave"),
    "bytes overstated": ("cut used_bytes", lambda old: old + old // 100, "sums of a cut"),
    "sizes understated": ("cut size_bytes", lambda old: old - old // 100, "sums of a cut"),
    "full understated": ("cut full_bytes", lambda old: old - (1 << 30), "sums of a cut"),
    "OSD left out": ("cut osds", lambda old: old[:-1], "sums of a cut"),
    "OSD named twice": ("cut osds", lambda old: old + old[:1],
                        "OSDs that do not count, or none"),
    "unknown OSD": ("cut osds", lambda old: [9999] + old[1:],
                    "OSDs that do not count, or none"),
    "limit misquoted": ("cut kept 0 limits 0 most_shards", lambda old: old + 1,
                        MISQUOTED),
    "fewer elsewhere": ("cut kept 0 most_elsewhere", lambda old: old - 1, MISQUOTED),
    "kept overstated": ("cut kept 0 kept_bytes", lambda old: old * 1.1,
                        "kept_bytes of pool"),
    "kept of another pool": ("cut kept", lambda old: old + [dict(old[0], pool=4711)],
                             MISQUOTED),
    "pool left out": ("cut kept", lambda old: old[1:], "more can leave"),
    "another epoch": ("proof osdmap_epoch", lambda old: old + 1, "another osdmap epoch"),
    "space understated": ("proof pools 0 split_bytes", lambda old: old - old // 1000,
                          "split_bytes"),
    "more shards kept": ("proof pools 0 kept_shards", lambda old: old + 1, "kept_shards"),
    "pool removed": ("proof pools", lambda old: old[:-1], MISSING),
    "class removed": ("proof classes", lambda old: old[:-1], MISSING),
    # of the demo cluster, and of its plan
    "more has to be moved": ("demo classes 0 least_moved_bytes",
                             lambda old: old + old // 100, "least_moved_bytes"),
    # else any maximum could be had
    "other bytes": ("plan moves 0 bytes", lambda old: old * 2, "bytes of a move"),
    # the certificate is of another moment
    "cluster at work": ("state pg_dump pg_map pg_stats 0 acting",
                        lambda old: [*old[1:], 9999], "data in flight"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_forged_value_is_refused(name: str, giant: Case, demo: Case) -> None:
    path, change, why = CHANGES[name]
    where, *words = path.split()
    case = demo if where in ("demo", "plan") else giant
    forged = Case(*copy.deepcopy(tuple(case)))
    proof = forged.answer["certificates"]
    parts = {"cut": cut_of(proof), "plan": forged.plan, "state": forged.state}
    value: Any = parts.get(where, proof)
    *keys, last = [int(word) if word.isdigit() else word for word in words]
    for key in keys:
        value = value[key]
    value[last] = change(value[last])
    if where == "cut":
        with_bound(proof)
    with pytest.raises(AssertionError, match=f"^({why})"):
        check(*forged)


def test_certificates_of_a_cluster_with_faults_are_accepted(tmp_path: Path) -> None:
    """PGs with holes and PGs that break their rule: what is said of them is weaker, and true."""
    path = made("giant", tmp_path)
    state = read(path)
    beside = {}   # OSD → those of its host
    for bucket in state["crush_dump"]["buckets"]:
        if bucket["type_name"] == "host":
            osds = [item["id"] for item in bucket["items"]]
            beside.update(dict.fromkeys(osds, osds))
    pg_map, held = state["pg_dump"]["pg_map"], Counter[int]()
    for number, pg in enumerate(pg_map["pg_stats"]):
        up = list(pg["up"])
        if number % 50 == 0:
            up[-1] = 0x7fffffff
        elif number % 10 == 1:
            up[1] = next(osd for osd in beside[up[0]] if osd not in up)
        pg.update(up=up, acting=up)
        held.update(up)
    for stat in pg_map["osd_stats"]:   # else OSDs would still delete PGs
        stat["num_pgs"] = held[stat["osd"]]
    path.write_text(json.dumps(state))
    answer = evaluation(path)
    assert answer["certificates"]["classes"]
    assert check(state, answer, without_moves(answer)) == "accepted"
