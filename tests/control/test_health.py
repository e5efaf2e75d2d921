"""Health checks come, age and go."""
from __future__ import annotations

from typing import Any, Set

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.rounds import executing, small_plan, uneven

from equilibrium_mgr.report.health import health_checks

APPLY_FAILED = "MGR_EQUILIBRIUM_APPLY_FAILED"


def refused(**options: Any) -> Harness:
    """The monitor has refused the first of six upmaps; the others are on their way."""
    harness = Harness(uneven(), **options)
    harness.gateway.refuses = {"1.0"}
    executing(harness, small_plan(6))
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
    assert codes(harness) == set()
    assert not harness.balancer.status.rejected


def test_silent_osds_are_restarted_unless_most_are_silent() -> None:
    harness = Harness(uneven(), active=True)
    harness.round()
    status = harness.balancer.status
    assert status.view is not None
    status = status._replace(view=status.view._replace(snapshot=Cluster(hosts(8)).snapshot()))

    def cure(silent: int) -> str:
        return str(health_checks(status, harness.now, True, silent_osds=frozenset(range(silent)))[
            "MGR_EQUILIBRIUM_STALE_STATS"]["detail"][-1])
    assert "restart osd.0" in cure(1)
    assert "restart osd.0" in cure(3)
    assert "restart" not in cure(8)
