"""What an OSD withholds, as it has too many PGs by its own options, is taken back."""
from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.explain.followed import open_cluster

from equilibrium_mgr.crush.placement import NO_OSD

WITHHELD = "MGR_EQUILIBRIUM_WITHHELD"


def withheld(session: Session) -> List[str]:
    return [pgid for pgid, pg in session.cluster.unclean.items() if pg.withheld_by]


def limited(tmp_path: Path, seed: int = 27, limit: int = 25) -> Session:
    """A cluster of OSDs that withhold from fewer PGs on than moves bring, as the mgr knows not."""
    session = open_cluster("random", seed, tmp_path)
    run(session, f"config set osd mon_max_pg_per_osd {limit}",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "sim run 1m")
    return session


def first_withheld(session: Session) -> Any:
    """Runs until an OSD withholds a PG; that PG."""
    for _ in range(100):
        run(session, "sim run 5s")
        for pgid in withheld(session):
            return session.cluster.pgs[pgid]
    raise AssertionError("none is withheld")


def lines(session: Session) -> List[str]:
    check = session.mgr.health_checks.get(WITHHELD)
    return [] if check is None else list(check["detail"])


@pytest.mark.parametrize("how, seed, limit", [
    ("automatic", 27, 25), ("plan", 27, 25), ("failover", 27, 25), ("by a new primary", 15, 15)])
def test_a_withheld_pg_is_inactive_for_minutes_and_not_sent_there_again(
        how: str, seed: int, limit: int, tmp_path: Path) -> None:
    session = limited(tmp_path, seed, limit)
    if how == "plan":
        run(session, "equilibrium optimize p", "equilibrium execute p")
    else:
        run(session, "equilibrium on")
    seconds: Dict[str, int] = {}   # of each PG in that state
    raised: Set[str] = set()
    for moment in range(240):
        run(session, "sim run 30s")
        raised.update(session.mgr.health_checks)
        for pgid in withheld(session):
            seconds[pgid] = seconds.get(pgid, 0) + 30
        if moment == 1 and how == "failover":
            assert seconds
            run(session, "sim failover")
    most = 180 if how in ("automatic", "plan") else 240
    assert 2 <= len(seconds) <= 5 and max(seconds.values()) <= most, seconds
    assert not withheld(session)
    assert WITHHELD in raised
    assert "MGR_EQUILIBRIUM_APPLY_FAILED" not in raised
    session.close()


OPTION = "config set mgr mgr/equilibrium/"


@pytest.mark.parametrize("comes", [
    ["sim pool pg_num {pool} {fewer}"], ["sim pool pg_num {pool} {more}"],
    [OPTION + "begin_time 0100", OPTION + "end_time 0101"],
    ["sim flag set norebalance"], ["sim flag set nobackfill"], ["sim balancer on"],
    ["sim osd out {holder}"], ["sim osd down {other}"],
    [OPTION + "start_delay 86400", "sim failover"], [OPTION + "sleep_interval 3600"],
    [OPTION + "pool_ids 9999"], ["equilibrium drain add osd.{other}", OPTION + "active false"],
    ["equilibrium optimize p", "equilibrium execute p"],
    ["equilibrium drain add osd.{source}"], ["sim flag set noup", "sim stats hang 10m {other}"],
    ["sim failover", "sim flag set norebalance"], ["equilibrium on"],
    ["sim clock jump -1h"], ["config set mgr mgr/equilibrium/max_misplaced_ratio 0.0001"],
], ids=" and ".join)
def test_nothing_that_comes_meanwhile_leaves_it_inactive(
        comes: List[str], tmp_path: Path) -> None:
    """It moves no data: what binds moves does not bind it."""
    session = limited(tmp_path)
    run(session, "equilibrium on")
    pg = first_withheld(session)
    pool = session.cluster.map.pools[pg.pool_id]
    own = {*pg.held, *session.cluster.map.up[pg.pgid]}
    other = next(osd for osd in sorted(session.cluster.map.osds) if osd not in own and not any(
        osd in session.cluster.pgs[pgid].held for pgid in withheld(session)))
    for line in comes:
        run(session, line.format(
            pool=pool["pool_name"], fewer=pool["pg_num"] // 2, more=2 * pool["pg_num"],
            holder=next(osd for osd in pg.held if osd in session.cluster.map.up[pg.pgid]),
            source=next(osd for osd in pg.held if osd not in session.cluster.map.up[pg.pgid]),
            other=other))
    run(session, "sim run 4m")
    assert not pg.withheld_by, comes
    session.close()


def by_items(session: Session, moments: int) -> Set[Tuple[str, int]]:
    """PGs that were withheld for 30 s, and OSDs that did so, where upmap items sent them there."""
    seen: Set[Tuple[str, int]] = set()
    for _ in range(moments):
        run(session, "sim run 30s")
        new = {(pgid, osd) for pgid in withheld(session)
               for _, osd in session.cluster.map.upmap_items.get(pgid, ())} - seen
        assert {osd for _, osd in new}.isdisjoint(osd for _, osd in seen), (new, seen)
        seen |= new
    return seen


@pytest.mark.parametrize("later", [
    ["sim failover"], ["equilibrium on"], ["equilibrium off", "equilibrium on"],
    ["sim failover", "equilibrium on"], ["sim osd out {other}", "sim run 10m"],
    ["equilibrium off", "equilibrium optimize q", "equilibrium execute q"]],
    ids=" and ".join)
def test_an_osd_that_withheld_one_gets_none_later(later: List[str], tmp_path: Path) -> None:
    session = limited(tmp_path)
    run(session, "equilibrium on")
    pg = first_withheld(session)
    earlier = by_items(session, 60)
    assert not withheld(session) and earlier
    other = next(osd for osd in sorted(session.cluster.map.osds) if osd not in pg.held)
    run(session, *(line.format(other=other) for line in later))
    osds = {osd for _, osd in by_items(session, 240)}
    assert osds.isdisjoint(osd for _, osd in earlier), (osds, earlier)
    session.close()


@pytest.mark.parametrize("lag", [100, 160, 250, 400])
def test_what_is_reported_late_is_not_withheld(lag: int, tmp_path: Path) -> None:
    session = open_cluster("random", 15, tmp_path)
    run(session, f"sim stats lag {lag}s", "sim run 10m", "equilibrium on")
    for _ in range(120):
        run(session, "sim run 1m")
        assert WITHHELD not in session.mgr.health_checks
        status = ask(session, "status")
        assert not status["rejected"], status["rejected"]
    assert not [row for row in session.module.balancer.changes().rows() if row.kind == "cancel"]
    session.close()


def followed(session: Session) -> None:
    """An operator runs the command that the health check ends with."""
    found = lines(session)
    commands = [line.partition("ceph ")[2] for line in found[found.index("run:") + 1:]]
    assert commands, found
    run(session, *commands, "sim run 2m")


def withheld_by_primary(session: Session) -> Any:
    """Runs until the OSD that would lead a PG withholds it; that PG."""
    run(session, "equilibrium on")
    pg = first_withheld(session)
    while session.cluster.map.up[pg.pgid][0] not in pg.withheld_by:
        pg = first_withheld(session)
    return pg


@pytest.mark.parametrize("comes", [
    ["sim failover"], ["sim mgr fail takeover=5s"], ["sim run 2m", "sim failover"],
    ["sim mgr fail takeover=10m"], ["sim failover", "sim run 2m", "sim failover"],
    ["sim failover", "sim run 1m", "sim stats gap 2m {0}"],
    ["equilibrium off", "sim run 3h", "sim failover", "sim run 1h"],
], ids=" and ".join)
@pytest.mark.parametrize("seed", [15, 14])   # of its shards one was to move, or two
def test_what_a_new_primary_withholds_is_taken_back_by_the_next_mgr(
        seed: int, comes: List[str], tmp_path: Path) -> None:
    """Which has never heard of it: nobody reports it."""
    session = limited(tmp_path, seed, 15)
    pg = withheld_by_primary(session)
    run(session, *(line.format(*session.cluster.map.up[pg.pgid]) for line in comes))
    assert pg.withheld_by
    if comes[0] == "equilibrium off":
        run(session, "equilibrium on")
    run(session, f"sim run {15 if 'takeover=10m' in comes[0] else 6}m")
    assert not pg.withheld_by and set(session.cluster.map.up[pg.pgid]) == set(pg.held)
    assert session.mgr.get("pg_progress")["pgs"][pg.pgid]["state"] == "active+clean"
    session.close()


@pytest.mark.parametrize("comes", [
    [], ["sim failover"], ["sim run 45s", "sim mgr fail takeover=5s"]])
def test_what_its_log_would_fill_is_taken_back(comes: List[str], tmp_path: Path) -> None:
    """A PG of few writes has the new OSD in its acting set at once, as on 16.2.15: to the next mgr
    it looks as one that has arrived, and it tells that it is inactive."""
    session = limited(tmp_path)
    for pg in session.cluster.pgs.values():
        pg.writes = 50
    run(session, "equilibrium on")
    pg = first_withheld(session)
    assert session.cluster.map.acting(pg.pgid) == session.cluster.map.up[pg.pgid] != pg.held and (
        session.mgr.get("pg_progress")["pgs"][pg.pgid]["state"] == "activating+degraded")
    sent = session.cluster.map.upmap_items[pg.pgid]
    run(session, *comes, "sim run 4m")
    if comes:   # or what has arrived would be taken back where its OSDs restart with the mgr
        assert session.cluster.map.upmap_items[pg.pgid] == sent
        assert "cannot be read or written" in session.command("equilibrium status")[1]
    else:
        assert not pg.withheld_by and set(session.cluster.map.up[pg.pgid]) == set(pg.held)
    session.close()


def balanced(tmp_path: Path, after: str = "4h") -> Tuple[Session, Dict[str, Any]]:
    """A cluster to which all has come that was sent in this time, and the upmap items that brought
    it."""
    session = open_cluster("random", 27, tmp_path)
    run(session, "equilibrium on", f"sim run {after}", "equilibrium off", "sim run 20m")
    assert not session.cluster.unclean and session.cluster.map.upmap_items
    return session, dict(session.cluster.map.upmap_items)


@pytest.mark.parametrize("comes", [[], ["sim failover"], ["sim run 30s", "sim failover"]])
@pytest.mark.parametrize("after", ["4h", "30m"])
def test_what_came_is_not_taken_back_as_it_activates_slowly(
        after: str, comes: List[str], tmp_path: Path) -> None:
    """As after the restart of a host, of the mgr's own too, or where OSDs withhold what CRUSH sends
    them."""
    session, items = balanced(tmp_path, after)
    for pgid in items:
        pg = session.cluster.pgs[pgid]
        pg.withheld_by, session.cluster.unclean[pgid] = frozenset(pg.held[:1]), pg
        pg.reported_epoch = session.cluster.map.epoch
        pg.forget_reports()
    assert {session.mgr.get("pg_progress")["pgs"][pgid]["state"] for pgid in items} == {
        "activating+degraded"}
    run(session, *comes, "sim run 10m")
    assert session.cluster.map.upmap_items == items and not lines(session)
    session.close()


@pytest.mark.parametrize("writes", [50, 0])   # by log recovery, or by backfill
def test_what_crush_sends_to_an_osd_that_withholds_it_leaves_older_moves(
        writes: int, tmp_path: Path) -> None:
    session, items = balanced(tmp_path)
    for pg in session.cluster.pgs.values():
        pg.writes = writes or pg.writes
    run(session, "config set osd mon_max_pg_per_osd 30",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "sim run 10s", "sim osd out 3",
        "sim run 20s")
    older = {pgid for pgid in withheld(session) if session.cluster.pgs[pgid].withheld_by.isdisjoint(
        osd for _, osd in items.get(pgid, ()))} & items.keys()
    assert older
    run(session, "sim failover", "sim run 10m")
    assert {pgid: session.cluster.map.upmap_items.get(pgid) for pgid in older} == {
        pgid: items[pgid] for pgid in older}
    assert not [line for line in lines(session) for pgid in older if pgid in line]
    session.close()


def test_what_a_silent_primary_does_not_report_is_not_withheld_by_another(tmp_path: Path) -> None:
    """By primary affinity not the first OSD of an erasure-coded PG leads it."""
    session, items = balanced(tmp_path)
    cluster = session.cluster
    pgid = next(pgid for pgid in sorted(items)
                if cluster.map.pools[cluster.pgs[pgid].pool_id]["type"] == 3
                and cluster.map.up[pgid][0] in {osd for _, osd in items[pgid]})
    run(session, f"sim osd primary-affinity {cluster.map.up[pgid][0]} 0", "sim run 5m")
    leads = cluster.map.acting_primary(pgid)
    assert leads not in (NO_OSD, cluster.map.up[pgid][0])
    run(session, "sim failover", f"sim stats gap 12m {leads}", "sim run 8m")
    assert cluster.map.upmap_items == items and not lines(session)
    session.close()


def test_what_a_new_primary_withholds_does_not_count_as_arrived(tmp_path: Path) -> None:
    session = limited(tmp_path, 15, 15)
    pg = withheld_by_primary(session)
    run(session, "equilibrium off", "sim run 25m")
    assert pg.withheld_by and any(pg.pgid in line for line in lines(session)), lines(session)
    run(session, "equilibrium on", "sim run 10m")
    assert not pg.withheld_by
    session.close()


def test_undo_leaves_taken_back_what_was_withheld(tmp_path: Path) -> None:
    session = limited(tmp_path)
    run(session, "equilibrium optimize p", "equilibrium execute p")
    pg = first_withheld(session)
    run(session, "sim run 2h")
    items = dict(session.cluster.map.upmap_items)
    assert not pg.withheld_by
    assert session.command("equilibrium undo automatic")[0] == -errno.ENOENT
    run(session, "sim run 5m")
    assert session.cluster.map.upmap_items == items
    session.close()


@pytest.mark.parametrize("point", ["before-store", "after-store", "after-map"])
def test_off_that_comes_meanwhile_is_final(point: str, tmp_path: Path) -> None:
    session = limited(tmp_path)
    run(session, "equilibrium on")
    pg = first_withheld(session)
    run(session, "sim run 110s")   # five seconds before the look that has it taken back
    assert pg.withheld_by
    run(session, f"sim meanwhile {point} 1 equilibrium off", "sim run 10m")
    assert not session.module.settings().active
    assert pg.withheld_by and lines(session)
    assert not [row for row in session.module.balancer.changes().rows() if row.kind == "cancel"]
    session.close()


def test_a_pool_that_is_deleted_while_it_is_taken_back_fails_no_round(tmp_path: Path) -> None:
    """The answers of the monitors take a while, and the next batch goes in the same round."""
    session = limited(tmp_path, 14, 15)
    run(session, "equilibrium on")
    pg = first_withheld(session)
    run(session, "sim run 75s")
    balancer = session.module.balancer
    seen = balancer.observer.view.snapshot
    later = seen._replace(taken_at=seen.taken_at + 200)
    assert pg.pgid in balancer.dispatcher.withheld(later)
    gone = {pgid: one for pgid, one in later.pgs.items() if one.pool != pg.pool_id}
    assert pg.pgid not in balancer.dispatcher.withheld(later._replace(pgs=gone))
    session.close()


@pytest.mark.parametrize("is_holder", [True, False])
def test_where_an_osd_is_down_the_command_is_named(is_holder: bool, tmp_path: Path) -> None:
    """The PG would lack a copy then, which nobody sends it to; a monitor takes it."""
    session = limited(tmp_path)
    run(session, "equilibrium on")
    pg = first_withheld(session)
    down = next(osd for osd in session.cluster.map.up[pg.pgid] if osd not in pg.withheld_by
                and (osd in pg.held) is is_holder)
    run(session, f"sim osd down {down}", "sim run 5m")
    assert not pg.withheld_by or any(pg.pgid in line for line in lines(session)), lines(session)
    if pg.withheld_by:
        assert not any(f"osd.{NO_OSD}" in line for line in lines(session)), lines(session)
        followed(session)
    assert not pg.withheld_by
    session.close()


@pytest.mark.parametrize("off_for, gap", [("0s", "0s"), ("24h", "0s"), ("0s", "90s")])
@pytest.mark.parametrize("as_primary, seed, limit", [
    (False, 27, 25), (True, 15, 15), (True, 14, 15)])
def test_off_after_a_failover_names_it_as_well(
        as_primary: bool, seed: int, limit: int, off_for: str, gap: str, tmp_path: Path) -> None:
    """Be it for a day, and where OSDs take their time to report to the new mgr."""
    session = limited(tmp_path, seed, limit)
    run(session, "equilibrium on")
    pg = withheld_by_primary(session) if as_primary else first_withheld(session)
    osds = " ".join(map(str, session.cluster.map.osds))
    run(session, "equilibrium off", f"sim run {off_for}", "sim failover",
        f"sim stats gap {gap} {osds}", "sim run 10m")
    assert pg.withheld_by and lines(session)
    followed(session)
    assert not withheld(session)
    session.close()


def test_what_somebody_else_has_set_stays_and_the_command_is_named(tmp_path: Path) -> None:
    session = limited(tmp_path)
    run(session, "equilibrium on")
    first_withheld(session)
    run(session, "sim run 2h")
    assert not withheld(session)
    # an operator's own, to an OSD that has too many
    cluster = session.cluster
    full = max(cluster.map.osds, key=lambda osd: int(cluster.usage[osd].dump()["num_pgs"]))
    run(session, f"config set osd mon_max_pg_per_osd {cluster.usage[full].dump()['num_pgs']}",
        "sim run 10s")
    pg, ours = None, {row.pgid for row in session.module.balancer.changes().rows()}
    for pgid, up in sorted(cluster.map.up.items()):
        if full not in up and pgid not in ours and pgid not in cluster.map.upmap_items:
            for source in up[1:]:
                run(session, f"osd pg-upmap-items {pgid} {source} {full}", "sim run 10s")
                if cluster.pgs[pgid].withheld_by:
                    pg = cluster.pgs[pgid]
                    break
                run(session, f"osd rm-pg-upmap-items {pgid}", "sim run 10s")
        if pg is not None:
            break
    assert pg is not None
    for _ in range(10):
        run(session, "sim run 30s")
        if lines(session):
            break
    assert pg.withheld_by
    assert any(pg.pgid in line for line in lines(session)), lines(session)
    followed(session)
    assert not pg.withheld_by
    session.close()
