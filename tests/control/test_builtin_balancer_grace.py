"""The wait for the built-in balancer: what begins it anew, and what does not."""
from __future__ import annotations

from typing import Dict

import pytest

from equilibrium_mgr.control.builtin_balancer_grace import BuiltinBalancerGrace
from equilibrium_mgr.snapshot.model import UpmapItems

ITEMS: Dict[str, UpmapItems] = {"1.0": ((0, 1), (2, 3)), "1.1": ((4, 5),)}


def begun() -> BuiltinBalancerGrace:
    hold = BuiltinBalancerGrace()
    hold.observe(ITEMS, 0.0, 60.0)
    hold.begin(0.0, 60.0)
    return hold


@pytest.mark.parametrize("items, left", [
    (ITEMS, 20.0),
    ({"1.0": ((0, 1),), "1.1": ((4, 5),)}, 20.0),    # an OSD was purged: the monitor cleans up
    ({"1.0": ITEMS["1.0"]}, 20.0),                   # a pool was deleted
    ({}, 20.0),
    ({**ITEMS, "1.2": ((6, 7),)}, 60.0),             # the built-in balancer is still at it
    ({**ITEMS, "1.1": ((4, 6),)}, 60.0)])
def test_only_what_is_added_begins_the_wait_anew(items: Dict[str, UpmapItems],
                                                 left: float) -> None:
    hold = begun()
    hold.observe(items, 40.0, 60.0)
    assert hold.seconds_left(40.0) == left


def test_removals_without_end_do_not_make_the_wait_endless() -> None:
    hold = begun()
    items = {f"1.{n:x}": ((0, 1),) for n in range(100)}
    hold.observe(items, 1.0, 60.0)
    for second in range(2, 62):
        items = dict(list(items.items())[1:])
        hold.observe(items, float(second), 60.0)
    assert hold.seconds_left(61.0) == 0.0


def test_what_was_added_before_the_wait_does_not_count() -> None:
    hold = BuiltinBalancerGrace()
    hold.observe(ITEMS, 0.0, 60.0)
    hold.observe({**ITEMS, "1.2": ((6, 7),)}, 1.0, 60.0)
    assert hold.seconds_left(1.0) == 0.0
