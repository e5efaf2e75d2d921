"""`osds`: the figures of `ceph osd df`, and what is to come."""
from __future__ import annotations

import errno
from typing import Any, Dict

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, refused, run


def _osds(session: Session, line: str = "osds") -> Dict[int, Dict[str, Any]]:
    return {osd["id"]: osd for osd in ask(session, line)["osds"]}


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
