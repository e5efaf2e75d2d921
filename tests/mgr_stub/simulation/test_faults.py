"""Injected faults: dead mgrs, faulty monitors, late statistics, jumps of the wall clock."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run

MakeSession = Callable[..., Any]


@pytest.fixture
def session(make_session: MakeSession) -> Any:
    return make_session(clusters.state(
        [clusters.pg(f"2.{n}", [0, 1, 2]) for n in range(6)], osds=8))


def upmap(pgid: str, *ids: int) -> Dict[str, Any]:
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": pgid, "id": list(ids)}


# -- failover -------------------------------------------------------------------------------------

def test_module_of_a_killed_mgr_is_not_shut_down(session: Any) -> None:
    old = session.module
    old.set_store("kept", "yes")
    run(session, "sim mgr fail takeover=20s")
    assert not old.closed and session.module is None
    assert session.command("equilibrium echo x")[0] == -11
    run(session, "osd set noout", "sim run 19s")
    assert session.module is None and session.host.busy()
    run(session, "sim run 1s")
    assert session.module is not None and session.module is not old
    assert session.module.get_store("kept") == "yes"
    assert session.module.steps == [session.clock()]
    assert session.command("equilibrium echo x")[0] == 0
    run(session, "sim run 1h")
    assert len(session.module.steps) == 61


@pytest.mark.parametrize("point, sent", [("before-send", 1), ("after-send", 2)])
def test_mgr_dies_at_a_command(session: Any, point: str, sent: int) -> None:
    module = session.module
    reached: List[str] = []

    def work() -> None:
        try:
            module.send(upmap("2.0", 2, 4), upmap("2.1", 2, 4), upmap("2.2", 2, 4))
        except Exception:                             # a module cannot catch MgrDied
            reached.append("handler")
        reached.append("behind")
    module.work = work
    run(session, f"sim mgr fail at {point} 2 takeover=10s", "sim run 61s")
    assert reached == [] and session.module is not module
    assert len(session.command_log) == sent
    run(session, "sim run 1m")
    assert sorted(session.cluster.map.upmap_items) == [f"2.{n}" for n in range(sent)]
    assert all(entry.returncode == 0 for entry in session.command_log)


# -- monitors -------------------------------------------------------------------------------------

def test_delayed_epochs(session: Any) -> None:
    run(session, "sim mon delay 20s")
    result, = session.module.send(upmap("2.0", 2, 4))
    start = session.clock.now
    assert not result.ev.wait(5) and session.clock.now == start + 5
    assert session.cluster.map.upmap_items == {}
    assert result.ev.wait(30) and session.clock.now == start + 20
    assert session.cluster.map.upmap_items == {"2.0": ((2, 4),)}
    entry, = session.command_log
    assert (entry.sent_at, entry.done_at, entry.sender) == (start, start + 20, "mgr.x")
    run(session, "osd set noout")                     # operators' commands are not delayed
    assert session.clock.now == start + 20


def test_rejected_commands(session: Any) -> None:
    run(session, "sim mon reject 0.5")
    answers = [session.module.mon_command(upmap(f"2.{n % 6}", 2, 4))[0] for n in range(60)]
    assert set(answers) == {0, -1, -22} and 15 < answers.count(0) < 45
    assert [entry.returncode for entry in session.command_log] == answers
    run(session, "sim mon reject 0")
    assert session.module.mon_command(upmap("2.0", 2, 5))[0] == 0


def test_lost_answers(session: Any) -> None:
    run(session, "sim mon lose 1")
    results = session.module.send(*(upmap(f"2.{n}", 2, 4) for n in range(6)))
    answered = [result.ev.wait(1) for result in results]
    assert True in answered and False in answered
    assert all(result.r == -110 for result, there in zip(results, answered) if there)
    assert len(session.cluster.map.upmap_items) == 6   # carried out nevertheless
    assert all(entry.returncode == 0 for entry in session.command_log)
    assert {entry.answer is None for entry in session.command_log} == {True, False}


def test_dropped_items(session: Any) -> None:
    run(session, "sim mon drop 0.5")
    for _ in range(2):   # always the same PGs
        answers = [session.module.mon_command(upmap(f"2.{n}", 2, 4))[0] for n in range(6)]
        assert answers == [0] * 6
        kept = set(session.cluster.map.upmap_items)
        assert 0 < len(kept) < 6
        assert [entry.kept for entry in session.command_log[-6:]] == [
            f"2.{n}" in kept for n in range(6)]
    run(session, "sim mon drop 0")
    assert session.module.mon_command(upmap("2.0", 2, 5))[0] == 0
    assert session.cluster.map.upmap_items["2.0"] == ((2, 5),) and session.command_log[-1].kept


def test_no_connection(session: Any) -> None:
    run(session, "sim mon down")
    assert not session.module.have_mon_connection()
    epoch = session.module.get_osdmap().get_epoch()
    result, = session.module.send(upmap("2.0", 2, 4))
    session.module.set_store("key", "value")
    assert not result.ev.wait(30)
    run(session, "osd set noout", "sim run 1m")
    assert session.cluster.map.epoch > epoch == session.module.get_osdmap().get_epoch()
    assert session.module.get_store("key") == "value" and session.simulation.store.keys == {}
    run(session, "sim mon up")
    assert session.module.have_mon_connection() and result.ev.wait(1)
    assert session.module.get_osdmap().get_epoch() == session.cluster.map.epoch
    assert session.simulation.store.keys == {"mgr/equilibrium/key": "value"}


# -- statistics and clocks ------------------------------------------------------------------------

def test_frozen_statistics(session: Any) -> None:
    names = ("pg_progress", "osd_stats", "pg_status", "pg_stats", "df", "pool_stats")
    before = {name: session.mgr.get(name) for name in names}
    run(session, "sim stats freeze 10m", "osd pg-upmap-items 2.0 2 4", "sim run 5m",
        "sim write rep 1G")
    assert {name: session.mgr.get(name) for name in names} == before
    assert session.mgr.get_osdmap().get_epoch() > 10   # maps come from the monitor
    run(session, "sim run 6m")
    assert session.mgr.get("osd_stats") != before["osd_stats"]
    run(session, "sim stats freeze 10m", "sim pool rm rep", "sim stats freeze 10m")
    assert session.mgr.get("pg_progress")["pgs"] == {}


def test_lagging_statistics(session: Any) -> None:
    seen: List[float] = []
    run(session, "sim backfill rate 1M", "sim stats lag 60s", "osd pg-upmap-items 2.0 2 4")
    start = session.clock.now
    for _ in range(40):
        run(session, "sim run 5s")
        if session.mgr.get("pg_status").get("misplaced_objects"):
            seen.append(session.clock.now - start)
    assert 60 <= seen[0] <= 80
    used = session.mgr.get("osd_stats")["osd_stats"][4]["kb_used"]
    assert used < session.cluster.usage[4].used >> 10
    run(session, "sim stats lag 0")
    assert session.mgr.get("osd_stats")["osd_stats"][4]["kb_used"] > used


def test_noise(session: Any) -> None:
    quiet = session.mgr.get("pg_progress")["pgs"]
    run(session, "sim stats noise 0.05")
    noisy = session.mgr.get("pg_progress")["pgs"]
    assert noisy == session.mgr.get("pg_progress")["pgs"]      # constant between two reports
    for pgid, pg in quiet.items():
        assert abs(noisy[pgid]["num_bytes"] / pg["num_bytes"] - 1) <= 0.05
    assert noisy != quiet
    run(session, "sim run 5s")
    assert session.mgr.get("pg_progress")["pgs"] != noisy
    record = session.mgr.get("osd_stats")["osd_stats"][0]
    real = session.cluster.usage[0]
    used = record["statfs"]["total"] - record["statfs"]["available"]
    assert used != real.used and abs(used / real.used - 1) <= 0.05


def test_the_wall_clock_jumps(session: Any) -> None:
    run(session, "osd pg-upmap-items 2.0 2 4", "sim run 3s")
    wall, even = session.clock(), session.clock.now
    run(session, "sim clock jump -1h")
    assert (session.clock(), session.clock.now) == (wall - 3600, even)
    run(session, "sim run 10m", "sim clock jump +90m")
    assert session.clock() == wall + 1800 + 600 and session.clock.now == even + 600
    assert not session.simulation.backfill.moving()
    assert len(session.module.steps) == 11


# -- the whole run --------------------------------------------------------------------------------
