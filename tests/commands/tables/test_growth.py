"""`growth`: what grows, and that OSDs are nearfull when it says so."""

from __future__ import annotations

import errno

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, by, by_class, optimize, refused, run
from tests.support.units import GIB


#: A round every two hours: fewer of them to simulate.
_SELDOM = "config set mgr mgr/equilibrium/sleep_interval 7200"


@pytest.fixture
def growing(session: Session) -> Session:
    """Clients write 240 GiB a day into `vms`, of the demo once it is balanced, for 30 hours."""
    optimize(session)
    run(session, "balancer off", "equilibrium execute p", "sim run 4h", "sim grow vms 10G/1h",
        _SELDOM, "sim run 30h")
    session.command("equilibrium eval")
    run(session, "sim run 1s")
    return session


def test_without_history_it_says_what_is_missing(session: Session) -> None:
    answer = ask(session, "growth")
    assert not answer["is_enough"] and answer["samples"] == 1
    assert {row["trend"] for row in answer["pools"] + answer["classes"]} == {"unknown"}
    assert "6 over 1d00h are needed" in " ".join(run(session, "equilibrium growth").split())
    assert ask(session, "status")["growth"] == []


def test_a_day_of_history_tells_what_grows(growing: Session) -> None:
    answer = ask(growing, "growth")
    pools, hdd = by("name", answer["pools"]), by("device_class", answer["classes"])["hdd"]
    assert answer["is_enough"] and pools["vms"]["trend"] == "growing"
    assert pools["vms"]["growth_bytes_per_day"] == pytest.approx(240 * GIB, rel=0.1)
    assert {row["trend"] for name, row in pools.items() if name != "vms"} <= {"steady", "growing"}
    assert pools["backup"]["growth_bytes_per_day"] == 0.0
    assert hdd["growth_bytes_per_day"] == pytest.approx(3 * 240 * GIB, rel=0.2)
    assert hdd["nearfull_seconds"] <= hdd["best_nearfull_seconds"]
    assert hdd["planned_nearfull_seconds"] is None


def test_days_are_counted_from_now_and_not_from_the_last_look(growing: Session) -> None:
    first = by("device_class", ask(growing, "growth")["classes"])["hdd"]
    run(growing, "sim run 20h")
    answer = ask(growing, "growth")
    assert answer["snapshot_age_seconds"] > 19 * 3600.0   # off: nobody has looked since
    second = by("device_class", answer["classes"])["hdd"]
    run(growing, "sim run 20h")
    third = ask(growing, "status")["growth"][0]
    for key in ("nearfull_seconds", "best_nearfull_seconds"):
        assert first[key] - second[key] == pytest.approx(20 * 3600.0, rel=0.2)
        assert second[key] - third[key] == pytest.approx(20 * 3600.0, rel=0.2)


@pytest.mark.full
def test_the_first_osd_is_nearfull_when_it_was_foretold(growing: Session) -> None:
    hdd = by("device_class", ask(growing, "growth")["classes"])["hdd"]
    osd, days = hdd["first_osd"], hdd["nearfull_seconds"] / 86_400.0
    assert days > 5.0
    run(growing, f"sim run {int(days * 24)}h")
    usage = {number: ratio for row in growing.simulation.cluster.utilizations().values()
             for number, ratio in row.items()}
    assert usage[osd] == pytest.approx(0.85, abs=0.01)
    hdds = [number for number in usage if growing.simulation.cluster.crush.classes[number] == "hdd"]
    assert max(usage[number] for number in hdds) == pytest.approx(0.85, abs=0.015)


def test_a_plan_and_pg_num(session: Session) -> None:
    run(session, _SELDOM, "sim grow vms 2G/1h", "sim run 30h", "equilibrium optimize p")
    session.command("equilibrium eval")
    run(session, "sim run 1s")
    planned = ask(session, "growth p")
    hdd = by("device_class", planned["classes"])["hdd"]
    planned_seconds, best = hdd["planned_nearfull_seconds"], hdd["best_nearfull_seconds"]
    assert hdd["nearfull_seconds"] < planned_seconds <= 1.02 * best
    fast = by("name", planned["pools"])["fast"]
    assert fast["shard_ratio"] > 0.02 >= fast["advised_shard_ratio"]
    text = " ".join(run(session, "equilibrium growth p").split())
    assert f"pg_num {fast['advised_pg_num']} of pool fast (now {fast['pg_num']})" in text


def test_status_and_metrics_warn_in_time(session: Session) -> None:
    run(session, _SELDOM, "sim grow vms 2G/1h", "sim run 30h")
    session.command("equilibrium eval")
    run(session, "sim run 1s")
    row = by_class({"classes": ask(session, "status")["growth"]})["hdd"]
    assert row["nearfull_seconds"] == 0.0   # osd.6 is at 85.03 % from the beginning
    text = " ".join(run(session, "equilibrium status").split())
    assert "growth: class hdd grows by" in text and "is nearfull now" in text
    metrics = run(session, "equilibrium metrics")
    assert 'ceph_equilibrium_nearfull_seconds{device_class="hdd"} 0' in metrics
    assert 'ceph_equilibrium_growth_bytes_per_second{device_class="hdd"}' in metrics


@pytest.mark.full
def test_the_next_mgr_goes_on(growing: Session) -> None:
    before = by("name", ask(growing, "growth")["pools"])["vms"]
    run(growing, "sim run 1d", "sim mgr fail", "sim run 5m")
    growing.command("equilibrium eval")
    run(growing, "sim run 1m")
    after = by("name", ask(growing, "growth")["pools"])["vms"]
    assert after["trend"] == "growing"
    assert after["growth_bytes_per_day"] == pytest.approx(before["growth_bytes_per_day"], rel=0.1)


def test_the_age_of_the_look_is_told_and_a_new_one_started(session: Session) -> None:
    """What is stored and used is of now, days are of the look."""
    run(session, "sim run 2d", "sim write vms 500G")
    answer, text = ask(session, "growth"), run(session, "equilibrium growth")
    assert answer["snapshot_age_seconds"] > 86_400.0 and answer["look_started"]
    assert f"placement of osdmap e{answer['osdmap_epoch']}, 0s old\n" in text
    stored = {pool["id"]: pool["stats"]["stored"] for pool in session.mgr.get("df")["pools"]}
    assert {row["id"]: row["stored"] for row in answer["pools"]} == stored
    run(session, "sim run 2d")
    assert "2d00h old; a new look has been started" in run(session, "equilibrium growth")


def test_what_cannot_be_asked(session: Session) -> None:
    assert refused(session, "equilibrium growth nosuch")[0] == -errno.ENOENT


def test_a_new_mgr_takes_no_sample_before_all_have_reported(session: Session) -> None:
    """What some OSDs alone report is no shrinking cluster."""
    run(session, "sim stats gap 10m 1", "sim failover", "sim run 5m")
    assert session.module.growth_recorder.growth.samples == 0
    run(session, "sim run 10m")
    assert session.module.growth_recorder.growth.samples == 1
