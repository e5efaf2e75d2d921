"""What arrives between observations, and how long the rest takes."""
from __future__ import annotations

from typing import Mapping, Optional, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB
from tests.support.few import few

from equilibrium_mgr.observation.movements import (
    CRUSH, PLAN, Movement, Rate, TransferRates, measured_rates, slow_osds, time_left)

#: 1.0 to 1.7 have arrived at osd.0 to osd.7.
THERE = Cluster(hosts(8)).pool(1, size=1)
for number in range(8):
    THERE.pg(f"1.{number}", [number])
SNAPSHOT = THERE.snapshot()


def shard(number: int, left_gib: float, origin: str = PLAN,
          target: Optional[int] = None) -> Movement:
    """Of 1.`number`, on its way to osd.`number`."""
    osd = number if target is None else target
    return Movement(f"1.{number}", 1, None, osd, 8 * GIB, int(left_gib * GIB), "backfilling",
                    origin)


def rates_of(*observations: Tuple[float, Sequence[Movement]]) -> TransferRates:
    """Of observations: (seconds since the epoch, shards in flight)."""
    rates, (then, before) = TransferRates(), observations[0]
    for now, found in observations[1:]:
        rates = measured_rates(rates, before, now - then, SNAPSHOT._replace(taken_at=now), found)
        then, before = now, found
    return rates


def measured(*observations: Sequence[Movement], every: float = 100.0) -> TransferRates:
    return rates_of(*[(1000.0 + every * number, found)
                      for number, found in enumerate(observations)])


def per_second(rate: Rate) -> float:
    return rate.per_second / GIB


def left(rates: TransferRates, flying: Sequence[Movement], to_send: Mapping[int, int]) -> str:
    """The OSD that takes longest, and its seconds."""
    found = time_left(rates, flying, to_send)
    assert found is not None
    return f"osd.{found.osd}: {found.seconds:.0f}"


def test_what_was_sent_elsewhere_has_not_arrived() -> None:
    assert per_second(measured([shard(0, 8, target=5)], []).ours_now) == 0.0


def test_ours_and_those_of_others_are_measured_apart() -> None:
    rates = measured([shard(0, 8), shard(1, 8, CRUSH)], [shard(0, 7), shard(1, 5, CRUSH)])
    assert per_second(rates.ours_now) == pytest.approx(0.01)
    assert per_second(rates.all_now) == pytest.approx(0.04)


def test_the_osd_with_the_most_to_come_counts_with_what_is_still_to_be_sent() -> None:
    flying = [shard(0, 7), shard(1, 7)]
    rates = measured([shard(0, 8), shard(1, 8)], flying)
    assert left(rates, flying, {1: 13 * GIB}) == "osd.1: 2000"


def test_an_osd_that_got_nothing_yet_is_expected_to_get_the_median() -> None:
    rates = measured([shard(0, 8), shard(1, 8), shard(2, 8)],
                     [shard(0, 7), shard(1, 6), shard(2, 5)])
    assert left(rates, [], {7: 40 * GIB}) == "osd.7: 2000"


def test_data_of_others_delays_only_where_ours_goes_too() -> None:
    rates = measured([shard(0, 8), shard(1, 8)], [shard(0, 7), shard(1, 7)])
    others = [shard(0, 7), shard(1, 400, CRUSH)]
    assert left(rates, others, {}) == "osd.0: 700"
    assert left(rates, others, {1: GIB}) == "osd.1: 40100"


def test_a_limit_of_the_whole_cluster_counts_where_it_is_the_slower() -> None:
    """One shard moves at a time, each to another OSD."""
    rates = measured([shard(0, 8)], [shard(1, 8)], [shard(2, 8)])
    to_send = dict.fromkeys(range(3, 8), 8 * GIB)
    assert left(rates, [shard(2, 8)], to_send) == "osd.None: 600"


def test_where_nothing_arrives_any_more_it_stands_still() -> None:
    """As while statistics stand still: nothing may count down on frozen figures."""
    stands = [shard(0, 6)]
    rates = measured([shard(0, 8)], stands, stands, every=60.0)
    assert rates.moved_at == 1060.0
    assert rates.stand_still(1120.0)
    assert not rates.stand_still(1100.0)
    assert not TransferRates().stand_still(1e9)


def test_a_clock_that_was_set_back_measures_nothing() -> None:
    looks = [(1000.0, [shard(0, 8)]), (400.0, [shard(0, 6)]), (500.0, [shard(0, 5)])]
    assert rates_of(*looks[:2]) == TransferRates()
    assert per_second(rates_of(*looks).by_osd[0]) == pytest.approx(0.01)


def after_an_hour_of_arrivals(days: float, resting: Sequence[Movement]) -> TransferRates:
    """Of 1.0; after that so many days in which nothing of ours arrives, and a new move."""
    looks = [(60.0 * minute, [shard(0, 400.0 - 6.0 * minute), *resting]) for minute in range(61)]
    looks += [(3660.0 + 600.0 * number, list(resting)) for number in range(int(days * 144))]
    end = looks[-1][0]
    return rates_of(*looks, (end + 660.0, [shard(2, 8), *resting]),
                    (end + 720.0, [shard(2, 8), *resting]))


@pytest.mark.parametrize("days", few([0.5, 31.0, 0.1, 1.0, 5.0, 15.5], 2))
@pytest.mark.parametrize("resting", [[], [shard(1, 8, target=0)]])
def test_what_was_measured_long_ago_makes_no_endless_estimate(
        days: float, resting: Sequence[Movement]) -> None:
    rates = after_an_hour_of_arrivals(days, resting)
    found = time_left(rates, [shard(2, 8), *resting], {3: GIB})
    assert found is None or found.seconds < 366 * 86400.0
    assert rates.ours.bytes == 0.0 or rates.ours.bytes >= 1.0


def test_a_pg_without_acting_osds_is_read_from_none() -> None:
    """An inactive one has none; another shard of it may still be on its way."""
    pgs = {pgid: pg._replace(acting=()) for pgid, pg in SNAPSHOT.pgs.items()}
    lost = SNAPSHOT._replace(pgs=pgs)
    rates = TransferRates(copying={osd: Rate(1.0, 1e6) for osd in lost.osds})
    assert slow_osds(rates, [shard(0, 8)], lost) == []
