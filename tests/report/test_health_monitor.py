"""Health checks come after two rounds, go after two, and neither come nor go with a failover."""
from __future__ import annotations

import logging
from typing import Any, Dict, Optional

import pytest
from tests.support.fakes import KeyValueStore

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.report.health import KEY, PREFIX, HealthMonitor, health_checks
from equilibrium_mgr.snapshot import reason_codes as codes

LOG = logging.getLogger("test")
ERROR, STUCK = PREFIX + "ERROR", PREFIX + "STUCK"
VIEW: Any = object()
CHECK: Dict[str, Any] = {"severity": "warning", "summary": "s", "count": 1, "detail": ["d"]}
DECIDED = BalancerStatus(state="throttled", reason_code=codes.MAX_BACKFILLS, view=VIEW)


def monitor(kv: Optional[KeyValueStore] = None) -> HealthMonitor:
    return HealthMonitor(kv or KeyValueStore(), LOG)


def rounds(found: HealthMonitor, code: str, conditions: str,
           status: BalancerStatus = DECIDED) -> str:
    """'x' for each round in which the check is shown, by whether its condition holds ('x')."""
    shown = ""
    for condition in conditions:
        present = {code: CHECK} if condition == "x" else {}
        shown += "x" if code in found.update(present, status, True) else "."
        found.store()
    return shown


@pytest.mark.parametrize("conditions, shown", [
    ("x....", "....."), ("xx...", ".xx.."), ("x.x.x", "....."), ("xx.xx.xx", ".xxxxxxx"),
    ("xxxx.x.x..", ".xxxxxxxx.")])
def test_two_rounds_to_come_and_two_to_go(conditions: str, shown: str) -> None:
    assert rounds(monitor(), ERROR, conditions) == shown


def test_successor_goes_on_with_it_and_clears_nothing_that_it_cannot_judge() -> None:
    kv = KeyValueStore()
    assert rounds(monitor(kv), STUCK, "xx") == ".x"
    again = monitor(KeyValueStore(kv.values))
    waits = BalancerStatus(state="waiting", reason_code=codes.START_DELAY)
    assert rounds(again, STUCK, ".....", waits) == "xxxxx"
    assert rounds(again, STUCK, "...") == "x.."


def test_store_is_written_where_other_checks_are_raised_and_only_then() -> None:
    kv = KeyValueStore()
    found = monitor(kv)
    rounds(found, ERROR, "xxxxxx......")
    assert [key for key, _ in kv.writes] == [KEY, KEY] and KEY not in kv.values


@pytest.mark.parametrize("stored", ["", "[]", "7", "not json", '{"raised": 7}',
                                    '{"raised": {"MGR_EQUILIBRIUM_X": {}}}',
                                    '{"raised": {"OTHER": 5}, "stuck_since": "x"}'])
def test_stored_rubbish_is_no_check(stored: str) -> None:
    assert monitor(KeyValueStore({KEY: stored})).update({}, DECIDED, True) == {}


def test_another_plan_does_not_end_being_stuck_but_a_move_does() -> None:
    found = monitor()
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
    found = monitor()
    found.observe(BalancerStatus(state="stuck", reason_code=code, view=VIEW), 1000.0)
    assert found.stuck_since is None


def test_stuck_for_an_hour_and_what_helps() -> None:
    stuck = BalancerStatus(state="stuck", reason="fill_limit", reason_code=codes.FILL_LIMIT)
    assert STUCK not in health_checks(stuck, 4599.0, True, stuck_since=1000.0)
    check = health_checks(stuck, 4600.0, True, stuck_since=1000.0)[STUCK]
    assert "fill_limit" in check["detail"][-1] and check["severity"] == "warning"
    assert STUCK not in health_checks(stuck, 4600.0, False, stuck_since=1000.0)


def test_one_line_a_reason_and_the_command_that_helps() -> None:
    rejected = {f"1.{ps:x}": Rejection(f"reason {ps % 30}" if ps % 2 else "refused", 5, 1e9)
                for ps in range(200)}
    check = health_checks(BalancerStatus(rejected=rejected), 1e9, True)[
        PREFIX + "APPLY_FAILED"]
    assert len(check["detail"]) <= 20 and check["count"] == 200
    assert check["detail"][0] == "100 upmaps: refused (pg 1.0, 1.10, 1.12 and 97 more)"
    assert "'ceph equilibrium on'" in check["detail"][-1]
