"""A week in which nothing is wrong raises no health check, and says little in the cluster log."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, run


@pytest.mark.full
def test_no_health_check_in_a_clean_week(session: Session,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients write, plans are made and carried out, and the mgr fails over twice."""
    shown: List[Dict[str, Any]] = []
    set_checks = session.mgr.set_health_checks

    def record(checks: Dict[str, Any]) -> None:
        shown.append(checks)
        set_checks(checks)
    monkeypatch.setattr(session.mgr, "set_health_checks", record)
    run(session, "equilibrium on")
    for day in range(7):
        run(session, "sim write vms 200G", "sim run 12h", "sim write backup 100G", "sim run 12h")
        if day in (2, 4):
            run(session, "sim failover")
            monkeypatch.setattr(session.mgr, "set_health_checks", record)
    assert [checks for checks in shown if checks] == []
    lines = session.mgr.cluster_log
    assert len(lines) <= 2 * ask(session, "history")["total"]
    assert {(channel, priority) for channel, priority, _ in lines} <= {("cluster", 1)}
    for _, _, line in lines:
        assert " begins: " in line or " after " in line
