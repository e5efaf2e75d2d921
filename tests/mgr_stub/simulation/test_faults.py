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


@pytest.fixture
def module(session: Any) -> Any:
    return session.module


def upmap(pgid: str, *ids: int) -> Dict[str, Any]:
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": pgid, "id": list(ids)}


def answers(session: Any, count: int) -> List[int]:
    """The codes for moves of the six PGs in turn, one after the other."""
    return [session.module.mon_command(upmap(f"2.{n % 6}", 2, 4))[0] for n in range(count)]


def moves_again(session: Any) -> bool:
    """Whether a command is carried out, as without any fault."""
    code = session.module.mon_command(upmap("2.0", 2, 5))[0]
    return code == 0 and session.cluster.map.upmap_items["2.0"] == ((2, 5),)


# -- failover -------------------------------------------------------------------------------------

def test_module_of_a_killed_mgr_is_not_shut_down(session: Any, module: Any) -> None:
    module.set_store("kept", "yes")
    run(session, "sim mgr fail takeover=20s")
    assert not module.closed and session.module is None
    assert session.command("equilibrium echo x")[0] == -11
    run(session, "osd set noout", "sim run 19s")
    assert session.module is None and session.host.busy()
    run(session, "sim run 1s")
    later = session.module
    assert later is not None and later is not module
    assert later.get_store("kept") == "yes"
    assert later.steps == [session.clock()]
    run(session, "equilibrium echo x", "sim run 1h")
    assert len(later.steps) == 61


@pytest.mark.parametrize("point, sent", [("before-send", 1), ("after-send", 2)])
def test_mgr_dies_at_a_command(session: Any, module: Any, point: str, sent: int) -> None:
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
    assert sorted(session.cluster.map.upmap_items) == ["2.0", "2.1"][:sent]
    for entry in session.command_log:
        assert entry.returncode == 0


# -- monitors -------------------------------------------------------------------------------------

def test_delayed_epochs(session: Any, module: Any) -> None:
    clock = session.clock
    run(session, "sim mon delay 20s")
    result, = module.send(upmap("2.0", 2, 4))
    start = clock.now
    assert not result.ev.wait(5) and clock.now == start + 5
    assert session.cluster.map.upmap_items == {}
    assert result.ev.wait(30) and clock.now == start + 20
    assert session.cluster.map.upmap_items == {"2.0": ((2, 4),)}
    entry, = session.command_log
    assert (entry.sent_at, entry.done_at, entry.sender) == (start, start + 20, "mgr.x")
    run(session, "osd set noout")                     # operators' commands are not delayed
    assert clock.now == start + 20


def test_rejected_commands(session: Any) -> None:
    run(session, "sim mon reject 0.5")
    codes = answers(session, 60)
    assert set(codes) == {0, -1, -22} and 15 < codes.count(0) < 45
    assert [entry.returncode for entry in session.command_log] == codes
    run(session, "sim mon reject 0")
    assert moves_again(session)


def test_lost_answers(session: Any, module: Any) -> None:
    run(session, "sim mon lose 1")
    seen = set()
    for result in module.send(*(upmap(f"2.{n}", 2, 4) for n in range(6))):
        seen.add(result.r if result.ev.wait(1) else "nothing")
    assert seen == {-110, "nothing"}
    assert len(session.cluster.map.upmap_items) == 6   # carried out nevertheless
    log = session.command_log
    assert {(entry.returncode, entry.answer is None) for entry in log} == {(0, True), (0, False)}


def test_dropped_items(session: Any) -> None:
    run(session, "sim mon drop 0.5")
    for _ in range(2):   # always the same PGs
        assert answers(session, 6) == [0] * 6
        kept = session.cluster.map.upmap_items
        assert 0 < len(kept) < 6
        for entry in session.command_log[-6:]:
            assert entry.kept == (entry.command["pgid"] in kept)
    run(session, "sim mon drop 0")
    assert moves_again(session) and session.command_log[-1].kept


def test_no_connection(session: Any, module: Any) -> None:
    store, osdmap = session.simulation.store, module.get_osdmap
    run(session, "sim mon down")
    assert not module.have_mon_connection()
    epoch = osdmap().get_epoch()
    result, = module.send(upmap("2.0", 2, 4))
    module.set_store("key", "value")
    assert not result.ev.wait(30)
    run(session, "osd set noout", "sim run 1m")
    assert session.cluster.map.epoch > epoch == osdmap().get_epoch()
    assert module.get_store("key") == "value" and store.keys == {}
    run(session, "sim mon up")
    assert module.have_mon_connection() and result.ev.wait(1)
    assert osdmap().get_epoch() == session.cluster.map.epoch
    assert store.keys == {"mgr/equilibrium/key": "value"}


# -- statistics and clocks ------------------------------------------------------------------------


def test_noise(session: Any) -> None:
    def pgs() -> Dict[str, Dict[str, Any]]:
        return dict(session.mgr.get("pg_progress")["pgs"])
    quiet = pgs()
    run(session, "sim stats noise 0.05")
    noisy = pgs()
    assert quiet != noisy == pgs()      # constant between two reports
    for pgid, pg in quiet.items():
        assert noisy[pgid]["num_bytes"] == pytest.approx(pg["num_bytes"], rel=0.05)
    run(session, "sim run 5s")
    assert pgs() != noisy
    statfs = session.mgr.get("osd_stats")["osd_stats"][0]["statfs"]
    used, real = statfs["total"] - statfs["available"], session.cluster.usage[0].used
    assert used != real and used == pytest.approx(real, rel=0.05)


def test_the_wall_clock_jumps(session: Any, module: Any) -> None:
    clock = session.clock
    run(session, "osd pg-upmap-items 2.0 2 4", "sim run 3s")
    wall, even = clock(), clock.now
    run(session, "sim clock jump -1h")
    assert (clock(), clock.now) == (wall - 3600, even)
    run(session, "sim run 10m", "sim clock jump +90m")
    assert (clock(), clock.now) == (wall + 1800 + 600, even + 600)
    assert not session.simulation.backfill.moving()
    assert len(module.steps) == 11
