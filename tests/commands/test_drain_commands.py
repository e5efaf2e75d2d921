"""`drain add`, `drain rm`, `drain ls`, in the simulated mgr."""
from __future__ import annotations

import errno
from typing import Any, Callable

import pytest

from equilibrium_mgr.drain.drain_list import DrainList
from mgr_stub.console.session import Session
from tests.commands.asking import ask, by_class, run


@pytest.fixture(name="session")
def fixture_session(open_session: Callable[..., Session]) -> Session:
    found = open_session(18)
    run(found, "config set mgr mgr/equilibrium/start_delay 0")
    return found


def listed(session: Session) -> Any:
    return ask(session, "drain ls")


def test_an_osd_is_emptied_and_safe_to_stop(session: Session) -> None:
    assert not listed(session)["osds"] and not listed(session)["safe_to_stop"]
    run(session, "equilibrium drain add 3")
    run(session, "sim run 3m")
    during = listed(session)
    assert during["osds"][0]["shards"] > 0 and during["eta_seconds"] > 0.0
    assert not during["safe_to_stop"]
    run(session, "sim run 2h")
    assert listed(session)["safe_to_stop"]
    assert listed(session)["osds"] == [{
        "osd": 3, "given_as": "osd.3", "shards": 0, "bytes": 0, "leaving_shards": 0, "stuck": [],
        "cooling_shards": 0, "safe_to_stop": True, "purge_moves_data": True}]
    assert "safe to stop" in run(session, "equilibrium status")
    assert "being drained" in run(session, "equilibrium explain osd.3")


def test_what_it_names_lets_a_purge_move_nothing(session: Session) -> None:
    """A purge changes mappings as a CRUSH weight of 0 does: nobody maps to the OSD from then on."""
    run(session, "sim backfill rate 1G", "equilibrium drain add 3 6", "sim run 2h",
        "equilibrium drain ls", "sim run 1m")
    named = [line.strip() for line in run(session, "equilibrium drain ls").split("\n")
             if line.startswith("  ceph ")]
    assert named == [f"ceph osd crush reweight osd.{osd} 0" for osd in (3, 6)]
    for line in named:
        run(session, line.replace("ceph osd crush reweight osd.", "sim osd crush-reweight "))
    run(session, "sim run 1m")
    assert session.cluster.peering or not session.simulation.backfill.idle()
    run(session, "sim run 4h", "equilibrium drain ls", "sim run 1m")
    assert listed(session)["safe_to_stop"] and session.simulation.backfill.idle()
    assert [row["purge_moves_data"] for row in listed(session)["osds"]] == [False, False]
    assert "purge" not in run(session, "equilibrium drain ls")
    assert not {3, 6} & {osd for pg in session.cluster.pgs.values() for osd in pg.raw or ()}


def test_what_holds_it_up_and_what_to_do_are_told_apart(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/start_delay 60", "equilibrium drain add 3")
    lines = run(session, "equilibrium drain ls").split("\n")
    assert lines[1].split() == ["osd.3", "osd.3"]   # nothing else is known yet
    [do] = [line for line in lines if line.startswith("do: ")]
    assert do.startswith("do: nothing; it ends by itself at")
    assert sum("ends by itself" in line for line in lines) == 1


def test_figures_of_now_are_of_drained_osds_too(session: Session) -> None:
    """osd.6 is the fullest."""
    run(session, "sim backfill rate 4M", "equilibrium drain add 6", "sim run 3m")
    fullest = session.simulation.cluster.utilizations()["hdd"][6]
    hdd = by_class(ask(session, "status"))["hdd"]
    assert (hdd["osds"], hdd["fullest_osd"]) == (18, 6)
    assert hdd["max_utilization"] == pytest.approx(fullest) and hdd["soon_fullest_osd"] == 5
    assert hdd["planned_fullest_osd"] == 5
    metrics = [line for line in run(session, "equilibrium metrics").split("\n")
               if "utilization_max_ratio" in line and "hdd" in line]
    assert float(metrics[-1].split(" ")[-1]) == pytest.approx(fullest)
    moved = by_class(ask(session, "history")["episodes"][-1])["hdd"]
    assert moved["max_before"] == pytest.approx(0.8503, abs=0.0001)
    histogram = by_class(ask(session, "eval"))["hdd"]["histogram"]
    assert sum(step["osds"] for step in histogram) == 18


def test_an_osd_that_is_let_go_gets_nothing_back_while_off(session: Session) -> None:
    run(session, "equilibrium drain add 3")
    run(session, "sim run 2h")
    assert "so nothing moves" in run(session, "equilibrium drain rm 3")
    sent = len(session.command_log)
    run(session, "sim run 1h")
    assert len(session.command_log) == sent and not listed(session)["osds"]


def test_off_says_that_the_drain_is_paused(session: Session) -> None:
    run(session, "equilibrium drain add host1")
    assert "is paused" in run(session, "equilibrium off")
    assert listed(session)["paused"]
    assert "paused by 'ceph equilibrium off'" in run(session, "equilibrium drain ls")
    run(session, "equilibrium on")
    assert not listed(session)["paused"]


def test_shards_without_data_are_counted_and_no_time_is_told(session: Session) -> None:
    pools = [pool["pool_name"] for pool in session.cluster.map.pools.values()]
    run(session, *(f"sim pool rm {name}" for name in pools),
        "sim pool create fresh pg_num=64 size=3", "sim run 1m",
        "config set mgr mgr/equilibrium/max_moves_per_round 1")
    osd = max(osd for up in session.cluster.map.up.values() for osd in up)
    run(session, f"equilibrium drain add {osd}", "sim run 2m")
    assert listed(session)["osds"][0]["shards"] > 1 and listed(session)["eta_seconds"] is None
    status = ask(session, "status")
    sent, planned = (status["execution"][key] for key in ("sent_moves", "planned_moves"))
    assert 0 < sent < planned and status["progress"]["eta_seconds"] is None
    assert f"  {sent} of {planned} shards sent; none of them has data\n" in run(
        session, "equilibrium status")
    run(session, "sim run 1d")
    assert listed(session)["osds"][0]["shards"] == 0


def test_a_purged_osd_leaves_the_list_with_a_note(session: Session) -> None:
    run(session, "equilibrium drain add 3")
    run(session, "sim run 2h")
    session.module.balancer.drains.observe(session.module.balancer.status.view.snapshot._replace(
        osds={}), {})
    session.module.balancer.publish()
    assert [note["note"] for note in listed(session)["notes"]] == [
        "osd.3 (osd.3) no longer exists and has left the list"]


@pytest.mark.parametrize("line, code", [
    ("drain add osd.999", errno.ENOENT), ("drain add nowhere", errno.ENOENT),
    ("drain rm 3", errno.ENOENT), ("drain rm nowhere", errno.ENOENT),
    ("drain ls --format xml", errno.EINVAL)])
def test_wrong_names_are_told_in_a_sentence(session: Session, line: str, code: int) -> None:
    rc, out, err = session.command(f"equilibrium {line}")
    assert (rc, out) == (-code, "") and err and "Traceback" not in err


def test_an_osd_without_other_failure_domains_says_why(session: Session) -> None:
    """All hosts but two: three copies have no place."""
    hosts = sorted({osd.host for osd in
                    session.module.gateway.snapshot().osds.values()})
    run(session, "equilibrium drain add " + " ".join(hosts[2:]))
    run(session, "sim backfill rate 1G", "sim run 40m")
    found = listed(session)
    codes = {stuck["code"] for row in found["osds"] for stuck in row["stuck"]}
    assert codes and codes <= {"failure_domain", "fill_limit"}
    assert "cannot leave" in run(session, "equilibrium drain ls")
    osd = next(row["osd"] for row in found["osds"] if row["stuck"])
    explained = ask(session, f"explain osd.{osd}")
    assert explained["reason_code"] == "cannot_leave", explained
    assert "cannot leave" in run(session, f"equilibrium explain osd.{osd}")
    assert "stuck" in run(session, "equilibrium status")


def test_history_says_who_has_ended_a_drain(session: Session) -> None:
    run(session, "sim backfill rate 4M", "equilibrium drain add 3", "sim run 5m",
        "equilibrium drain rm 3", "sim run 2m")
    last = ask(session, "history")["episodes"][-1]
    assert last["outcome"] == "stopped" and "drain rm" in str(last), last


@pytest.mark.parametrize("seconds", ["0s", "3m"])
def test_a_drain_of_all_osds_is_refused(session: Session, seconds: str) -> None:
    run(session, f"sim run {seconds}")
    rc, out, err = session.command("equilibrium drain add default")
    assert (rc, out) == (-errno.EINVAL, "") and "no OSD would be left to take data" in err
    assert not listed(session)["osds"]


@pytest.mark.parametrize("seconds", ["0s", "3m"])
def test_osds_without_crush_weight_are_not_left_to_take_data(session: Session,
                                                             seconds: str) -> None:
    run(session, "sim host add spare 2 1T", f"sim run {seconds}")
    spare = sorted(set(session.cluster.map.osds) - set(range(24)))
    run(session, *(f"sim osd crush-reweight {osd} 0" for osd in spare[:-1]))
    others = [f"osd.{osd}" for osd in session.cluster.map.osds if osd != spare[0]]
    rc, out, err = session.command(f"equilibrium drain add {' '.join(others)}")
    assert (rc, out) == (-errno.EINVAL, "") and "no OSD would be left to take data" in err


def test_a_drain_of_all_osds_of_a_rule_is_refused(session: Session) -> None:
    """Also where those that are drained already are the rest of them."""
    run(session, "sim run 3m")
    osds = session.module.gateway.snapshot().osds.values()
    ssds = sorted(str(osd.id) for osd in osds if osd.device_class == "ssd")
    run(session, f"equilibrium drain add {' '.join(ssds[:-1])}")
    rc, _, err = session.command(f"equilibrium drain add {ssds[-1]}")
    assert rc == -errno.EINVAL and "of pools with the CRUSH rule" in err
    assert len(listed(session)["osds"]) == len(ssds) - 1


def test_a_list_that_cannot_be_stored_is_refused(
        session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DrainList, "fits", False)
    rc, _, err = session.command("equilibrium drain add 3")
    assert rc == -errno.E2BIG and "more than can be stored" in err
    assert not listed(session)["osds"]


def test_on_names_the_drains_that_go_on(session: Session) -> None:
    run(session, "equilibrium drain add 3", "equilibrium off")
    assert ask(session, "on")["resumed_drains"] == [3]
    run(session, "equilibrium off")
    assert "the drain of osd.3 goes on" in run(session, "equilibrium on")
    assert ask(session, "on")["resumed_drains"] == []


def test_a_new_disk_under_the_same_id_is_not_drained(session: Session) -> None:
    run(session, "equilibrium drain add 3", "sim run 10m", "sim osd lose 3", "sim osd up 3",
        "sim osd in 3", "sim run 10m")
    assert not listed(session)["osds"]
    assert "has another disk now" in listed(session)["notes"][-1]["note"]


@pytest.mark.parametrize("line, code, cure", [
    ("osd set norebalance", "flag", "'ceph osd unset norebalance'"),
    ("balancer on", "conflict", "'ceph balancer off'")])
def test_what_holds_all_drains_up_comes_first(session: Session, line: str, code: str,
                                              cure: str) -> None:
    run(session, "sim run 3m", "equilibrium drain add 3", line, "sim run 3m")
    data, status = listed(session), ask(session, "status")
    assert data["reason"] in status["reason"] and data["action"] == status["action"]
    assert data["action"] == cure and data["eta_seconds"] is None
    screen = run(session, "equilibrium drain ls")
    assert screen.index(cure) < screen.index("osd.3: ")
    explained = ask(session, "explain osd.3")
    assert (explained["reason_code"], explained["action"]) == (code, cure)


def test_the_time_left_is_that_of_status(session: Session) -> None:
    run(session, "sim backfill rate 8M", "equilibrium drain add 3", "sim run 20m")
    eta = ask(session, "status")["progress"]["eta_seconds"]
    assert eta is not None and listed(session)["eta_seconds"] == pytest.approx(eta, rel=0.05)
    run(session, "equilibrium off")
    assert listed(session)["eta_seconds"] is None


def test_an_option_that_holds_a_drain_is_named_with_its_cure(session: Session) -> None:
    host = session.module.gateway.snapshot().osds[3].host
    run(session, f"config set mgr mgr/equilibrium/to_buckets {host}", "equilibrium drain add 3",
        "sim run 1h")
    stuck = {row["code"]: row["action"] for row in listed(session)["osds"][0]["stuck"]}
    cure = "'ceph config rm mgr mgr/equilibrium/to_buckets' lets shards move there"
    assert stuck["osd_excluded"] == cure
    assert cure in ask(session, "explain osd.3")["action"]


@pytest.mark.parametrize("command", ["drain ls", "status"])
def test_an_osd_is_called_safe_as_long_as_it_reports_no_pg(session: Session, command: str) -> None:
    """Whatever the osdmap's epoch; what comes back to it shows with its next report."""
    def is_safe() -> bool:
        found = ask(session, command)
        return bool(found.get("drains", found)["safe_to_stop"])
    run(session, "equilibrium drain add 3", "sim run 2h", "osd set noout")
    assert is_safe()
    back = next(pgid for pgid, items in session.cluster.map.upmap_items.items()
                if any(source == 3 for source, _ in items))
    run(session, f"osd rm-pg-upmap-items {back}", "sim run 10s")
    assert not is_safe()
    run(session, "sim run 2h")
    assert is_safe()
