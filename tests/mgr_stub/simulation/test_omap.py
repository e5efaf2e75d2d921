"""Omap in the statistics, as seen on 16.2.15 and 20.2.4: a pool of objects that hold only keys."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from tests.support.clusters import stub_states as clusters
from tests.support.units import GIB


@pytest.fixture(params=[16, 20])
def release(request: Any) -> int:
    return int(request.param)


@pytest.fixture
def session(make_session: Callable[..., Any], release: int) -> Any:
    made = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2], objects=60),
                                        clusters.pg("2.1", [3, 4, 5], objects=60)]), release)
    made.command("sim write-omap rep 4G")
    return made


def reported(session: Any) -> Dict[str, int]:
    pool = session.mgr.get("pool_stats")["pool_stats"][0]
    osd = session.mgr.get("osd_stats")["osd_stats"][0]
    return {"pgs": sum(pg["stat_sum"]["num_omap_bytes"]
                       for pg in session.mgr.get("pg_stats")["pg_stats"]),
            "pool": pool["stat_sum"]["num_omap_bytes"],
            "store": pool["store_stats"]["omap_allocated"],
            "df": session.mgr.get("df")["pools"][0]["stats"]["stored_omap"],
            "osd": osd["statfs"]["omap_allocated"], "osd_kb": osd["kb_used_omap"] << 10}


def test_omap_is_reported_after_a_deep_scrub(session: Any, release: int) -> None:
    at_once = 1 if release >= 18 else 0
    known = {"store": 12 * GIB, "df": 4 * GIB, "osd": 2 * GIB, "osd_kb": 2 * GIB}
    shown = {name: count * at_once for name, count in known.items()}
    assert reported(session) == {"pgs": 0, "pool": 0, **shown}
    session.command("sim deep-scrub rep")
    assert reported(session) == {"pgs": 4 * GIB, "pool": 4 * GIB, **shown}
    session.command("sim write-omap rep 4G")
    assert reported(session)["pgs"] == 4 * GIB        # as found by the last scrub


def test_unreported_omap_moves_and_is_freed_late(session: Any) -> None:
    used = {osd: usage.used for osd, usage in session.cluster.usage.items()}
    session.command("osd pg-upmap-items 2.0 2 3")
    session.command("sim run 5m")
    assert session.cluster.usage[3].used - used[3] > 2 * GIB
    assert session.cluster.usage[2].used - used[2] > -1.5 * GIB      # data and metadata
    session.command(f"sim run {int(session.cluster.compaction_seconds)}s")
    assert session.cluster.usage[2].used - used[2] < -3 * GIB


def test_moved_omap_counts_until_compaction(session: Any, release: int) -> None:
    session.command("sim compaction 1d")
    session.command("sim compact 0 1 2 3 4 5")
    before, used = reported(session)["store"], session.cluster.usage[2].used
    session.command("osd pg-upmap-items 2.0 2 3")
    session.command("sim run 1h")
    if release >= 18:
        assert reported(session)["store"] == before + 2 * GIB
    assert session.cluster.usage[2].used - used > -1.5 * GIB
    session.command("sim compact 2")
    assert session.cluster.usage[2].used - used < -2.5 * GIB
    session.command("sim run 2d")
    assert session.cluster.usage[2].used >= 0 and reported(session)["store"] == (
        before if release >= 18 else before - 2 * GIB)


def test_omap_written_out_is_reported(session: Any, release: int) -> None:
    """Of three copies those on two OSDs; later writes are hidden again."""
    session.command("sim compact 0 1")
    known = reported(session)
    assert known["osd"] == 2 * GIB
    assert known["store"] == (12 if release >= 18 else 4) * GIB
    session.command("sim write-omap rep 4G")
    assert reported(session)["osd"] == (4 if release >= 18 else 2) * GIB


def test_require_osd_release(session: Any, release: int) -> None:
    assert session.mgr.get("osd_map")["require_osd_release"] == {
        16: "pacific", 20: "tentacle"}[release]
