"""What an OSD withholds, as it has too many PGs by its own options, is taken back."""
from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import pytest
from tests.commands.asking import ask, run
from tests.explain.followed import open_cluster
from tests.support.few import few

from equilibrium_mgr.crush.placement import NO_OSD

WITHHELD = "MGR_EQUILIBRIUM_WITHHELD"


class Case:
    """A random cluster, with the questions that tests ask."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.session = open_cluster("random", seed, folder)
        self.cluster = self.session.cluster

    def run(self, *lines: str) -> None:
        run(self.session, *lines)

    def limit(self, pgs: int) -> None:
        """OSDs withhold from fewer PGs on than the mgr knows."""
        self.run(f"config set osd mon_max_pg_per_osd {pgs}",
                 "config set osd osd_max_pg_per_osd_hard_ratio 1")

    def withheld(self) -> List[str]:
        return [pgid for pgid, pg in self.cluster.unclean.items() if pg.withheld_by]

    def first_withheld(self) -> Any:
        """Runs until an OSD withholds a PG; returns that PG."""
        for _ in range(100):
            self.run("sim run 5s")
            for pgid in self.withheld():
                return self.cluster.pgs[pgid]
        raise AssertionError("none is withheld")

    def withheld_by_primary(self) -> Any:
        """Runs until the OSD that would lead a PG withholds it, not only for a moment; returns that
        PG."""
        for _ in range(50):
            pg = self.first_withheld()
            self.run("sim run 20s")
            if self.up(pg)[0] in pg.withheld_by:
                return pg
        raise AssertionError("none is withheld")

    def osds(self) -> List[int]:
        return sorted(self.cluster.map.osds)

    def up(self, pg: Any) -> Any:
        return self.cluster.map.up[pg.pgid]

    def items(self) -> Dict[str, Any]:
        return dict(self.cluster.map.upmap_items)

    def state(self, pgid: str) -> str:
        """As the mgr has it."""
        return str(self.session.mgr.get("pg_progress")["pgs"][pgid]["state"])

    def told(self) -> List[str]:
        check = self.session.mgr.health_checks.get(WITHHELD, {})
        return list(check.get("detail", ()))

    def is_told(self, pgid: str) -> bool:
        return pgid in "\n".join(self.told())

    def is_back(self, pg: Any) -> bool:
        return not pg.withheld_by and set(self.up(pg)) == set(pg.held)

    def follow(self) -> None:
        """Runs the command that the health check ends with."""
        told = self.told()
        commands = [line.partition("ceph ")[2] for line in told[told.index("run:") + 1:]]
        assert commands, told
        self.run(*commands, "sim run 2m")

    def has_cancelled(self) -> bool:
        rows = self.session.module.balancer.changes().rows()
        return any(row.kind == "cancel" for row in rows)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Case]]:
    """Opens a cluster whose OSDs withhold PGs above a limit."""
    cases: List[Case] = []

    def open_case(seed: int = 27, limit: int = 25) -> Case:
        case = Case(tmp_path, seed)
        cases.append(case)
        if limit:
            case.limit(limit)
            case.run("sim run 1m")
        return case
    yield open_case
    for case in cases:
        case.session.close()


@pytest.fixture
def case(opened: Callable[..., Case]) -> Case:
    """A cluster whose OSDs withhold PGs soon after automatic balancing begins."""
    made = opened()
    made.run("equilibrium on")
    return made


@pytest.mark.parametrize("course", few([
    ("on", False, 15, 15, 240),   # by a new primary
    ("on", True, 27, 25, 240), ("on", False, 27, 25, 180), ("execute p", False, 27, 25, 180)], 2))
def test_a_withheld_pg_is_inactive_for_minutes_and_not_sent_there_again(
        course: Tuple[str, bool, int, int, int], opened: Callable[..., Case]) -> None:
    begin, failover, seed, limit, most = course
    case = opened(seed, limit)
    case.run("equilibrium optimize p", f"equilibrium {begin}")
    seconds: Counter[str] = Counter()   # of each PG in that state
    raised: Set[str] = set()
    for moment in range(240):
        case.run("sim run 30s")
        raised.update(case.session.mgr.health_checks)
        seconds.update(dict.fromkeys(case.withheld(), 30))
        if failover and moment == 1:
            assert seconds
            case.run("sim failover")
    assert 2 <= len(seconds) <= 6
    assert max(seconds.values()) <= most, seconds
    assert not case.withheld()
    assert WITHHELD in raised
    assert "MGR_EQUILIBRIUM_APPLY_FAILED" not in raised


@pytest.mark.parametrize("comes", few([
    "sim pool pg_num {pool} {fewer}", "{set}begin_time 0100 and {set}end_time 0101",
    "sim flag set nobackfill", "sim osd out {holder}", "{set}start_delay 86400 and sim failover",
    "equilibrium drain add osd.{other} and {set}active false",
    "sim flag set noup and sim stats hang 10m {other}", "sim clock jump -1h",
    "sim pool pg_num {pool} {more}", "sim flag set norebalance", "sim balancer on",
    "sim osd down {other}", "{set}sleep_interval 3600", "{set}pool_ids 9999",
    "equilibrium optimize p and equilibrium execute p", "equilibrium drain add osd.{source}",
    "sim failover and sim flag set norebalance", "equilibrium on",
    "{set}max_misplaced_ratio 0.0001"], 8))
def test_nothing_that_comes_meanwhile_leaves_it_inactive(comes: str, case: Case) -> None:
    """It moves no data: what binds moves does not bind it."""
    pg = case.first_withheld()
    pool = case.cluster.map.pools[pg.pool_id]
    held, up = set(pg.held), set(case.up(pg))
    others = set(case.osds()) - held - up
    for pgid in case.withheld():
        others.difference_update(case.cluster.pgs[pgid].held)
    lines = comes.format(
        set="config set mgr mgr/equilibrium/",
        pool=pool["pool_name"],
        fewer=pool["pg_num"] // 2,
        more=2 * pool["pg_num"],
        holder=min(held & up),
        source=min(held - up),
        other=min(others))
    case.run(*lines.split(" and "), "sim run 4m")
    assert not pg.withheld_by


def by_items(case: Case, moments: int) -> Set[int]:
    """Returns the OSDs that withheld a PG after upmap items sent it there; none withholds two."""
    seen: Set[Tuple[str, int]] = set()
    for _ in range(moments):
        case.run("sim run 30s")
        items = case.items()
        new = {(pgid, osd) for pgid in case.withheld() for _, osd in items.get(pgid, ())
               if osd in case.cluster.pgs[pgid].withheld_by} - seen
        assert targets(new).isdisjoint(targets(seen)), (new, seen)
        seen |= new
    return targets(seen)


def targets(pairs: Set[Tuple[str, int]]) -> Set[int]:
    return {osd for _, osd in pairs}


@pytest.mark.parametrize("later", few([
    "sim failover", "equilibrium off and equilibrium on", "equilibrium on",
    "sim failover and equilibrium on", "sim osd out {other} and sim run 10m",
    "equilibrium off and equilibrium optimize q and equilibrium execute q"], 2))
def test_an_osd_that_withheld_one_gets_none_later(later: str, case: Case) -> None:
    pg = case.first_withheld()
    earlier = by_items(case, 60)
    assert earlier
    assert not case.withheld()
    other = min(set(case.osds()) - set(pg.held))
    case.run(*later.format(other=other).split(" and "))
    assert by_items(case, 240).isdisjoint(earlier)


@pytest.mark.parametrize("lag", few([400, 160, 100, 250], 1))
def test_what_is_reported_late_is_not_withheld(lag: int, opened: Callable[..., Case]) -> None:
    case = opened(15, 0)
    case.run(f"sim stats lag {lag}s", "sim run 10m", "equilibrium on")
    for _ in range(120):
        case.run("sim run 1m")
        assert not case.told()
        assert not ask(case.session, "status")["rejected"]
    assert not case.has_cancelled()


@pytest.mark.parametrize("comes", few([
    "sim failover", "sim failover and sim run 1m and sim stats gap 2m {0}",
    "sim mgr fail takeover=5s", "sim run 2m and sim failover", "sim mgr fail takeover=10m",
    "sim failover and sim run 2m and sim failover",
    "equilibrium off and sim run 3h and sim failover and sim run 1h"], 2))
@pytest.mark.parametrize("seed", [15, 14])   # of its shards one was to move, or two
def test_what_a_new_primary_withholds_is_taken_back_by_the_next_mgr(
        seed: int, comes: str, opened: Callable[..., Case]) -> None:
    """Which has never heard of it: nobody reports it."""
    case = opened(seed, 15)
    case.run("equilibrium on")
    pg = case.withheld_by_primary()
    case.run(*comes.format(*case.up(pg)).split(" and "))
    assert pg.withheld_by
    if comes.startswith("equilibrium off"):
        case.run("equilibrium on")
    if "takeover=10m" in comes:
        case.run("sim run 9m")
    case.run("sim run 6m")
    assert case.is_back(pg)
    assert case.state(pg.pgid) == "active+clean"


@pytest.mark.parametrize("comes", [
    "sim run 1s", "sim failover", "sim run 45s and sim mgr fail takeover=5s"])
def test_what_its_log_would_fill_is_taken_back(comes: str, opened: Callable[..., Case]) -> None:
    """A PG of few writes has the new OSD in its acting set at once, as on 16.2.15: to the next mgr
    it looks as one that has arrived, and it tells that it is inactive."""
    case = opened()
    for pg in case.cluster.pgs.values():
        pg.writes = 50
    case.run("equilibrium on")
    pg = case.first_withheld()
    assert case.cluster.map.acting(pg.pgid) == case.up(pg) != pg.held
    assert case.state(pg.pgid) == "activating+degraded"
    sent = case.items()[pg.pgid]
    case.run(*comes.split(" and "), "sim run 4m")
    if "fail" not in comes:
        assert case.is_back(pg)
        return
    # else arrived PGs would go back when their OSDs restart with the mgr
    assert case.items()[pg.pgid] == sent
    assert "cannot be read or written" in case.session.command("equilibrium status")[1]


def balanced(opened: Callable[..., Case], after: str = "4h") -> Tuple[Case, Dict[str, Any]]:
    """A cluster to which all has come that was sent in this time, and the upmap items that brought
    it."""
    case = opened(27, 0)
    case.run("equilibrium on", f"sim run {after}", "equilibrium off", "sim run 20m")
    assert not case.cluster.unclean
    assert case.items()
    return case, case.items()


@pytest.mark.parametrize("comes", few([
    "sim failover", "sim run 1s", "sim run 30s and sim failover"], 2))
@pytest.mark.parametrize("after", few(["4h", "30m"], 1))
def test_what_came_is_not_taken_back_as_it_activates_slowly(
        after: str, comes: str, opened: Callable[..., Case]) -> None:
    """As after the restart of a host, of the mgr's own too, or where OSDs withhold what CRUSH sends
    them."""
    case, items = balanced(opened, after)
    for pgid in items:
        pg = case.cluster.pgs[pgid]
        pg.withheld_by, case.cluster.unclean[pgid] = frozenset(pg.held[:1]), pg
        pg.reported_epoch = case.cluster.map.epoch
        pg.forget_reports()
    assert set(map(case.state, items)) == {"activating+degraded"}
    case.run(*comes.split(" and "), "sim run 10m")
    assert case.items() == items
    assert not case.told()


@pytest.mark.parametrize("writes", [50, 0])   # by log recovery, or by backfill
def test_what_crush_sends_to_an_osd_that_withholds_it_leaves_older_moves(
        writes: int, opened: Callable[..., Case]) -> None:
    case, items = balanced(opened)
    for pg in case.cluster.pgs.values():
        pg.writes = writes or pg.writes
    case.limit(30)
    case.run("sim run 10s", "sim osd out 3", "sim run 20s")
    older = {pgid: items[pgid] for pgid in case.withheld() if pgid in items
             and case.cluster.pgs[pgid].withheld_by.isdisjoint(dict(items[pgid]).values())}
    assert older
    case.run("sim failover", "sim run 10m")
    assert older.items() <= case.items().items()
    assert not any(map(case.is_told, older))


def test_what_a_silent_primary_does_not_report_is_not_withheld_by_another(
        opened: Callable[..., Case]) -> None:
    """By primary affinity not the first OSD of an erasure-coded PG leads it."""
    case, items = balanced(opened)
    osd_map = case.cluster.map
    erasure = {pool for pool, fields in osd_map.pools.items() if fields["type"] == 3}
    pgid = min(pgid for pgid in items if case.cluster.pgs[pgid].pool_id in erasure
               and osd_map.up[pgid][0] in dict(items[pgid]).values())
    first = osd_map.up[pgid][0]
    case.run(f"sim osd primary-affinity {first} 0", "sim run 5m")
    leads = case.cluster.map.acting_primary(pgid)
    assert leads not in (NO_OSD, first)
    case.run("sim failover", f"sim stats gap 12m {leads}", "sim run 8m")
    assert case.items() == items
    assert not case.told()


def test_what_a_new_primary_withholds_does_not_count_as_arrived(
        opened: Callable[..., Case]) -> None:
    case = opened(15, 15)
    case.run("equilibrium on")
    pg = case.withheld_by_primary()
    case.run("equilibrium off", "sim run 25m")
    assert pg.withheld_by
    assert case.is_told(pg.pgid)
    case.run("equilibrium on", "sim run 10m")
    assert not pg.withheld_by


def test_undo_leaves_taken_back_what_was_withheld(opened: Callable[..., Case]) -> None:
    case = opened()
    case.run("equilibrium optimize p", "equilibrium execute p")
    pg = case.first_withheld()
    case.run("sim run 2h")
    items = case.items()
    assert not pg.withheld_by
    assert case.session.command("equilibrium undo automatic")[0] == -errno.ENOENT
    case.run("sim run 5m")
    assert case.items() == items


@pytest.mark.parametrize("point", ["before-store", "after-store", "after-map"])
def test_off_that_comes_meanwhile_is_final(point: str, case: Case) -> None:
    pg = case.first_withheld()
    case.run("sim run 110s")   # five seconds before the look that has it taken back
    assert pg.withheld_by
    case.run(f"sim meanwhile {point} 1 equilibrium off", "sim run 10m")
    assert not case.session.module.settings().active
    assert pg.withheld_by
    assert case.told()
    assert not case.has_cancelled()


def test_a_pool_that_is_deleted_while_it_is_taken_back_fails_no_round(
        opened: Callable[..., Case]) -> None:
    """The answers of the monitors take a while, and the next batch goes in the same round."""
    case = opened(14, 15)
    case.run("equilibrium on")
    pg = case.first_withheld()
    case.run("sim run 75s")
    balancer = case.session.module.balancer
    seen = balancer.observer.view.snapshot
    later = seen._replace(taken_at=seen.taken_at + 200)
    assert pg.pgid in balancer.dispatcher.withheld(later)
    gone = {pgid: one for pgid, one in later.pgs.items() if one.pool != pg.pool_id}
    assert pg.pgid not in balancer.dispatcher.withheld(later._replace(pgs=gone))


@pytest.mark.parametrize("is_holder", [True, False])
def test_where_an_osd_is_down_the_command_is_named(is_holder: bool, case: Case) -> None:
    """The PG would lack a copy then, which nobody sends it to; a monitor takes it."""
    pg = case.first_withheld()
    up, held = set(case.up(pg)) - set(pg.withheld_by), set(pg.held)
    down = min(up & held if is_holder else up - held)
    case.run(f"sim osd down {down}", "sim run 5m")
    if pg.withheld_by:
        assert case.is_told(pg.pgid)
        assert not case.is_told(f"osd.{NO_OSD}")
        case.follow()
    assert not pg.withheld_by


@pytest.mark.parametrize("times", few([("0s", "90s"), ("0s", "0s"), ("24h", "0s")], 1))
@pytest.mark.parametrize("as_primary, seed, limit", [
    (False, 27, 25), (True, 15, 15), (True, 14, 15)])
def test_off_after_a_failover_names_it_as_well(
        as_primary: bool, seed: int, limit: int, times: Tuple[str, str],
        opened: Callable[..., Case]) -> None:
    """Be it for a day, and where OSDs take their time to report to the new mgr."""
    off_for, gap = times
    case = opened(seed, limit)
    case.run("equilibrium on")
    pg = case.withheld_by_primary() if as_primary else case.first_withheld()
    osds = " ".join(map(str, case.osds()))
    case.run("equilibrium off", f"sim run {off_for}", "sim failover", f"sim stats gap {gap} {osds}",
             "sim run 10m")
    assert pg.withheld_by
    case.follow()
    assert not case.withheld()


def send_too_many(case: Case) -> Any:
    """Sends a PG to a full OSD by an operator's own item; returns that PG."""
    counts = {osd: int(case.cluster.usage[osd].dump()["num_pgs"]) for osd in case.osds()}
    full = max(counts, key=lambda osd: counts[osd])
    case.run(f"config set osd mon_max_pg_per_osd {counts[full]}", "sim run 10s")
    ours = {row.pgid for row in case.session.module.balancer.changes().rows()}
    for pgid, up in sorted(case.cluster.map.up.items()):
        if full in up or pgid in ours or pgid in case.items():
            continue
        for source in up[1:]:
            case.run(f"osd pg-upmap-items {pgid} {source} {full}", "sim run 10s")
            if case.cluster.pgs[pgid].withheld_by:
                return case.cluster.pgs[pgid]
            case.run(f"osd rm-pg-upmap-items {pgid}", "sim run 10s")
    raise AssertionError("none is withheld")


def test_what_somebody_else_has_set_stays_and_the_command_is_named(case: Case) -> None:
    case.first_withheld()
    case.run("sim run 2h")
    assert not case.withheld()
    pg = send_too_many(case)
    for _ in range(20):   # at rest the cluster is looked at within ten minutes
        case.run("sim run 30s")
        if case.told():
            break
    assert pg.withheld_by
    assert case.is_told(pg.pgid)
    case.follow()
    assert not pg.withheld_by
