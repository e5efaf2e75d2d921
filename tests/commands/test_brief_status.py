"""`status --brief`: one line, the same words in any state; the golden screens have it in each."""
from __future__ import annotations

from mgr_stub.console.session import Session

from .asking import ask, run
from .test_explain import forget_view


def test_it_is_in_json_what_status_is(session: Session) -> None:
    status = ask(session, "status --brief")
    assert status == {**ask(session, "status"), "options": status["options"]}


def test_before_the_first_look(session: Session) -> None:
    forget_view(session)
    assert run(session, "equilibrium status --brief").startswith(
        "off off - - bound - moving - waiting 0 left - health ")
