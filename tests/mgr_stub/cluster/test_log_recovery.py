"""PGs whose log reaches back to their first object, moved by upmap, as seen on real daemons.

The acting sets, states and counts are those of 16.2.15 with ten OSDs (hosts of two).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import pytest

from mgr_stub.cluster.pg import Pg, Transfer
from mgr_stub.cluster.pg_state import acting_of, peered_counts
from mgr_stub.cluster.usage import ShardBytes
from mgr_stub.crush.constants import NONE
from tests.support.clusters import stub_states as clusters

REP = (2, "rep", 1, 3, 0, "")
PAIR = (2, "pair", 1, 2, 0, "")
EC21 = (2, "ec", 3, 3, 2, "k2m1")


def one_with_whole_log(up: List[int], objects: int) -> Dict[str, Any]:
    """A state with one PG whose log has all its writes."""
    return clusters.state([clusters.pg("2.0", up, objects=objects, log_start="0'0")], osds=10,
                          pools=[REP])


def moved(make_session: Callable[..., Any], pool: Tuple[Any, ...], before: Sequence[int],
          pairs: Sequence[int], objects: int = 198, **more: Any) -> Any:
    """A session in which one PG has been moved by upmap items and has peered."""
    record = {**clusters.pg("2.0", before, objects=objects, log_start="0'0"), **more}
    state = clusters.state([record], osds=10, pools=[pool])
    if pool is PAIR:
        state["osd_dump"]["pools"][0]["min_size"] = 1
    session = make_session(state)
    session.command("sim log-recovery on")
    # slow enough to observe the transfer
    session.command("sim backfill rate 10M")
    rc, _, error = session.command(f"osd pg-upmap-items 2.0 {' '.join(map(str, pairs))}")
    assert rc == 0, error
    session.command("sim run 2s")
    return session


def shown(session: Any) -> Dict[str, Any]:
    return dict(session.mgr.get("pg_stats")["pg_stats"][0])


@pytest.mark.parametrize("pool, before, pairs, up, acting, copies", [
    (REP, [3, 1, 4], [4, 8], [3, 1, 8], [3, 1], 1),
    (REP, [7, 3, 5], [7, 8], [8, 3, 5], [3, 5], 1),              # the primary itself
    (REP, [9, 6, 3], [6, 4, 3, 0], [9, 4, 0], [9, 0], 2),        # min_size serves, no fewer
    (EC21, [9, 0, 6], [6, 4], [9, 0, 4], [9, 0, NONE], 1),
    (EC21, [6, 3, 5], [6, 8], [8, 3, 5], [NONE, 3, 5], 1),
    (EC21, [9, 3, 7], [3, 4, 7, 0], [9, 4, 0], [9, NONE, 0], 2),
    (PAIR, [6, 9], [9, 4], [6, 4], [6], 1),
    (PAIR, [8, 6], [8, 4], [4, 6], [6], 1)])
def test_new_members_recover_asynchronously(make_session: Callable[..., Any], pool: Tuple[Any, ...],
                                            before: List[int], pairs: List[int], up: List[int],
                                            acting: List[int], copies: int) -> None:
    session = moved(make_session, pool, before, pairs)
    record = shown(session)
    assert (record["up"], record["acting"]) == (up, acting)
    assert session.mgr.get("osd_map")["pg_temp"] == [{"pgid": "2.0", "osds": acting}]
    assert record["state"] == "active+recovering+undersized+remapped"
    counts = record["stat_sum"]
    assert counts["num_objects_degraded"] == 0
    assert 198 * (copies - 1) < counts["num_objects_misplaced"] <= 198 * copies
    source = session.cluster.usage[pairs[0]].used
    session.command("sim run idle")
    record = shown(session)
    assert (record["state"], record["acting"]) == ("active+clean", up)
    assert session.mgr.get("osd_map")["pg_temp"] == []
    assert session.cluster.usage[pairs[0]].used < source      # its copy is dropped at the end


def test_few_missing_objects_are_recovered_in_place(make_session: Callable[..., Any]) -> None:
    session = moved(make_session, REP, [5, 9, 6], [6, 2], objects=19)
    record = shown(session)
    assert record["acting"] == record["up"] == [5, 9, 2]
    assert record["state"].startswith("active+recovering")
    assert 0 < record["stat_sum"]["num_objects_misplaced"] <= 19
    assert session.mgr.get("osd_map")["pg_temp"] == []


@pytest.mark.parametrize("flag", ["norebalance", "nobackfill"])
def test_backfill_flags_do_not_stop_log_recovery(make_session: Callable[..., Any],
                                                 flag: str) -> None:
    state = one_with_whole_log([6, 9, 2], objects=179)
    session = make_session(state)
    session.command("sim log-recovery on")
    session.command(f"osd set {flag}")
    session.command("osd pg-upmap-items 2.0 2 4")
    session.command("sim run 1h")
    assert shown(session)["state"] == "active+clean"
    assert shown(session)["acting"] == [6, 9, 4]


def test_state_is_degraded_until_the_first_object(make_session: Callable[..., Any]) -> None:
    """With norecover: no object is degraded, but the state is, and thus HEALTH_WARN."""
    state = one_with_whole_log([4, 6, 2], objects=201)
    session = make_session(state)
    session.command("sim log-recovery on")
    session.command("osd set norecover")
    session.command("osd pg-upmap-items 2.0 2 8")
    session.command("sim run 1m")
    record = shown(session)
    assert record["state"] == "active+recovering+undersized+degraded+remapped"
    assert record["stat_sum"]["num_objects_degraded"] == 0
    assert record["stat_sum"]["num_objects_misplaced"] == 201


def test_pg_with_a_trimmed_log_is_backfilled(make_session: Callable[..., Any]) -> None:
    session = moved(make_session, REP, [8, 2, 5], [8, 6], ondisk_log_start="53'177")
    record = shown(session)
    assert record["up"] == [6, 2, 5]
    assert record["acting"] == [2, 5, 8]  # the lowest id is primary if up[0] is new
    assert record["state"] == "active+remapped+backfilling"


@pytest.mark.parametrize("serving_now, acting", [
    ((2, 4, 7), (9, 2, 4)),     # the serving ones, in their order
    ((4, 7, 2), (9, 2, 4)),
    ((2, 7, 4), (9, 2, 7)),
    ((9, 2), (9, 2, 4))])       # then other OSDs with a copy, the lowest id first
def test_old_member_that_fills_a_hole(serving_now: Tuple[int, ...],
                                      acting: Tuple[int, ...]) -> None:
    """osd.9 is complete, a third member is down: one of two old ones serves (seen on 20.2.4)."""
    pg = Pg("2.0", 2, False, clusters.pg("2.0", [2, 7, 4]))
    pg.held = (9, 2, 7, 4)
    assert acting_of(pg, (9, 2), 3, 2, lambda osd: osd != 0, serving_now) == acting


def test_a_full_osd_stops_recovery(make_session: Callable[..., Any]) -> None:
    """An acting or recovering OSD: `recovery_toofull` until the ratio is raised."""
    state = one_with_whole_log([4, 6, 2], objects=201)
    session = make_session(state)
    session.command("sim log-recovery on")
    session.command("sim osd full-ratios 0.001 0.001 0.001")
    session.command("osd pg-upmap-items 2.0 2 8")
    session.command("sim run 10m")
    assert shown(session)["state"] == (
        "active+recovery_toofull+undersized+degraded+remapped")
    counts = shown(session)["stat_sum"]
    assert (counts["num_objects_degraded"], counts["num_objects_misplaced"]) == (201, 0)
    session.command("sim osd full-ratios 0.85 0.9 0.95")
    session.command("sim run 10m")
    assert shown(session)["state"] == "active+clean"


@pytest.mark.parametrize("flag", ["norebalance", "nobackfill", "norecover"])
def test_a_flag_stops_backfill_that_has_its_slots(make_session: Callable[..., Any],
                                                  flag: str) -> None:
    """Real PGs report `backfilling` although nothing is copied."""
    record = clusters.pg("2.0", [6, 3, 4], objects=198)
    session = make_session(clusters.state([record], osds=10, pools=[REP]))
    session.command("sim log-recovery on")
    session.command(f"osd set {flag}")
    session.command("osd pg-upmap-items 2.0 4 8")
    session.command("sim run 1h")
    assert shown(session)["state"] == "active+remapped+backfilling"
    assert shown(session)["stat_sum"]["num_objects_misplaced"] == 198
    session.command(f"osd unset {flag}")
    session.command("sim run 1h")
    assert shown(session)["acting"] == [6, 3, 8]


def test_a_full_source_alone_stops_nothing(make_session: Callable[..., Any]) -> None:
    """It neither serves nor receives data; its copy stays until the end."""
    state = one_with_whole_log([4, 6, 2], objects=201)
    session = make_session(state)
    session.command("sim log-recovery on")
    usage = session.cluster.usage[2]
    usage.used = int(usage.total * 0.97)
    session.command("osd pg-upmap-items 2.0 2 8")
    session.command("sim run 10m")
    assert shown(session)["state"] == "active+clean"


def test_a_full_osd_that_stays_stops_recovery(make_session: Callable[..., Any]) -> None:
    state = one_with_whole_log([4, 6, 2], objects=201)
    session = make_session(state)
    session.command("sim log-recovery on")
    usage = session.cluster.usage[6]
    usage.used = int(usage.total * 0.97)
    session.command("osd pg-upmap-items 2.0 2 8")
    session.command("sim run 10m")
    assert "recovery_toofull" in shown(session)["state"]


def test_empty_pg_is_clean_at_once(make_session: Callable[..., Any]) -> None:
    """A PG that has never been written to serves from its new members at once."""
    session = make_session(one_with_whole_log([4, 6, 2], objects=0))
    for line in ("osd set norecover", "osd set nobackfill", "osd pg-upmap-items 2.0 2 8"):
        session.command(line)
    session.command("sim run 5s")
    record = shown(session)
    assert (record["state"], record["acting"]) == ("active+clean", [4, 6, 8])
    assert session.mgr.get("osd_map")["pg_temp"] == []


def test_old_member_serves_a_hole_of_up() -> None:
    """CRUSH finds no OSD for the last shard: its old OSD serves it, which is misplaced."""
    pg = Pg("2.0", 2, True, clusters.pg("2.0", [7, 8, 4], objects=47))
    pg.writes = 47
    pg.transfers = {(0, 5): Transfer(7, 5, ShardBytes(470, 0, 0))}
    pg.transfers[0, 5].by_log = pg.transfers[0, 5].by_whole_log = True
    up = (5, 8, NONE)
    acting = acting_of(pg, up, 3, 2, lambda osd: True, (7, 8, 4))
    assert acting == (5, 8, 4)
    assert peered_counts(pg, up, acting, 3) == (47, 47)
    pg.backfilling = True
    assert peered_counts(pg, up, acting, 3) == (94, 0)
    assert acting_of(pg, up, 3, 2, lambda osd: osd != 4, (7, 8, 4)) == up
