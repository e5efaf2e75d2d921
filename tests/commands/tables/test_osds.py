"""`osds`: the figures of `ceph osd df`, and what is to come."""
from __future__ import annotations

import errno
import json
from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, refused, run, until_all_have_peered


def _osds(session: Session, line: str = "osds") -> Dict[int, Dict[str, Any]]:
    return {osd["id"]: osd for osd in ask(session, line)["osds"]}


def _osd_df(session: Session) -> Dict[int, Dict[str, Any]]:
    """Sizes as the mgr has them: the simulated command tells what no OSD has reported yet."""
    reported = {stats["osd"]: stats for stats in session.mgr.get("osd_stats")["osd_stats"]}
    nodes = json.loads(run(session, "osd df --format json"))["nodes"]
    return {node["id"]: {**node, "kb": reported[node["id"]]["kb"],
                         "kb_used": reported[node["id"]]["kb_used"]} for node in nodes}


def _same(session: Session) -> None:
    shown = _osds(session)
    for number, node in _osd_df(session).items():
        osd = shown[number]
        if not node["kb"]:
            assert osd["size_bytes"] is None or not osd["in"]
            continue
        assert osd["size_bytes"] >> 10 == node["kb"]
        assert osd["used_bytes"] >> 10 == pytest.approx(node["kb_used"], rel=1e-5)
        assert osd["utilization"] == pytest.approx(node["kb_used"] / node["kb"], abs=5e-5)
        assert osd["pgs"] == node["pgs"], number
        assert osd["device_class"] == node["device_class"]


def test_figures_of_now_are_those_of_ceph_osd_df(any_session: Session) -> None:
    _same(any_session)


def test_figures_of_now_are_those_of_ceph_osd_df_while_data_moves(
        open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    run(session, "equilibrium on", "sim run 12m")
    until_all_have_peered(session)
    while ask(session, "osds")["snapshot_age_seconds"] > 2.0:   # PGs are counted then
        run(session, "sim run 2s")
    _same(session)
    assert any(osd["moving_in"] for osd in _osds(session).values())


def test_in_and_out_are_the_shards_of_moves_and_of_the_plan(
        open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    run(session, "equilibrium on", "sim run 4m")
    execution = session.module.balancer.execution
    shown = _osds(session)
    assert execution is not None
    waiting = sum(change.shards for change in execution.wanted)
    assert waiting == sum(osd["waiting_in"] for osd in shown.values()) == sum(
        osd["waiting_out"] for osd in shown.values())
    movements = session.module.balancer.status.view.movements
    assert len(movements) == sum(osd["moving_in"] for osd in shown.values()) > 0


def test_soon_and_planned_are_what_comes(open_session: Callable[..., Session]) -> None:
    """%PLAN of the first minutes is the utilization at the end, %SOON that after `off`."""
    session = open_session(18)
    run(session, "equilibrium on", "sim run 10m")
    planned = {number: osd["planned_utilization"] for number, osd in _osds(session).items()}
    execution = session.module.balancer.execution
    while session.module.balancer.execution is execution:
        run(session, "sim run 10m")
    run(session, "equilibrium off", "sim run idle", "equilibrium osds", "sim run 1s")
    now = {number: osd["utilization"] for number, osd in _osds(session).items()}
    for number, utilization in planned.items():
        assert now[number] == pytest.approx(utilization, abs=0.01)


def test_osds_that_are_out_down_or_reweighted_say_so(session: Session) -> None:
    run(session, "sim osd out 1", "sim osd reweight 2 0.5", "sim osd down 4", "sim run 61s",
        "equilibrium osds", "sim run 1s")
    shown = _osds(session)
    assert shown[1]["status"] == ["out"] and shown[4]["status"] == ["down"]
    assert shown[2]["status"] == ["reweight 0.5000"] and shown[0]["status"] == []
    text = run(session, "equilibrium osds")
    for line in ("out: osd.1", "down: osd.4", "reweight 0.5000: osd.2"):
        assert line in text.split("\n")


def test_sort_limit_class_and_host(session: Session) -> None:
    use = [osd["utilization"] for osd in ask(session, "osds")["osds"]]
    assert use == sorted(use, reverse=True) and len(use) == 24
    assert [osd["id"] for osd in ask(session, "osds --sort id --limit 2")["osds"]] == [0, 1]
    hosts = [osd["host"] for osd in ask(session, "osds --sort=-host")["osds"]]
    assert hosts == sorted(hosts, reverse=True)
    assert {osd["device_class"] for osd in ask(session, "osds --device-class ssd")["osds"]} == {
        "ssd"}
    some = ask(session, f"osds --host {hosts[0]}")["osds"]
    assert some and {osd["host"] for osd in some} == {hosts[0]}
    assert refused(session, "equilibrium osds --sort size")[0] == -errno.EINVAL
    assert refused(session, "equilibrium osds --host nowhere")[0] == -errno.ENOENT
    assert refused(session, "equilibrium osds --device-class tape")[0] == -errno.ENOENT
    assert refused(session, "equilibrium osds --limit 0")[0] == -errno.EINVAL


def test_what_is_on_osds_that_are_down_is_still_there(session: Session) -> None:
    """They count PGs that the map gives to nobody, and come back with them."""
    run(session, "osd set noout", "sim osd down 0 1", "sim run 3m")
    for osd in (0, 1):
        shown = _osds(session)[osd]
        assert shown["soon_utilization"] == pytest.approx(shown["utilization"], abs=0.01)
        assert "deleting" not in run(session, f"equilibrium explain osd.{osd}")
