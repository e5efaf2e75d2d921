"""--aim, the option `aim`, and `eval <plan> --aims` with what the others would give."""

from __future__ import annotations

import errno
from typing import Any, List

import pytest

from equilibrium_mgr.runtime.formatting import format_bytes
from mgr_stub.console.session import Session

from ..asking import ask, optimize, refused, run


def test_option_is_the_default(session: Session) -> None:
    assert optimize(session)["aim"] == "space"
    run(session, "config set mgr mgr/equilibrium/aim even")
    assert optimize(session)["aim"] == "even"
    assert optimize(session, "p --aim least-motion")["aim"] == "least-motion"
    run(session, "config rm mgr mgr/equilibrium/aim", "sim failover")
    assert optimize(session)["aim"] == "space"


def note_aims(session: Session) -> List[str]:
    """The aims of the plans that are made from now on, in their order."""
    service, asked = session.module.plan_service, []
    make_plan = service.planner

    def noting(snapshot: Any, options: Any) -> Any:
        asked.append(options.aim)
        return make_plan(snapshot, options)
    service.planner = noting
    return asked


# -- eval ------------------------------------------------------------------------------------------


def test_what_is_not_asked_for_is_neither_planned_nor_told(session: Session) -> None:
    asked = note_aims(session)
    optimize(session)
    effect, text = ask(session, "eval p"), run(session, "equilibrium eval p")
    run(session, "sim run 5m")
    assert asked == ["space"]
    assert not {"aims", "options_known"} & set(effect)
    assert not [line for line in text.splitlines() if line.startswith("AIM")]
    told = ask(session, "eval p --aims")
    assert {key: told[key] for key in effect if key not in ("now", "age_seconds")} == {
        key: effect[key] for key in effect if key not in ("now", "age_seconds")}
    assert asked == ["space", "even", "least-motion"]


def test_other_aims_are_asked_for_again_until_all_are_planned(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    optimize(session)
    with monkeypatch.context() as held:
        held.setattr(session.host.jobs, "run_pending", lambda: 0)
        assert refused(session, "equilibrium eval p --aims") == (
            -errno.EAGAIN, "even, least-motion: being planned; ask again")
    run(session, "sim run 1s")
    told = ask(session, "eval p --aims")
    gains = [row["planned_free_bytes"] - row["free_bytes"] for row in told["pools"]
             if row["stored"] >= 0.01 * sum(pool["stored"] for pool in told["pools"])]
    assert told["aims"][0]["data_pools_gain_bytes"] == sum(gains) and len(gains) == 4
    table = run(session, "equilibrium eval p --aims").split("AIM ")[1].split("\n")
    assert "  ROOM      FREE " in table[0] and f" +{format_bytes(sum(gains))} " in table[1]


@pytest.mark.parametrize("line", ["eval --aims", "eval vms --aims"])
def test_only_a_plan_has_other_aims(session: Session, line: str) -> None:
    code, said = refused(session, "equilibrium " + line)
    assert code == -22 and "--aims is for a plan" in said
