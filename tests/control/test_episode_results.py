"""Predictions of an episode: packed for the store, bounded, held against what was measured."""
from __future__ import annotations

import json

import pytest

from equilibrium_mgr.control.episodes.episode import Episode
from equilibrium_mgr.control.episodes.history import MOST_ENTRIES, History
from equilibrium_mgr.control.episodes.measurement import AwaitedMeasurement, awaited_from_dict
from equilibrium_mgr.control.episodes.predictions import (
    max_by_class, pack, prediction_error, shifted, unpack, worst_predictions)
from equilibrium_mgr.runtime.kv_store import MAX_VALUE_BYTES


def test_a_prediction_comes_back() -> None:
    predicted = {osd: (osd * 37 % 1000) / 1000 for osd in range(0, 4000, 3)}
    assert unpack(pack(predicted)) == pytest.approx(predicted, abs=1e-5)
    assert unpack(pack({})) == {}


@pytest.mark.parametrize("stored", [None, 7, "", "not base64!", "eJw", "AAAA", "x" * 50_000])
def test_a_prediction_of_rubbish(stored: object) -> None:
    assert unpack(stored) == {}


def test_an_osd_is_never_predicted_to_hold_less_than_nothing() -> None:
    """It is being emptied, and its shards are smaller than they were taken for."""
    predicted = shifted({3: 0.4, 4: 0.5}, {3: -0.4014})
    assert worst_predictions(predicted, {3: 0.0005, 4: 0.5})[0] == (3, 0.0, 0.0005)
    error = prediction_error(predicted, {3: 0.0005, 4: 0.5})
    assert error is not None and (error.largest, error.osd) == (0.0005, 3)


def test_history_of_ten_thousand_osds_fits_into_the_store() -> None:
    past = History()
    predicted = {osd: (osd * 7919 % 9973) / 9973 for osd in range(10_000)}
    awaited = AwaitedMeasurement(1.0, predicted, frozenset(f"4095.{i:x}" for i in range(5000)))
    for number in range(MOST_ENTRIES):
        past.add(Episode("p" * 64, "x" * 300, float(number), {"hdd": 0.5}, 1, 2, 3).entry(
            "dropped" * 100, 1.0, None), awaited)
    assert len(past.entries) >= 1 and past.entries[-1]["started_at"] == MOST_ENTRIES - 1
    stored = json.dumps(past.to_dict())
    assert len(stored) + 100 < MAX_VALUE_BYTES
    assert unpack(pack(predicted)) and awaited_from_dict(json.loads(stored)["awaited"]) is not None
    episode = Episode("p" * 64, "x" * 300, 1.0, {"hdd": 0.5}, 1, 2, 3, predicted)
    assert len(json.dumps(episode.to_dict())) + 100 < MAX_VALUE_BYTES


@pytest.mark.parametrize("stored", [None, 7, [], {}, {"started_at": "x"},
                                    {"started_at": 1.0, "pgids": 5},
                                    {"started_at": 1.0, "arrived_at": []}])
def test_an_awaited_measurement_of_rubbish(stored: object) -> None:
    assert awaited_from_dict(stored) is None


def test_error_names_the_osd_that_was_farthest_off() -> None:
    predicted = shifted({0: 0.5, 1: 0.4, 2: 0.3}, {0: 0.1, 7: 0.5})
    error = prediction_error(predicted, {0: 0.6, 1: 0.43, 2: 0.29, 9: 1.0})
    assert error is not None and (error.largest, error.osd) == (0.03, 1)
    assert error.mean == pytest.approx(0.04 / 3, abs=1e-6)
    assert prediction_error(predicted, {5: 0.1}) is None
    assert max_by_class(predicted, {0: "hdd", 1: "hdd", 2: "ssd"}) == {"hdd": 0.6, "ssd": 0.3}


def test_the_osds_that_were_farthest_off_are_named_in_their_order() -> None:
    predicted = {osd: 0.5 for osd in range(20)}
    measured = {osd: 0.5 + osd / 1000.0 for osd in range(19)}   # the last one does not report
    assert worst_predictions(predicted, measured) == [
        (osd, 0.5, pytest.approx(0.5 + osd / 1000.0)) for osd in (18, 17, 16, 15, 14)]
    assert worst_predictions({}, measured) == []
