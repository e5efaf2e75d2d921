"""The primary of a PG, and PGs that are `down`, as seen on 16.2.15 and 20.2.4."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.cluster.pg import Pg
from mgr_stub.cluster.pg_state import acting_of
from mgr_stub.crush.hashes import NONE
from tests.support.clusters import stub_states as clusters

REP = (2, "rep", 1, 3, 0, "")
EC21 = (2, "ec", 3, 3, 2, "k2m1")


def one(make_session: Callable[..., Any], up: List[int], pool: Any = REP, entries: int = 21) -> Any:
    """A session with one PG and a trimmed log of `entries`, of which a backfill copies 20."""
    record = {**clusters.pg("2.0", up, objects=198), "ondisk_log_size": entries, "blocked_by": []}
    session = make_session(clusters.state([record], osds=10, pools=[pool]))
    session.command("config set osd osd_max_pg_log_entries 20")
    session.command("osd set noout")
    return session


def shown(session: Any) -> Dict[str, Any]:
    return dict(session.mgr.get("pg_stats")["pg_stats"][0])


def do(session: Any, *lines: str) -> Dict[str, Any]:
    """Runs commands, each until peered and copied; the PG's last pg_stats[] record."""
    for line in lines:
        rc, _, error = session.command(line)
        assert rc == 0, error
        session.command("sim run 1h")
    return shown(session)


@pytest.mark.parametrize("entries, acting", [(21, [5, 8, 3]), (20, [3, 5, 8])])
def test_backfilled_osd_is_the_last_choice_for_primary(
        make_session: Callable[..., Any], entries: int, acting: List[int]) -> None:
    """Its log is shorter than the others' if those had more entries than a backfill copies."""
    session = one(make_session, [1, 5, 8], entries=entries)
    record = do(session, "osd pg-upmap-items 2.0 1 3")
    assert record["acting"] == [3, 5, 8]        # the first of up is primary nevertheless
    record = do(session, "osd set norebalance", "osd pg-upmap-items 2.0 1 4")
    assert (record["up"], record["acting"]) == ([4, 5, 8], acting)


def test_a_write_makes_logs_equal(make_session: Callable[..., Any]) -> None:
    session = one(make_session, [1, 5, 8])
    do(session, "osd pg-upmap-items 2.0 1 3")
    session.simulation.client_load._resize(session.cluster.pgs["2.0"], 4 << 20)
    record = do(session, "osd set norebalance", "osd pg-upmap-items 2.0 1 4")
    assert record["acting"] == [3, 5, 8]


def test_present_primary_leads_among_equal_logs() -> None:
    pg = Pg("2.0", 2, False, clusters.pg("2.0", [7, 2, 4]))
    assert acting_of(pg, (9, 2, 4), 3, 2, lambda osd: True, (7, 2, 4)) == (7, 2, 4)
    pg.short_logs = frozenset((7,))
    assert acting_of(pg, (9, 2, 4), 3, 2, lambda osd: True, (7, 2, 4)) == (2, 4, 7)


def test_pg_with_fewer_than_k_shards_is_down(make_session: Callable[..., Any]) -> None:
    """Nothing counts as degraded while the last writes are unknown."""
    session = one(make_session, [2, 8, 6], EC21)
    record = do(session, "sim osd down 2 8")
    assert (record["state"], record["blocked_by"]) == ("down", [2, 8])
    assert record["up"] == record["acting"] == [NONE, NONE, 6]
    assert record["stat_sum"]["num_objects_degraded"] == 0
    record = do(session, "sim osd up 2")
    assert (record["state"], record["blocked_by"]) == ("active+undersized+degraded", [])
    assert record["stat_sum"]["num_objects_degraded"] == 198
    assert do(session, "sim osd up 8")["state"] == "active+clean"


def test_osd_that_missed_writes_does_not_unblock_a_pg(make_session: Callable[..., Any]) -> None:
    """osd.8 and osd.6 may have taken writes that osd.2 has not: one of them is needed as well."""
    session = one(make_session, [2, 8, 6], EC21)
    assert do(session, "sim osd down 2", "sim osd down 8")["state"] == "down"
    record = do(session, "sim osd up 2")
    assert (record["state"], record["blocked_by"]) == ("down", [8])
    assert do(session, "sim osd up 8")["state"] == "active+clean"


def test_pg_without_its_latest_writers_is_down(make_session: Callable[..., Any]) -> None:
    session = one(make_session, [2, 8, 6])
    record = do(session, "sim osd down 2", "sim osd down 8 6", "sim osd up 2")
    assert (record["state"], record["blocked_by"]) == ("down", [6, 8])
    assert do(session, "sim osd up 6")["state"] == "active+undersized+degraded"


def test_stray_serves_while_a_shard_is_missing(
        make_session: Callable[..., Any]) -> None:
    """osd.4 was down while the PG went on without it; its copy is whole (20.2.4, seed 42)."""
    session = one(make_session, [2, 9, 4])
    do(session, "sim osd down 4", "osd pg-upmap-items 2.0 4 6")
    assert shown(session)["acting"] == [2, 9, 6]
    do(session, "sim osd down 2")
    record = do(session, "sim osd up 4")
    assert (record["up"], record["acting"]) == ([9, 6], [9, 6, 4])
    assert record["state"] == "active+clean+remapped"
    counts = record["stat_sum"]
    assert (counts["num_objects_misplaced"], counts["num_objects_degraded"]) == (198, 0)
    used = session.cluster.usage[4].used
    assert do(session, "sim osd up 2")["acting"] == [2, 9, 6]
    assert session.cluster.usage[4].used < used


def test_pg_drops_shards_outside_of_its_acting_set(make_session: Callable[..., Any]) -> None:
    """osd.1 had to be backfilled again although the PG lacked a member all the time."""
    session = one(make_session, [8, 2, 1])
    do(session, "sim osd down 2", "osd pg-upmap-items 2.0 1 7")
    record = shown(session)
    assert (record["up"], record["acting"]) == ([8, 7], [8, 7, 1])
    record = do(session, "osd pg-upmap-items 2.0 1 7 8 5")
    assert (record["up"], record["acting"]) == ([5, 7], [5, 7, 8])
    assert sorted(session.cluster.pgs["2.0"].holders()) == [2, 5, 7, 8]    # osd.2 is down


def test_undersized_pg_keeps_its_old_shards(make_session: Callable[..., Any]) -> None:
    """Back where it was, there is nothing to copy (20.2.4, seed 42)."""
    session = one(make_session, [2, 8, 6], EC21)
    do(session, "sim osd down 6", "osd pg-upmap-items 2.0 2 4")
    do(session, "osd set norecover", "osd set nobackfill")
    record = do(session, "osd rm-pg-upmap-items 2.0")
    assert record["up"] == record["acting"] == [2, 8, NONE]
    assert record["state"] == "active+undersized+degraded"
    assert record["stat_sum"]["num_objects_misplaced"] == 0


def test_write_keeps_the_shard_of_an_osd_with_a_stray(
        make_session: Callable[..., Any]) -> None:
    session = one(make_session, [2, 8, 6], EC21)
    do(session, "sim osd down 6", "osd pg-upmap-items 2.0 2 4")
    pg = session.cluster.pgs["2.0"]
    assert set(pg.strays) == {(0, 2)} and pg.held == (4, 8, 6)
    pg.strays[1, 4] = pg.shard
    session.simulation.client_load._resize(pg, 4 << 20)
    assert pg.held == (4, 8, NONE)
    record = do(session, "sim osd up 6")
    assert (record["state"], record["acting"]) == ("active+clean", [4, 8, 6])
