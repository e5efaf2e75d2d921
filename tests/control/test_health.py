"""Health checks come, age and go."""
from __future__ import annotations

import json
from typing import Any, Set

from tests.support.clusters.unit_cluster import change_of
from tests.support.fakes import Harness
from tests.support.rounds import kept, small_plan, successor, uneven

from equilibrium_mgr.execution.outcomes import (
    DroppedChange, Items, from_dict, held, to_dict, with_rejected)
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


def test_wait_after_a_refusal_grows_and_has_a_limit() -> None:
    items: Items = {}
    waits = []
    for number in range(8):
        items = with_rejected(items, [DroppedChange(
            change_of("1.0", [0], [1]), "the monitor refused it: EAGAIN", is_refused=True)], 5,
            1000.0 * number)
        waits.append(items["1.0"].seconds_left(1000.0 * number))
        assert held(items, 1000.0 * number) and not held(items, 1000.0 * number + waits[-1])
    assert waits[:4] == [600.0, 1200.0, 2400.0, 3000.0] and waits[-1] == 3000.0
    assert from_dict(json.loads(json.dumps(to_dict(items)))) == items
