"""`eval --fail` and `eval --worst-failure`, and that the simulated cluster ends as they say."""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, by, by_class, optimize, refused, run
from tests.support.few import few

#: Points that the prediction may be off by, of each OSD's size.
_HALF_A_POINT = 0.005
_OTHER_RATIOS = {"full_ratio": 1.5, "backfillfull_ratio": 1.4, "nearfull_ratio": 1.3}


@pytest.fixture
def roomy(open_session: Callable[..., Session], demo_state: Dict[str, Any]) -> Session:
    """The demo with so much space below backfillfull_ratio that all can be recovered."""
    demo_state["osd_dump"].update(_OTHER_RATIOS)
    session = open_session(18, demo_state)
    run(session, "sim run 1s")
    session.command("equilibrium eval")
    return session


def utilizations(session: Session) -> Dict[int, float]:
    """OSD id → used ÷ size, as the simulated devices have it."""
    return {osd: usage for row in session.simulation.cluster.utilizations().values()
            for osd, usage in row.items()}


def check_ends_as_predicted(session: Session, predicted: Dict[str, Any]) -> None:
    """Marks the OSDs out and holds the end against the prediction, OSD by OSD."""
    assert predicted["backfill_toofull_pgs"] == 0 and predicted["lost_pgs"] == 0
    # in one epoch: the demo's mapping is not CRUSH's, so what it leads to depends on the way there
    run(session, "sim osd out " + " ".join(map(str, predicted["failure"]["osds"])),
        "sim run 2d")
    ended = utilizations(session)
    assert {osd for osd in ended if session.simulation.cluster.map.reweight(osd) > 0} == {
        row["osd"] for row in predicted["osds"]}
    for row in predicted["osds"]:
        assert row["utilization"] == pytest.approx(ended[row["osd"]], abs=_HALF_A_POINT), row
    short = sum(1 for pgid, up in session.simulation.cluster.map.up.items()
                if len([osd for osd in up if osd < 0x7FFFFFFF])
                < session.simulation.cluster.map.pools[int(pgid.split(".")[0])]["size"])
    assert short == predicted["undersized_pgs"]


@pytest.mark.parametrize("what", few(["host1", "osd.2,osd.11"], 1))
def test_the_cluster_ends_as_predicted(roomy: Session, what: str) -> None:
    what = first_host(roomy) if what == "host1" else what
    predicted = ask(roomy, f"eval --fail {what}")
    assert predicted["copied_bytes"] > 0
    before = utilizations(roomy)
    moved = [row["osd"] for row in predicted["osds"]
             if abs(row["utilization"] - before[row["osd"]]) > _HALF_A_POINT]
    assert len(moved) > 3   # the failure shows
    check_ends_as_predicted(roomy, predicted)


def first_host(session: Session) -> str:
    """A host's name."""
    return sorted({osd.host for osd in session.module.gateway.snapshot().osds.values()})[0]


@pytest.mark.full
def test_what_moves_counts_as_arrived_before_the_failure(session: Session) -> None:
    optimize(session)
    run(session, "balancer off", "equilibrium execute p", "sim run 3m", "equilibrium eval",
        "sim run 10s")
    hdd = by_class(ask(session, "eval --fail osd.0"))["hdd"]
    soon = by_class(ask(session, "status"))["hdd"]
    assert hdd["max_utilization"] == pytest.approx(soon["soon_max_utilization"], abs=0.001)
    assert hdd["max_utilization"] < soon["max_utilization"] - 0.001
    plain = run(session, "equilibrium eval --fail osd.0")
    assert "with all that moves now arrived" in " ".join(plain.split())
    assert "%SOON" in plain and "%MAX" not in plain
    assert "%PLAN" in run(session, "equilibrium eval p --fail osd.0")


def test_the_worst_failure_is_the_worst_of_all(session: Session) -> None:
    data = ask(session, "eval --worst-failure")
    hosts = by("type", data["types"])["host"]
    every = {name: ask(session, f"eval --fail {name}")["max_utilization"]
             for name in {osd.host for osd in session.module.gateway.snapshot().osds.values()}}
    assert hosts["failures"] == len(every)
    assert data["worst"] == hosts["worst"][0]["name"] == max(every, key=lambda name: every[name])
    assert [row["max_utilization"] for row in hosts["worst"]] == sorted(
        every.values(), reverse=True)[:len(hosts["worst"])]
    assert str(hosts["worst"][0]["name"]) in run(session, "equilibrium eval --worst-failure")


@pytest.mark.parametrize("line, code", [
    ("eval --fail nowhere", errno.ENOENT), ("eval --fail osd.999", errno.ENOENT),
    ("eval --fail ''", errno.ENOENT), ("eval --fail default", errno.EINVAL),
    ("eval nosuch --fail 1", errno.ENOENT), ("eval vms --worst-failure", errno.ENOENT),
    ("eval --fail 1 --worst-failure", errno.EINVAL)])
def test_what_cannot_be_asked(session: Session, line: str, code: int) -> None:
    assert refused(session, f"equilibrium {line}")[0] == -code


def test_an_osd_that_is_out_cannot_fail(session: Session) -> None:
    run(session, "sim osd out 4", "sim run 2m", "equilibrium eval", "sim run 1s")
    assert "is in" in refused(session, "equilibrium eval --fail 4")[1]
