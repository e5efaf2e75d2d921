"""`status --brief`: one line, the same words in any state."""
from __future__ import annotations

import re

from mgr_stub.console.session import Session

from .asking import ask, run
from .test_explain import forget_view

_KNOWN = r"osd\.\d+ \d+\.\d\d bound \d+\.\d\d moving \d+ waiting \d+ left (-|[\dmhs]+) health "
_FORM = re.compile(rf"[a-z]+ [a-z_]+ {_KNOWN}(ok|outage|[A-Z_]+)(\+\d+)?\n")


def test_one_line_in_each_state(session: Session) -> None:
    lines = [run(session, "equilibrium status --brief")]
    for more in (("equilibrium on", "sim run 150s"), ("sim osd down 4", "sim run 1m"),
                 ("config set mgr mgr/equilibrium/pool_ids 99", "sim run 3m"),
                 ("equilibrium off", "sim run 10m")):
        lines.append(run(session, *more, "equilibrium status --brief"))
    for line in lines:
        assert _FORM.fullmatch(line) and len(line) <= 120, line
    assert lines[0].startswith("off off osd.6 85.03 bound 59.26 moving 0 waiting 0 left - ")
    assert re.search(r" moving [1-9]\d* waiting [1-9]\d* left \d+m\d\ds health ok\n", lines[1])
    assert lines[2].endswith("health outage\n") and lines[3].endswith("health outage+1\n")
    status = ask(session, "status --brief")
    assert status == {**ask(session, "status"), "options": status["options"]}


def test_before_the_first_look(session: Session) -> None:
    forget_view(session)
    assert run(session, "equilibrium status --brief").startswith(
        "off off - - bound - moving - waiting 0 left - health ")
