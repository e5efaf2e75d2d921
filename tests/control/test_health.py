"""Health checks come, age and go."""
from __future__ import annotations

from typing import Any, Set

from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, uneven

from equilibrium_mgr.report.health import health_checks

APPLY_FAILED = "MGR_EQUILIBRIUM_APPLY_FAILED"


def refused(**options: Any) -> Harness:
    """The monitor has refused the first of six upmaps; the others are on their way."""
    harness = Harness(uneven(), **options)
    harness.gateway.refuses = {"1.0"}
    harness.balancer.execute("p", kept(harness, plan=small_plan(6)))
    harness.round()
    return harness


def codes(harness: Harness) -> Set[str]:
    return set(health_checks(harness.balancer.status, harness.now,
                             harness.settings().active))


def test_refused_upmap_shows_while_it_is_news() -> None:
    harness = refused(active=True)
    assert APPLY_FAILED in codes(harness)
    harness.round(3500)
    assert APPLY_FAILED in codes(harness)
    harness.round(200)
    assert APPLY_FAILED not in codes(harness)
    assert "1.0" not in harness.balancer.status.rejected   # the next plan may have it


def test_off_clears_it() -> None:
    harness = refused(active=True)
    harness.options["active"] = False
    harness.balancer.switch_off()
    assert codes(harness) == set() and not harness.balancer.status.rejected
