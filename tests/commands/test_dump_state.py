"""`dump-state`: loads again as a state file; `--anonymous` tells no names."""

from __future__ import annotations

import errno
import json
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few
from tests.support.secrets import SECRETS, with_secrets

from .asking import ask, by, optimize, refuses, run, until_all_have_peered
from .conftest import look


def dumped(session: Session, arguments: str = "") -> Dict[str, Any]:
    state: Dict[str, Any] = json.loads(run(session, "equilibrium dump-state " + arguments))
    return state


def reopened(open_session: Callable[..., Session], state: Dict[str, Any]) -> Session:
    again = open_session(18, state)
    look(again)
    return again


FIGURES = ("utilization", "max_utilization", "min_utilization", "stddev",
           "soon_max_utilization", "soon_min_utilization", "soon_stddev")


def classes(session: Session) -> Dict[str, Any]:
    return by("device_class", ask(session, "eval")["classes"])


def pools(session: Session) -> Dict[int, Any]:
    """Figures of the pools by id: names may differ."""
    return {space["id"]: {key: value for key, value in space.items() if key != "name"}
            for space in ask(session, "eval")["pools"]}


def figures(session: Session) -> List[Dict[str, Any]]:
    """Of the classes, by their fullest OSD: names may differ."""
    found = [{**row, "device_class": ""} for row in ask(session, "eval")["classes"]]
    return sorted(found, key=lambda row: int(row["fullest_osd"]))


def same_evaluation(one: Session, other: Session) -> None:
    assert figures(one) == figures(other)
    assert pools(one) == pools(other)
    wanted, made = optimize(one), optimize(other)
    assert made["moves"] == wanted["moves"]
    assert made["predicted_up"] == wanted["predicted_up"]


def test_with_upmap_items_and_moves_under_way(
        session: Session, open_session: Callable[..., Session]) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run 2m", "equilibrium off", "sim run 61s")
    until_all_have_peered(session)
    look(session)
    again = reopened(open_session, dumped(session, "--anonymous"))
    assert again.cluster.map.upmap_items == session.cluster.map.upmap_items
    assert again.cluster.map.up == session.cluster.map.up
    for name, figures in classes(session).items():
        for key in FIGURES:
            assert classes(again)[name][key] == pytest.approx(figures[key], abs=0.002)
    for one in (session, again):
        run(one, "sim run idle")
        look(one)
    for name, figures in classes(session).items():
        assert classes(again)[name]["max_utilization"] == pytest.approx(
            figures["max_utilization"], abs=0.002)


def test_before_the_first_look(open_session: Callable[..., Session]) -> None:
    """Switched off, nothing else starts one."""
    session = open_session(18)
    run(session, "sim run 1s")
    refuses(session, "dump-state", errno.EAGAIN, "a look has been started")
    run(session, "sim run 1s")
    assert dumped(session)["osd_dump"]["epoch"] == session.cluster.map.epoch


@pytest.mark.parametrize("release", few((18, 16, 20), 1))
def test_anonymous_tells_no_names(release: int, demo_state: Dict[str, Any],
                                  open_session: Callable[..., Session]) -> None:
    session = open_session(release, with_secrets(demo_state))
    look(session)
    named = run(session, "equilibrium dump-state")
    assert all(word in named for word in SECRETS)
    text = run(session, "equilibrium dump-state --anonymous")
    for word in SECRETS:
        where = text.find(word)
        assert where < 0, text[max(0, where - 80):where + 80]
    same_evaluation(session, reopened(open_session, json.loads(text)))
