"""`drain add`, `drain rm`, `drain ls`, in the simulated mgr."""
from __future__ import annotations

import errno
from typing import Any, Callable

import pytest

from equilibrium_mgr.drain.drain_list import DrainList
from mgr_stub.console.session import Session
from tests.commands.asking import ask, paste, refuses, run
from tests.commands.conftest import look
from tests.support.few import few


@pytest.fixture(name="session")
def fixture_session(open_session: Callable[..., Session]) -> Session:
    found = open_session(18)
    run(found, "config set mgr mgr/equilibrium/start_delay 0")
    return found


def listed(session: Session) -> Any:
    return ask(session, "drain ls")


def test_what_it_names_lets_a_purge_move_nothing(session: Session) -> None:
    """A purge changes mappings as a CRUSH weight of 0 does: nobody maps to the OSD from then on."""
    run(session, "sim backfill rate 1G", "equilibrium drain add 3 6", "sim run 2h",
        "equilibrium drain ls", "sim run 1m")
    # PGs of few bytes are recovered by their log, which norebalance does not hold up
    held = {pg.pgid: set(pg.held) for pg in session.cluster.pgs.values() if pg.num_bytes > 1 << 30}
    assert held
    named = paste(session, run(session, "equilibrium drain ls"))
    assert [line for line in named if "reweight" in line] == [
        f"ceph osd crush reweight osd.{osd} 0" for osd in (3, 6)]
    run(session, "sim run 4h", "equilibrium drain ls", "sim run 1m")
    assert named[-1] == "ceph osd unset norebalance"
    assert {pgid: set(session.cluster.pgs[pgid].held) for pgid in held} == held
    assert listed(session)["safe_to_stop"]
    assert session.simulation.backfill.idle()
    assert [row["purge_moves_data"] for row in listed(session)["osds"]] == [False, False]
    assert "that moves no data" in " ".join(run(session, "equilibrium drain ls").split())
    for pg in session.cluster.pgs.values():
        assert not {3, 6} & set(pg.raw or ())


def test_a_list_that_cannot_be_stored_is_refused(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DrainList, "fits", False)
    rc, _, err = session.command("equilibrium drain add 3")
    assert rc == -errno.E2BIG
    assert "more than can be stored" in err
    assert not listed(session)["osds"]


@pytest.mark.parametrize("command", few(["drain ls", "status"], 1))
def test_an_osd_is_called_safe_as_long_as_it_reports_no_pg(session: Session, command: str) -> None:
    """Whatever the osdmap's epoch; what comes back to it shows with its next report."""
    def is_safe() -> bool:
        found = ask(session, command)
        return bool(found.get("drains", found)["safe_to_stop"])
    run(session, "equilibrium drain add 3", "sim run 2h", "osd set noout")
    assert is_safe()
    back = next(pgid for pgid, items in session.cluster.map.upmap_items.items() if 3 in dict(items))
    run(session, f"osd rm-pg-upmap-items {back}", "sim run 10s")
    assert not is_safe()
    run(session, "sim run 2h")
    assert is_safe()


@pytest.mark.parametrize("seconds", ["0s", "3m"])
def test_osds_without_crush_weight_are_not_left_to_take_data(session: Session,
                                                             seconds: str) -> None:
    run(session, "sim host add spare 2 1T", f"sim run {seconds}")
    spare = sorted(set(session.cluster.map.osds) - set(range(24)))
    run(session, *(f"sim osd crush-reweight {osd} 0" for osd in spare[:-1]))
    others = [f"osd.{osd}" for osd in session.cluster.map.osds if osd != spare[0]]
    refuses(session, f"drain add {' '.join(others)}", errno.EINVAL,
            "no OSD would be left to take data")


def test_what_a_drain_leads_to_is_what_eval_says_of_the_removal(session: Session) -> None:
    """Of what was drained before, too; a dry run changes nothing."""
    look(session)
    session.command("equilibrium eval --remove host3,osd.0")   # a job computes it
    removed = ask(session, "eval --remove host3,osd.0")
    run(session, "equilibrium drain add osd.0")
    for line in ("drain add host3 --dry-run", "drain add host3"):
        answer = ask(session, line)
        assert answer["state"] == ("dry-run" if "dry" in line else "executing")
        assert [osd["osd"] for osd in listed(session)["osds"]] == (
            [0] if "dry" in line else [0, 12, 13, 14, 15])
        forecast = answer["forecast"]
        for key in ("least_moved_bytes", "then_room_bytes"):   # osd.0 has begun to empty itself
            assert forecast[key] == pytest.approx(removed[key], rel=0.02)
        bounds, wanted = [{row["device_class"]: row["then_bound_utilization"]
                           for row in told["classes"]} for told in (forecast, removed)]
        assert bounds == pytest.approx(wanted, rel=1e-3)
        assert 3600 < forecast["expected_seconds"] < 86400
    said = run(session, "equilibrium drain add osd.6 --dry-run")
    assert "would be drained" in said
    assert "room" in said
    assert "full at best" in said
