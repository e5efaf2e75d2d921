"""`explain` and `status` where filters or a drain decide what may move."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest

from mgr_stub.console.session import Session

from tests.commands.asking import ask, run

_OPTION = "config set mgr mgr/equilibrium/"


def row_of(answer: Dict[str, Any], code: str) -> Dict[str, Any]:
    return next(row for row in answer["counts"] if row["code"] == code)


@pytest.mark.parametrize("options, osd, named", [
    (("from_buckets osd.6,osd.5", "not_buckets osd.5"), 5, "not_buckets"),
    (("to_buckets osd.2", "not_buckets osd.9"), 6, "to_buckets")])
def test_the_option_that_leaves_an_osd_out_is_named(
        session: Session, options: Tuple[str, ...], osd: int, named: str) -> None:
    run(session, *[_OPTION + option for option in options])
    row = row_of(ask(session, f"explain osd.{osd}"), "osd_excluded")
    assert row["text"].startswith(named)


def test_a_stuck_drain_while_off_is_no_lack_of_gain(session: Session) -> None:
    """Nothing but the drain moves: what gains is not made as balancing is off."""
    run(session, "equilibrium drain add 3 7 11 15 --force", "sim run 2h")
    assert ask(session, "status")["state"] == "stuck"
    found = ask(session, "explain osd.6")
    assert found["reason_code"] == "off", found
    assert "automatic balancing is off" in found["reason_text"]
    assert found["action"].startswith("'ceph equilibrium on'")
    texts = [row["text"] for row in found["counts"] + ask(session, "explain")["counts"]]
    assert texts and not any("min_gain" in text for text in texts)
