"""The simulated week, or half an hour of it on a small cluster."""
from __future__ import annotations

from tests.benchmark.report import week_table
from tests.benchmark.week.week import measure_week


def test_half_an_hour_of_the_week_is_shared_out_among_all() -> None:
    found = measure_week(hosts=7, span="30m")
    assert found["virtual_seconds"] == 1800 and found["commands"] > 0
    assert found["looks"] > 2
    assert set(found["seconds_by"]) == {"simulator", "module", "planner", "bounds"}
    assert all(seconds > 0.0 for seconds in found["seconds_by"].values())
    assert "upmap commands" in week_table(found)
