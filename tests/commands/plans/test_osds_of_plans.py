"""`optimize` with --from, --to and --not, and the options of automatic balancing that do the same.
"""

from __future__ import annotations

import errno
from typing import Any, Dict, Set

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, optimize, refused, run


def hosts_of(session: Session, plan: Dict[str, Any], end: str) -> Set[str]:
    crush = session.cluster.crush
    return {str(crush.host_of(move[end])) for move in plan["moves"]}


def some_hosts(session: Session) -> list[str]:
    crush = session.cluster.crush
    return sorted({str(crush.host_of(osd)) for osd, name in crush.classes.items()
                   if name == "hdd"})


@pytest.mark.parametrize("style", ["--from {a} --from {b}", "--from={a},{b}", "--from {a},{b}"])
def test_from(session: Session, style: str) -> None:
    a, b = some_hosts(session)[:2]
    plan = optimize(session, "p " + style.format(a=a, b=b))
    assert plan["moves"]
    assert hosts_of(session, plan, "from") <= {a, b}


def test_to_and_not(session: Session) -> None:
    a, b, c = some_hosts(session)[:3]
    plan = optimize(session, f"p --to {a}")
    assert plan["moves"]
    assert hosts_of(session, plan, "to") == {a}
    plan = optimize(session, f"p --not {a},{b}")
    assert plan["moves"]
    for end in ("from", "to"):
        assert not hosts_of(session, plan, end) & {a, b}
    plan = optimize(session, f"p --from osd.{plan['moves'][0]['from']}")
    assert len({move["from"] for move in plan["moves"]}) == 1


@pytest.mark.parametrize("argument", ["--from hots", "--to osd.4711", "--not ,", "--not osd.0,x"])
def test_unknown_names(session: Session, argument: str) -> None:
    rc, said = refused(session, "equilibrium optimize p " + argument)
    assert rc == -errno.ENOENT
    assert argument.split()[0] in said
    assert "ceph osd tree" in said


def test_arguments_replace_the_options(session: Session) -> None:
    a, b = some_hosts(session)[:2]
    run(session, f"config set mgr mgr/equilibrium/from_buckets {a}")
    assert hosts_of(session, optimize(session, "p"), "from") == {a}
    assert hosts_of(session, optimize(session, f"p --from {b}"), "from") == {b}


@pytest.mark.parametrize("limit, said", [
    ("--from osd.6", "off osd.6"), ("--device-class ssd", "of class ssd"),
    ("--device-class ssd --to osd.5", "of class ssd to osd.5")])
def test_eval_says_what_a_plan_is_limited_to(session: Session, limit: str, said: str) -> None:
    optimize(session, f"p {limit}")
    found = ask(session, "eval p")["distance"]["classes"]
    reasons = {str(row["reason"]) for row in found if not row["is_near"]}
    assert any(f"the plan is limited to moves {said}" in reason for reason in reasons)
    assert not any("worth its bytes" in reason for reason in reasons)
