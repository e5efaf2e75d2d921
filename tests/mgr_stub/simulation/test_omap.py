"""Omap in the statistics, as seen on 16.2.15 and 20.2.4: a pool of objects that hold only keys."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run
from tests.support.units import GIB


@pytest.fixture(params=[16, 20])
def release(request: Any) -> int:
    return int(request.param)


@pytest.fixture
def session(make_session: Callable[..., Any], release: int) -> Any:
    made = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2], objects=60),
                                        clusters.pg("2.1", [3, 4, 5], objects=60)]), release)
    run(made, "sim write-omap rep 4G")
    return made


def reported(session: Any) -> Dict[str, float]:
    """GiB of omap, as each structure of the mgr has it."""
    get = session.mgr.get
    pool = get("pool_stats")["pool_stats"][0]
    osd = get("osd_stats")["osd_stats"][0]
    sums = [pg["stat_sum"]["num_omap_bytes"] for pg in get("pg_stats")["pg_stats"]]
    found = {
        "pgs": sum(sums),
        "pool": pool["stat_sum"]["num_omap_bytes"],
        "store": pool["store_stats"]["omap_allocated"],
        "df": get("df")["pools"][0]["stats"]["stored_omap"],
        "osd": osd["statfs"]["omap_allocated"]}
    assert osd["kb_used_omap"] << 10 == found["osd"]
    return {name: count / GIB for name, count in found.items()}


def used(session: Any, osd: int) -> float:
    """GiB."""
    return float(session.cluster.usage[osd].used / GIB)


def test_omap_is_reported_after_a_deep_scrub(session: Any, release: int) -> None:
    shown = dict.fromkeys(("pgs", "pool", "store", "df", "osd"), 0)
    if release >= 18:
        shown.update(store=12, df=4, osd=2)
    assert reported(session) == shown
    run(session, "sim deep-scrub rep")
    shown.update(pgs=4, pool=4)
    assert reported(session) == shown
    run(session, "sim write-omap rep 4G")
    assert reported(session)["pgs"] == 4        # as found by the last scrub


def test_unreported_omap_moves_and_is_freed_late(session: Any) -> None:
    before = [used(session, osd) for osd in range(6)]
    run(session, "osd pg-upmap-items 2.0 2 3", "sim run 5m")
    assert used(session, 3) - before[3] > 2
    assert used(session, 2) - before[2] > -1.5      # data and metadata
    run(session, f"sim run {int(session.cluster.compaction_seconds)}s")
    assert used(session, 2) - before[2] < -3


def test_moved_omap_counts_until_compaction(session: Any, release: int) -> None:
    run(session, "sim compaction 1d", "sim compact 0 1 2 3 4 5")
    store, before = reported(session)["store"], used(session, 2)
    run(session, "osd pg-upmap-items 2.0 2 3", "sim run 1h")
    after = store
    if release >= 18:
        assert reported(session)["store"] == store + 2
    else:
        after -= 2
    assert used(session, 2) - before > -1.5
    run(session, "sim compact 2")
    assert used(session, 2) - before < -2.5
    run(session, "sim run 2d")
    assert used(session, 2) >= 0 and reported(session)["store"] == after


def test_omap_written_out_is_reported(session: Any, release: int) -> None:
    """Of three copies those on two OSDs; later writes are hidden again."""
    first, later = {16: ((2, 4), 2), 20: ((2, 12), 4)}[release]
    run(session, "sim compact 0 1")
    known = reported(session)
    assert (known["osd"], known["store"]) == first
    run(session, "sim write-omap rep 4G")
    assert reported(session)["osd"] == later


def test_require_osd_release(session: Any, release: int) -> None:
    names = {16: "pacific", 20: "tentacle"}
    assert session.mgr.get("osd_map")["require_osd_release"] == names[release]
