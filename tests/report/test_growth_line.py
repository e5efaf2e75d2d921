"""The line of `status` on the class that is nearfull first."""
from __future__ import annotations

from typing import Any, Dict, Optional

import pytest

from equilibrium_mgr.report.cluster.growth import growth_line

_DAY = 86_400.0


def row(seconds: Optional[float], best: Optional[float]) -> Dict[str, Any]:
    return {"device_class": "hdd", "growth_bytes_per_day": float(1 << 40), "first_osd": 6,
            "nearfull_seconds": seconds, "best_nearfull_seconds": best}


@pytest.mark.parametrize("seconds, best, said", [
    (0.0, 3 * _DAY, "osd.6 is nearfull now; with all OSDs as even as can be, the first would be in"
                    " 3d00h"),
    (2 * _DAY, None, "osd.6 is nearfull in 2d00h"),
    (0.0, 0.0, "osd.6 is nearfull now; with all OSDs as even as can be, the first would be now")])
def test_the_line_tells_when_and_when_at_best(seconds: float, best: float, said: str) -> None:
    assert growth_line([row(seconds, best)], 30.0) == f"class hdd grows by 1 TiB a day: {said}"


def test_what_is_far_ahead_says_nothing() -> None:
    assert growth_line([row(31 * _DAY, None), row(None, None)], 30.0) == ""
