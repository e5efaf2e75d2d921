"""Health checks come after two rounds and go after two."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.report.health import HealthMonitor, health_checks
from equilibrium_mgr.snapshot import reason_codes as codes

PREFIX = "MGR_EQUILIBRIUM_"
ERROR, STUCK = PREFIX + "ERROR", PREFIX + "STUCK"
VIEW: Any = object()
CHECK: Dict[str, Any] = {"severity": "warning", "summary": "s", "count": 1, "detail": ["d"]}


@pytest.mark.parametrize("conditions, shown", [
    ("x....", "....."), ("xx...", ".xx.."), ("x.x.x", "....."), ("xx.xx.xx", ".xxxxxxx"),
    ("xxxx.x.x..", ".xxxxxxxx.")])
def test_two_rounds_to_come_and_two_to_go(conditions: str, shown: str) -> None:
    monitor, found = HealthMonitor(), ""
    for held in conditions:
        checks = monitor.update({ERROR: CHECK} if held == "x" else {})
        found += "x" if ERROR in checks else "."
    assert found == shown


def test_another_plan_does_not_end_being_stuck_but_a_move_does() -> None:
    found = HealthMonitor()
    stuck = BalancerStatus(state="stuck", reason_code=codes.FILL_LIMIT, view=VIEW)
    found.observe(stuck, 1000.0)
    found.observe(stuck._replace(state="planning", reason_code=codes.PLANNING), 2000.0)
    found.observe(stuck, 3000.0)
    assert found.stuck_since == 1000.0
    found.observe(stuck._replace(state="moving", reason_code=codes.MOVING), 4000.0)
    assert found.stuck_since is None


@pytest.mark.parametrize("code", [codes.GRANULARITY, codes.MIN_GAIN, codes.BOUND_CAPACITY,
                                  codes.BOUND_DOMAIN])
def test_what_cannot_be_better_is_not_stuck(code: str) -> None:
    found = HealthMonitor()
    found.observe(BalancerStatus(state="stuck", reason_code=code, view=VIEW), 1000.0)
    assert found.stuck_since is None


def test_stuck_for_an_hour_and_what_helps() -> None:
    stuck = BalancerStatus(state="stuck", reason="fill_limit", reason_code=codes.FILL_LIMIT)
    assert STUCK not in health_checks(stuck, 4599.0, True, stuck_since=1000.0)
    check = health_checks(stuck, 4600.0, True, stuck_since=1000.0)[STUCK]
    assert "fill_limit" in check["detail"][-1]
    assert check["severity"] == "warning"
    assert STUCK not in health_checks(stuck, 4600.0, False, stuck_since=1000.0)


def test_one_line_a_reason_and_the_command_that_helps() -> None:
    rejected = {f"1.{ps:x}": Rejection(f"reason {ps % 30}" if ps % 2 else "refused", "m", 1e9)
                for ps in range(200)}
    check = health_checks(BalancerStatus(rejected=rejected), 1e9, True)[
        PREFIX + "APPLY_FAILED"]
    assert len(check["detail"]) <= 20
    assert check["count"] == 200
    assert check["detail"][0] == "100 upmaps: refused (pg 1.0, 1.10, 1.12 and 97 more)"
    assert "'ceph equilibrium on'" in check["detail"][-1]


def test_a_pg_withheld_now_hides_none_of_those_taken_back() -> None:
    back = {f"1.{ps}": Rejection("taken back", "m", 1e9, withheld_by=((3, 400),))
            for ps in range(5)}
    status = BalancerStatus(rejected=back, withheld={"1.9": ("pg 1.9 is inactive", "rm 1.9")})
    check = health_checks(status, 1e9, True)[PREFIX + "WITHHELD"]
    assert check["count"] == 6
    assert "5 upmaps: taken back" in " ".join(check["detail"])
