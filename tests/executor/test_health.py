"""Health checks come, age and go."""
from __future__ import annotations

from typing import Set

from fakes import Desk
from rounds import kept, small_plan, successor, uneven

from equilibrium_mgr.report.health import health_checks

APPLY_FAILED = "MGR_EQUILIBRIUM_APPLY_FAILED"


def refused(**options: bool) -> Desk:
    """The monitor has refused the first of six upmaps; the others are on their way."""
    desk = Desk(uneven(), **options)
    desk.gateway.refuses = {"1.0"}
    desk.balancer.execute("p", kept(desk, plan=small_plan(6)))
    desk.round()
    return desk


def codes(desk: Desk) -> Set[str]:
    return set(health_checks(desk.balancer, desk.settings().active, ""))


def test_refused_upmap_shows_while_it_is_news() -> None:
    desk = refused(active=True)
    assert APPLY_FAILED in codes(desk)
    desk.round(3500)
    assert APPLY_FAILED in codes(desk)
    desk.round(200)
    assert APPLY_FAILED not in codes(desk)
    assert "1.0" in desk.balancer.rejected   # it is left alone all the same


def test_off_clears_it_and_so_it_is_for_a_successor() -> None:
    desk = refused(active=True)
    desk.options["active"] = False
    desk.balancer.switch_off()
    assert codes(desk) == set() and not desk.balancer.rejected
    at_once = successor(desk)
    at_once.kv.values.pop("execution", None)   # as `off` leaves it behind
    at_once.round()
    assert codes(at_once) == set()
    desk.round()
    later = successor(desk)
    later.round()
    assert codes(later) == set() and not later.balancer.rejected


def test_successor_knows_its_age() -> None:
    desk = refused(active=True)
    again = successor(desk)
    again.now += 60
    again.round()
    assert APPLY_FAILED in codes(again)
    again.round(3600)
    assert APPLY_FAILED not in codes(again)


def test_pg_that_is_gone_is_nobodys_concern() -> None:
    desk = refused(active=True)
    cluster = desk.gateway.cluster
    for of_pgs in (cluster.up, cluster.records):
        del of_pgs["1.0"]
    desk.round(60)
    assert APPLY_FAILED not in codes(desk) and not desk.balancer.rejected
