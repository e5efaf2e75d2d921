"""What is awaited of an ended episode: bounded in the store, never believed where it is rubbish."""
from __future__ import annotations

import json

import pytest

from equilibrium_mgr.control.episodes.episode import Episode
from equilibrium_mgr.control.episodes.history import MOST_ENTRIES, History
from equilibrium_mgr.control.episodes.measurement import AwaitedMeasurement, awaited_from_dict
from equilibrium_mgr.runtime.kv_store import MAX_VALUE_BYTES


def test_the_longest_history_fits_into_the_store() -> None:
    past = History()
    awaited = AwaitedMeasurement(1.0, frozenset(f"4095.{i:x}" for i in range(5000)))
    for number in range(MOST_ENTRIES):
        past.add(Episode("p" * 64, "x" * 300, float(number), {"hdd": 0.5}, 1, 2, 3).entry(
            "dropped" * 100, 1.0, None), awaited)
    assert len(past.entries) >= 1 and past.entries[-1]["started_at"] == MOST_ENTRIES - 1
    stored = json.dumps(past.to_dict())
    assert len(stored) + 100 < MAX_VALUE_BYTES
    assert awaited_from_dict(json.loads(stored)["awaited"]) is not None


@pytest.mark.parametrize("stored", [None, 7, [], {}, {"started_at": "x"},
                                    {"started_at": 1.0, "pgids": 5},
                                    {"started_at": 1.0, "arrived_at": []}])
def test_an_awaited_measurement_of_rubbish(stored: object) -> None:
    assert awaited_from_dict(stored) is None
