"""--aim, and the option `aim`."""

from __future__ import annotations

from mgr_stub.console.session import Session

from ..asking import optimize, run


def test_option_is_the_default(session: Session) -> None:
    assert optimize(session)["aim"] == "space"
    run(session, "config set mgr mgr/equilibrium/aim even")
    assert optimize(session)["aim"] == "even"
    assert optimize(session, "p --aim least-motion")["aim"] == "least-motion"
    run(session, "config rm mgr mgr/equilibrium/aim", "sim failover")
    assert optimize(session)["aim"] == "space"
