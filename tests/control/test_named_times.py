"""A time before which nothing is sent is never later than the first moment at which it may be."""
from __future__ import annotations

import calendar
import re
import time

import pytest

from equilibrium_mgr.control.cluster_guards import wait_until
from equilibrium_mgr.snapshot import reason_codes as codes


@pytest.mark.parametrize("left", [0.5, 22.0, 59.0, 60.0, 61.0, 299.5, 3600.0])
@pytest.mark.parametrize("now", [0.0, 1.0, 29.5, 59.9, 1767225600.0])
def test_nothing_is_sent_before(now: float, left: float) -> None:
    found = wait_until(codes.CONFLICT, "nothing is sent before", now, left)
    assert found is not None
    said = re.search(r"before (\S+ \S+) UTC", found.reason)
    assert said is not None
    at = calendar.timegm(time.strptime(said.group(1), "%Y-%m-%d %H:%M"))
    assert now + left - 60.0 < at <= now + left
    assert wait_until(codes.CONFLICT, "nothing is sent before", now, 0.0) is None
