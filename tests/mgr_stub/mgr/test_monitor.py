"""Epochs, the key-value store and the configuration of the simulated monitor."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from tests.support.clusters import stub_states as clusters


def six_pgs() -> Dict[str, Any]:
    return clusters.state([clusters.pg(f"2.{n}", [0, 1, 2]) for n in range(6)])


def upmap(pgid: str, *ids: int) -> Dict[str, Any]:
    return {"prefix": "osd pg-upmap-items", "format": "json", "pgid": pgid, "id": list(ids)}


def test_a_batch_is_one_epoch(make_session: Callable[..., Any]) -> None:
    session = make_session(six_pgs())
    epoch = session.cluster.map.epoch
    results = session.module.send(*[upmap(f"2.{n}", 2, 4) for n in range(6)])
    assert session.cluster.map.epoch == epoch         # the epoch is made by a wait
    assert not results[0].ev.is_set()
    assert results[0].ev.wait(10)
    assert session.cluster.map.epoch == epoch + 1
    assert all(result.ev.is_set() and result.r == 0 for result in results)
    assert results[5].outs == "set 2.5 pg_upmap_items mapping to [2->4]"


def test_second_command_for_a_pg_makes_the_next_epoch(make_session: Callable[..., Any]) -> None:
    session = make_session(six_pgs())
    epoch = session.cluster.map.epoch
    first, second = session.module.send(upmap("2.0", 2, 4), upmap("2.0", 2, 5))
    second.wait()
    assert (first.r, second.r) == (0, 0)
    assert session.cluster.map.epoch == epoch + 2
    assert session.cluster.map.up["2.0"] == (0, 1, 5)


def test_pool_gone_between_sending_and_the_epoch(make_session: Callable[..., Any]) -> None:
    session = make_session(six_pgs())
    results = session.module.send(upmap("2.0", 2, 4), {"prefix": "osd pool rm", "pool": "rep"})
    assert [result.wait()[0] for result in results] == [0, 0]
    assert session.cluster.map.upmap_items == {}
    assert session.cluster.pgs == {}


def test_too_large_values_are_lost_at_a_failover(make_session: Callable[..., Any]) -> None:
    session = make_session(six_pgs())
    module = session.module
    module.set_store("plan", "old")
    module.set_store("plan", "x" * 65537)             # no exception
    module.set_store("fits", "y" * 65536)
    module.set_store("umlauts", "ü" * 40000)          # the limit is in bytes, not characters
    assert module.get_store("plan") == "x" * 65537
    assert set(module.get_store_prefix("p")) == {"plan"}
    session.command("sim failover")
    assert module.closed and session.module is not module
    assert session.module.get_store("plan") == "old"
    assert session.module.get_store("fits") == "y" * 65536
    assert session.module.get_store("umlauts") is None
    assert session.module.get_store("umlauts", "no") == "no"
    session.module.set_store("plan", None)
    assert session.module.get_store("plan") is None


def test_core_options(make_session: Callable[..., Any]) -> None:
    session = make_session(six_pgs())
    module = session.module
    assert module.get_ceph_option("target_max_misplaced_ratio") == 0.05
    session.command("config set mgr target_max_misplaced_ratio 0.2")
    assert module.get_ceph_option("target_max_misplaced_ratio") == 0.2
    session.command("config set osd osd_max_backfills 3")
    session.command("config set osd.1 osd_max_backfills 2")
    core = session.mgr.config.core
    assert core("osd.0", "osd_max_backfills") == 3
    assert core("osd.1", "osd_max_backfills") == 2
    with pytest.raises(KeyError):
        module.get_ceph_option("no_such_option")
    assert session.command("config set osd osd_max_backfills many")[0] == -22
    assert session.command("config set mgr no_such_option 1")[0] == -22
    assert session.command("config get mgr target_max_misplaced_ratio") == (0, "0.2", "")
    session.command("config rm mgr target_max_misplaced_ratio")
    assert module.get_ceph_option("target_max_misplaced_ratio") == 0.05


def test_formats_of_the_releases(make_session: Callable[..., Any]) -> None:
    old = make_session(six_pgs(), release=16).mgr.get_osdmap()
    middle = make_session(six_pgs(), release=18).mgr.get_osdmap()
    new = make_session(six_pgs(), release=20).mgr.get_osdmap()
    assert "pg_upmap_primaries" not in old.dump()
    assert middle.dump()["pg_upmap_primaries"] == []
    assert "read_balance" not in old.dump()["pools"][0]
    assert "score_type" not in middle.dump()["pools"][0]["read_balance"]
    assert "score_type" in new.dump()["pools"][0]["read_balance"]
    assert "ruleset" in old.get_crush().dump()["rules"][0]
    assert "ruleset" not in middle.get_crush().dump()["rules"][0]
