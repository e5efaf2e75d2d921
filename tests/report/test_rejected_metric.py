"""The metric of rejected upmaps counts what is left alone now, as the screens do."""
from __future__ import annotations

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.report.metrics import report_metrics

DAY = 86400.0


def test_what_may_be_tried_again_does_not_count() -> None:
    status = BalancerStatus(rejected={
        "1.0": Rejection("the monitor dropped its upmap items", "m", 9 * DAY),
        "1.1": Rejection("the monitor dropped its upmap items", "m", 0.0)})
    text = report_metrics(status, None, 9 * DAY, True, None, None).plain
    assert "equilibrium_rejected_upmaps 1\n" in text
