"""What `status` says of moves that wait: every one of them, by its reason, in every round."""
from __future__ import annotations

from typing import Any, Dict

import pytest
from tests.support.fakes import Harness
from tests.support.rounds import kept, uneven

from equilibrium_mgr.snapshot import reason_codes as codes


def waiting(harness: Harness) -> Dict[str, int]:
    """Code → shards, of the published status; checks that they add up to what was not sent."""
    status = harness.balancer.status
    assert status.progress is not None
    shards = [group.shards for group in status.waiting]
    assert sum(shards) == status.progress.summary["remaining_moves"] == sum(
        change.shards for change in status.wanted)
    assert shards == sorted(shards, reverse=True)
    return {group.code: group.shards for group in status.waiting}


def executing(**options: Any) -> Harness:
    harness = Harness(uneven(), **options)
    harness.balancer.execute("p", kept(harness))
    return harness


def test_before_the_first_round_everything_waits_for_the_next_batch() -> None:
    harness = executing()
    assert set(waiting(harness)) == {codes.NEXT_BATCH}


@pytest.mark.parametrize("limit, code, option", [
    ({"max_moves_per_round": 1}, codes.MAX_MOVES, "max_moves_per_round"),
    ({"max_backfills_per_osd": 1}, codes.MAX_BACKFILLS, "max_backfills_per_osd"),
    ({"max_transit_ratio": 0.06}, codes.MAX_TRANSIT, "max_transit_ratio")])
def test_waiting_shards_add_up_to_the_moves_not_sent(limit: Dict[str, Any], code: str,
                                                     option: str) -> None:
    harness = executing(**limit)
    harness.round()
    assert code in waiting(harness)
    group, = [g for g in harness.balancer.status.waiting if g.code == code]
    assert group.option == option and group.limit == pytest.approx(
        float(str(next(iter(limit.values())))))
    while harness.balancer.status.progress is not None:
        waiting(harness)
        harness.gateway.arrive()
        harness.round(60)
