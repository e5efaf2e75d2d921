"""Samples: sparse, bounded, the older the sparser; kept in the store over failovers."""
from __future__ import annotations

import json
import logging
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest
from tests.support.fakes import KeyValueStore
from tests.support.units import GIB

from equilibrium_mgr.growth.recorder import PATIENCE_SECONDS, STORE_SECONDS, GrowthRecorder
from equilibrium_mgr.growth.samples import (
    KEPT_SECONDS, MAX_SAMPLES, SAMPLE_SECONDS, Sample, class_points, is_due, samples_from_json,
    samples_to_json, take_sample, with_sample)
from equilibrium_mgr.growth.trend import GROWING, UNKNOWN

DAY = 86_400.0


def filled(count: int, pools: int = 1, max_bytes: int = 1 << 20) -> Tuple[Sample, ...]:
    samples: Tuple[Sample, ...] = ()
    for number in range(count):
        samples = with_sample(samples, take_sample(
            1e9 + number * SAMPLE_SECONDS, {pool: 12_345 * GIB for pool in range(pools)},
            {"hdd": GIB}), max_bytes)
    return samples


def test_what_is_not_known_is_left_out() -> None:
    sample = take_sample(10.7, {1: 5 << 20, 2: None}, {"hdd": 3 << 20})
    assert sample == Sample(10, {1: 5}, {"hdd": 3})


def test_they_are_few_and_the_older_the_sparser() -> None:
    samples = filled(10 * MAX_SAMPLES)
    assert len(samples) <= MAX_SAMPLES
    assert samples[-1].at - samples[0].at <= KEPT_SECONDS
    assert samples[-1].at - samples[0].at > 0.8 * KEPT_SECONDS
    gaps = [later.at - earlier.at for earlier, later in zip(samples, samples[1:])]
    assert sum(gaps[-40:]) < sum(gaps[:40]) / 2


def test_many_pools_fit_into_one_value_of_the_store() -> None:
    samples = filled(300, pools=200, max_bytes=50_000)
    assert 5 < len(samples) and len(json.dumps(
        samples_to_json(samples), separators=(",", ":"))) <= 51_000
    assert samples[-1].at == int(1e9 + 299 * SAMPLE_SECONDS)


def test_samples_of_the_future_are_dropped_when_a_clock_was_wrong() -> None:
    samples = filled(20)
    assert not is_due(samples, samples[-1].at + 1.0) and is_due(samples, samples[5].at + 1.0)
    assert with_sample(samples, take_sample(samples[5].at + 1.0, {}, {}), 1 << 20)[:-1] == (
        samples[:6])


def test_json_and_back() -> None:
    samples = filled(5, pools=2)
    assert samples_from_json(json.loads(json.dumps(samples_to_json(samples)))) == samples


@pytest.mark.parametrize("held, kept", [(50 * GIB, 2), (GIB // 4, 5)])
def test_what_a_deleted_pool_held_is_no_shrinking_class(held: int, kept: int) -> None:
    """Nor is each little pool that comes and goes a beginning of the history."""
    samples = [take_sample(float(number), {1: 50 * GIB, **({2: held} if number < 3 else {})},
                           {"hdd": 300 * GIB}) for number in range(5)]
    assert [at for at, _ in class_points(samples, "hdd")] == [0.0, 1.0, 2.0, 3.0, 4.0][-kept:]


class Case:
    """A recorder over a store, and a cluster of which a pool grows by 10 GiB a day."""

    def __init__(self, kv: Optional[KeyValueStore] = None) -> None:
        self.kv = kv if kv is not None else KeyValueStore()
        self.now = 1e9
        self.asked = 0
        self.is_complete = True
        self.recorder = self.restarted()

    def restarted(self) -> GrowthRecorder:
        def stored() -> Mapping[int, Optional[int]]:
            self.asked += 1
            return {1: int(100 * GIB + 10 * GIB * (self.now - 1e9) / DAY), 2: GIB}
        return GrowthRecorder(self.kv, stored, lambda: {"hdd": stored()[1] or 0},
                              lambda: self.is_complete, logging.getLogger("test"))

    def run(self, days: float, every: float = 3600.0) -> None:
        for _ in range(int(days * DAY / every)):
            self.recorder.record(self.now)
            self.now += every


def test_it_samples_seldom_and_writes_more_seldom() -> None:
    case = Case()
    writes: List[str] = []
    set_store = case.kv.set_store

    def counted(key: str, value: Any) -> None:
        writes.append(key)
        set_store(key, value)
    case.kv.set_store = counted   # type: ignore[method-assign]
    case.run(4.0)
    assert case.asked == 2 * 24 and writes == ["growth"] * 2   # after 36 and 72 hours
    assert case.recorder.growth.pool(1).bytes_per_day == pytest.approx(10 * GIB, rel=0.01)
    assert case.recorder.growth.device_class("hdd").state == GROWING
    assert case.recorder.growth.pool(7).state == UNKNOWN


def test_a_sample_waits_for_reports_though_not_for_ever() -> None:
    """PGs without any OSD are never reported."""
    case = Case()
    case.is_complete = False
    for seconds, samples in ((0.0, 0), (PATIENCE_SECONDS - 1.0, 0), (PATIENCE_SECONDS, 1),
                             (PATIENCE_SECONDS + SAMPLE_SECONDS, 1)):
        case.now = 1e9 + seconds
        case.recorder.record(case.now)
        assert case.recorder.growth.samples == samples
    case.is_complete = True
    case.recorder.record(case.now)
    assert case.recorder.growth.samples == 2


def test_the_next_mgr_goes_on_with_what_was_stored() -> None:
    case = Case()
    case.run(5.0)
    before = case.recorder.growth
    case.recorder = case.restarted()
    case.recorder.record(case.now)
    after = case.recorder.growth
    assert after.since == before.since and after.pool(1).state == GROWING
    assert before.samples - after.samples <= STORE_SECONDS / SAMPLE_SECONDS
    case.run(2.0)
    assert case.recorder.growth.pool(1).bytes_per_day == pytest.approx(10 * GIB, rel=0.01)


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"samples": 3}', '{"samples": [[1]]}',
                                  '{"samples": [["x", {}, {}]]}', '{"version": 99}'])
def test_what_cannot_be_read_is_begun_anew(kept: str) -> None:
    kv = KeyValueStore()
    kv.set_store("growth", kept)
    case = Case(kv)
    case.run(0.5)
    assert case.recorder.growth.samples == 3


def test_a_removed_pool_is_forgotten_by_its_trends() -> None:
    case = Case()
    case.run(3.0)
    pools: Dict[int, Optional[int]] = {1: GIB}
    recorder = GrowthRecorder(case.kv, lambda: pools, lambda: {"hdd": GIB}, lambda: True,
                              logging.getLogger("test"))
    recorder.record(case.now + SAMPLE_SECONDS)
    assert set(recorder.growth.pools) == {1}
