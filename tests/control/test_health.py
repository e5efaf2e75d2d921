"""Health checks come, age and go."""
from __future__ import annotations

from typing import Any, Set

from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, successor, uneven

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
    return set(health_checks(harness.balancer.status, harness.settings().active, "", harness.now))


def test_refused_upmap_shows_while_it_is_news() -> None:
    harness = refused(active=True)
    assert APPLY_FAILED in codes(harness)
    harness.round(3500)
    assert APPLY_FAILED in codes(harness)
    harness.round(200)
    assert APPLY_FAILED not in codes(harness)
    assert "1.0" in harness.balancer.status.rejected   # it is left alone all the same


def test_off_clears_it_and_so_it_is_for_a_successor() -> None:
    harness = refused(active=True)
    harness.options["active"] = False
    harness.balancer.switch_off()
    assert codes(harness) == set() and not harness.balancer.status.rejected
    at_once = successor(harness)
    at_once.kv.values.pop("execution", None)   # as `off` leaves it behind
    at_once.round()
    assert codes(at_once) == set()
    harness.round()
    later = successor(harness)
    later.round()
    assert codes(later) == set() and not later.balancer.status.rejected


def test_successor_knows_its_age() -> None:
    harness = refused(active=True)
    again = successor(harness)
    again.now += 60
    again.round()
    assert APPLY_FAILED in codes(again)
    again.round(3600)
    assert APPLY_FAILED not in codes(again)


def test_pg_that_is_gone_is_nobodys_concern() -> None:
    harness = refused(active=True)
    cluster = harness.gateway.cluster
    for of_pgs in (cluster.up, cluster.records):
        del of_pgs["1.0"]
    harness.round(60)
    assert APPLY_FAILED not in codes(harness) and not harness.balancer.status.rejected
