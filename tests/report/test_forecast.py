"""The forecast of a drain, for people."""
from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from equilibrium_mgr.report.cluster.changes import forecast_lines
from tests.support.units import GIB


@pytest.mark.parametrize("seconds, said", [
    (None, "at least 3 GiB move; OSDs"), (7200.0, "at least 3 GiB move, about 2h00m; OSDs")])
def test_no_time_is_told_that_is_not_known(seconds: Optional[float], said: str) -> None:
    forecast: Dict[str, Any] = {
        "least_moved_bytes": 3 * GIB, "expected_seconds": seconds, "missing_shards": {},
        "then_room_bytes": GIB, "classes": [
            {"device_class": "hdd", "then_bound_utilization": 0.5}]}
    line = " ".join(" ".join(forecast_lines(forecast)).split())
    assert line == f"forecast: {said} are hdd 50.00% full at best then; room for 1 GiB"
