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
    assert {osd["device_class"] for osd in ask(session, "osds ssd")["osds"]} == {
        "ssd"}
    some = ask(session, f"osds {hosts[0]}")["osds"]
    assert some and {osd["host"] for osd in some} == {hosts[0]}
    more = ask(session, f"osds {hosts[0]} {hosts[-1]} ssd 3 osd.4 --sort id")["osds"]
    assert [osd["id"] for osd in more] == [
        osd["id"] for osd in ask(session, "osds --sort id")["osds"]
        if osd["host"] in (hosts[0], hosts[-1]) or osd["device_class"] == "ssd"
        or osd["id"] in (3, 4)]
    assert refused(session, "equilibrium osds --sort size")[0] == -errno.EINVAL
    for name in ("nowhere", "osd.77", "3 nowhere", "''"):
        assert refused(session, f"equilibrium osds {name}")[0] == -errno.ENOENT
    assert refused(session, "equilibrium osds --limit 0")[0] == -errno.EINVAL


def test_what_is_on_osds_that_are_down_is_still_there(session: Session) -> None:
    """They count PGs that the map gives to nobody, and come back with them."""
    run(session, "osd set noout", "sim osd down 0 1", "sim run 3m")
    for osd in (0, 1):
        shown = _osds(session)[osd]
        assert shown["soon_utilization"] == pytest.approx(shown["utilization"], abs=0.01)
        assert "deleting" not in run(session, f"equilibrium explain osd.{osd}")


def test_moves_of_a_host_and_of_each_osd(session: Session) -> None:
    """What comes to OSDs and leaves them is what `moves` has, shard by shard."""
    run(session, "equilibrium on", "sim run 10m")
    shards = ask(session, "moves --limit 1000")["moves"]
    rows = ask(session, "moves --by-osd")["osds"]
    assert [row["in_bytes"] for row in rows] == sorted(
        [row["in_bytes"] for row in rows], reverse=True)
    for row in rows:
        for end, key in (("target", "in"), ("source", "out")):
            left = [shard["left_bytes"] for shard in shards if shard[end] == row["osd"]]
            assert (row[f"{key}_shards"], row[f"{key}_bytes"]) == (len(left), sum(left)), row
        if row["bytes_per_second"] and row["in_shards"]:
            assert row["eta_seconds"] * row["bytes_per_second"] == pytest.approx(row["in_bytes"])
    assert any(row["eta_seconds"] for row in rows)
    assert {row["osd"] for row in rows} == {
        osd for shard in shards for osd in (shard["source"], shard["target"])}
    on_host = {osd["id"] for osd in ask(session, "osds host3")["osds"]}
    of_host = ask(session, "moves host3 --limit 1000")["moves"]
    assert of_host == [shard for shard in shards
                       if on_host & {shard["source"], shard["target"]}] != shards
    assert f"osd.{rows[0]['osd']} " in run(session, "equilibrium moves --by-osd")


def test_a_host_is_explained_by_its_fullest_osd(session: Session) -> None:
    rows = ask(session, "osds host3")["osds"]
    said = run(session, "equilibrium explain host3")
    assert f"host3 has {len(rows)} OSDs; osd.{rows[0]['id']} is the fullest:" in said
    assert ask(session, "explain host3") == ask(session, f"explain osd.{rows[0]['id']}")
