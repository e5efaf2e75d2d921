"""`status` on what filters leave out, on silent OSDs, and on a drain that is paused."""

from __future__ import annotations

from typing import List, Tuple

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run, words

_OPTION = "config set mgr mgr/equilibrium/"


def screen(session: Session, what: str = "status") -> str:
    return words(session, f"{what}")


@pytest.mark.parametrize("options, said", [
    (("not_buckets osd.3",), ["nothing leaves or goes to 1 of 24 OSDs (not_buckets)"]),
    (("to_buckets host0", "not_buckets osd.6"), [
        "nothing leaves 1 of 24 OSDs (not_buckets)",
        "nothing goes to 20 of 24 OSDs (to_buckets, not_buckets)"])])
def test_left_out_names_the_options_that_are_set(session: Session, options: Tuple[str, ...],
                                                 said: List[str]) -> None:
    run(session, *[_OPTION + option for option in options])
    assert ask(session, "status")["left_out"] == said


def test_a_spared_osd_drains_all_the_same_and_status_says_so(session: Session) -> None:
    run(session, _OPTION + "not_buckets osd.3", "equilibrium drain add osd.3", "sim run 2m")
    assert ask(session, "status")["left_out"] == [
        "nothing but drains leaves 1 of 24 OSDs (not_buckets)",
        "nothing goes to 1 of 24 OSDs (not_buckets)"]
    assert "nothing but drains leaves 1 of 24 OSDs" in screen(session)


def test_a_paused_drain_says_what_is_left_and_how_to_go_on(session: Session) -> None:
    run(session, "equilibrium drain add osd.6", "sim run 3m", "equilibrium off", "sim run 2m")
    status = ask(session, "status")
    left = status["drains"]["shards"]
    assert left
    assert f"paused by 'ceph equilibrium off'; {left} shards, " in screen(session)
    assert "paused by 'ceph equilibrium off'" in status["drains"]["sentence"]
    assert status["action"] == "'ceph equilibrium drain add osd.6' goes on with the drain"
    assert status["action"] in screen(session)


def test_what_helps_a_stuck_drain_is_not_that_it_ends(session: Session) -> None:
    """No other OSD has room by fill_limit: that what leaves is gone lets nothing leave."""
    run(session, _OPTION + "fill_limit 0.5", "equilibrium drain add host5", "sim run 2h")
    stuck = [one for row in ask(session, "drain ls")["osds"] for one in row["stuck"]]
    assert {one["code"] for one in stuck} >= {"fill_limit"}
    for text in [one["action"] for one in stuck] + [ask(session, "explain osd.20")["action"]]:
        assert "what leaves" not in text, text
        assert text != "nothing", text
