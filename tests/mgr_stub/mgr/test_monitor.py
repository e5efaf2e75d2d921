"""Epochs, the key-value store and the configuration of the simulated monitor."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from tests.mgr_stub.simulation.test_faults import upmap
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run


def six_pgs() -> Dict[str, Any]:
    return clusters.state([clusters.pg(f"2.{n}", [0, 1, 2]) for n in range(6)])


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(six_pgs())


@pytest.fixture
def module(session: Any) -> Any:
    return session.module


def test_a_batch_is_one_epoch(session: Any, module: Any) -> None:
    epoch = session.cluster.map.epoch
    results = module.send(*[upmap(f"2.{n}", 2, 4) for n in range(6)])
    assert session.cluster.map.epoch == epoch         # the epoch is made by a wait
    assert not results[0].ev.is_set()
    assert results[0].ev.wait(10)
    assert session.cluster.map.epoch == epoch + 1
    for result in results:
        assert result.ev.is_set() and result.r == 0
    assert results[5].outs == "set 2.5 pg_upmap_items mapping to [2->4]"


def test_second_command_for_a_pg_makes_the_next_epoch(session: Any, module: Any) -> None:
    epoch = session.cluster.map.epoch
    first, second = module.send(upmap("2.0", 2, 4), upmap("2.0", 2, 5))
    second.wait()
    assert (first.r, second.r) == (0, 0)
    assert session.cluster.map.epoch == epoch + 2
    assert session.cluster.map.up["2.0"] == (0, 1, 5)


def test_pool_gone_between_sending_and_the_epoch(session: Any, module: Any) -> None:
    for result in module.send(upmap("2.0", 2, 4), {"prefix": "osd pool rm", "pool": "rep"}):
        assert result.wait()[0] == 0
    assert session.cluster.map.upmap_items == {}
    assert session.cluster.pgs == {}
    with pytest.raises(SystemError):
        session.mgr.get_osdmap().map_pool_pgs_up(2)


def test_too_large_values_are_lost_at_a_failover(session: Any, module: Any) -> None:
    large, fits = "x" * 65537, "y" * 65536
    module.set_store("plan", "old")
    module.set_store("plan", large)                   # no exception
    module.set_store("fits", fits)
    module.set_store("umlauts", "ü" * 40000)          # the limit is in bytes, not characters
    assert module.get_store("plan") == large
    assert set(module.get_store_prefix("p")) == {"plan"}
    run(session, "sim failover")
    later = session.module
    assert module.closed and later is not module
    assert later.get_store("plan") == "old"
    assert later.get_store("fits") == fits
    assert later.get_store("umlauts") is None
    assert later.get_store("umlauts", "no") == "no"
    later.set_store("plan", None)
    assert later.get_store("plan") is None


def test_core_options(session: Any, module: Any) -> None:
    name = "target_max_misplaced_ratio"
    assert module.get_ceph_option(name) == 0.05
    run(session, f"config set mgr {name} 0.2", "config set osd osd_max_backfills 3",
        "config set osd.1 osd_max_backfills 2")
    assert module.get_ceph_option(name) == 0.2
    core = session.mgr.config.core
    assert core("osd.0", "osd_max_backfills") == 3
    assert core("osd.1", "osd_max_backfills") == 2
    with pytest.raises(KeyError):
        module.get_ceph_option("no_such_option")
    assert session.command("config set osd osd_max_backfills many")[0] == -22
    assert session.command("config set mgr no_such_option 1")[0] == -22
    assert run(session, f"config get mgr {name}", f"config rm mgr {name}") == ["0.2", ""]
    assert module.get_ceph_option(name) == 0.05


def test_formats_of_ceph_18(make_session: Callable[..., Any]) -> None:
    """Those of 16 and 20 are compared with real ones in test_recorded_streams."""
    osdmap = make_session(six_pgs(), release=18).mgr.get_osdmap()
    dump = osdmap.dump()
    assert dump["pg_upmap_primaries"] == []
    assert "score_type" not in dump["pools"][0]["read_balance"]
    assert "ruleset" not in osdmap.get_crush().dump()["rules"][0]
    old = make_session(six_pgs(), release=16).mgr.get_osdmap()
    assert "pg_upmap_primaries" not in old.dump()   # empty in the recorded ones
