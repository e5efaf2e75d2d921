"""Readings as of Ceph 21, shared and read-only, and plain ones as of earlier releases."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest

from mgr_stub.console.session import Session
from mgr_stub.frozen import ReadOnlyDict, frozen
from tests.support.clusters import stub_states as clusters

NAMES = "osd_map osd_map_crush pg_progress pg_stats pool_stats osd_stats pg_status df"
CHANGES = """
d.update(a=1)
d.pop("a")
d.setdefault("b", 1)
d["a"] = 2
del d["a"]
d.clear()
d.popitem()
d |= {"b": 1}
d["list"].append(3)
d["list"][0].update(x=1)
d["list"] + [3]
d["set"].add(3)
"""


def parts(value: Any) -> Iterator[Any]:
    """The value and everything in it."""
    yield value
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple, frozenset, set)):
        return
    for inner in value:
        yield from parts(inner)


@pytest.mark.parametrize("change", CHANGES.strip().splitlines())
def test_frozen_readings_reject_changes(change: str) -> None:
    reading = frozen({"a": 1, "list": [{"x": 0}, 2], "set": {1}})
    with pytest.raises((TypeError, AttributeError)):
        exec(change, {"d": reading})


@pytest.mark.parametrize("asked_for, kind, others", [
    ({}, ReadOnlyDict, (list, set)), ({"frozen": False}, dict, (tuple, frozenset))])
def test_readings_are_read_only_by_default(make_session: Callable[..., Session], asked_for: Any,
                                           kind: type, others: Any) -> None:
    """Plain ones as of Ceph 16 to 20 where that is asked for."""
    session = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]), **asked_for)
    for name in NAMES.split():
        reading = session.module.get(name)
        assert type(reading) is kind, name
        for part in parts(reading):
            assert not isinstance(part, others), name
