"""The metric of rejected upmaps counts what is left alone now, as the screens do."""
from __future__ import annotations

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.report.metrics import report_metrics


def test_what_may_be_tried_again_does_not_count() -> None:
    status = BalancerStatus(rejected={
        "1.0": Rejection("refused", "m", 9e5), "1.1": Rejection("refused", "m", 0.0)})
    text = report_metrics(status, None, 9e5, True, None, None).plain
    assert "equilibrium_rejected_upmaps 1\n" in text
