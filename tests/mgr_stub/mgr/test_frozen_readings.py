"""Readings as of Ceph 21, shared and read-only, and plain ones as of earlier releases."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest

from mgr_stub.console.session import Session
from mgr_stub.frozen import ReadOnlyDict, frozen
from tests.support.clusters import stub_states as clusters

NAMES = ["osd_map", "osd_map_crush", "pg_progress", "pg_stats", "pool_stats", "osd_stats",
         "pg_status", "df"]


def parts(value: Any) -> Iterator[Any]:
    """The value and everything in it."""
    yield value
    for inner in value.values() if isinstance(value, dict) else (
            value if isinstance(value, (list, tuple, frozenset, set)) else ()):
        yield from parts(inner)


@pytest.mark.parametrize("change", [
    lambda d: d.update(a=1), lambda d: d.pop("a"), lambda d: d.setdefault("b", 1),
    lambda d: d.__setitem__("a", 2), lambda d: d.__delitem__("a"), lambda d: d.clear(),
    lambda d: d.popitem(), lambda d: d.__ior__({"b": 1}), lambda d: d["list"].append(3),
    lambda d: d["list"][0].update(x=1), lambda d: d["list"] + [3], lambda d: d["set"].add(3)])
def test_frozen_readings_reject_changes(change: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        change(frozen({"a": 1, "list": [{"x": 0}, 2], "set": {1}}))


@pytest.mark.parametrize("is_frozen", [True, False])
def test_readings_are_read_only_by_default(make_session: Callable[..., Session],
                                           is_frozen: bool) -> None:
    """Plain ones as of Ceph 16 to 20 where that is asked for."""
    session = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]),
                           **({} if is_frozen else {"frozen": False}))
    for name in NAMES:
        reading = session.module.get(name)
        assert type(reading) is (ReadOnlyDict if is_frozen else dict), name
        others = (list, set) if is_frozen else (tuple, frozenset)
        assert not any(isinstance(part, others) for part in parts(reading)), name
