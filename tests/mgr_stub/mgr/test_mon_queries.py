"""Read-only monitor commands and small structures of the mgr, as in 16 and 20."""

from __future__ import annotations

import json
from typing import Any, Dict, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr.api import CommandResult
from tests.support.clusters.crush_cluster import run


@pytest.fixture(name="session", params=[16, 20])
def open_session(request: Any) -> Session:
    return Session.from_state(None, request.param)


def ask(session: Session, prefix: str) -> Tuple[bool, str]:
    result = CommandResult("")
    session.module.send_command(result, "mon", "", json.dumps({"prefix": prefix}), "")
    return result.ev.wait(1.0), result.outb


def osds_of(tree: Dict[str, Any]) -> Dict[int, Any]:
    """The tree's OSDs; of names with ~ there are none."""
    for node in tree["nodes"]:
        assert "~" not in node["name"]
    return {node["id"]: node for node in tree["nodes"] if node["type"] == "osd"}


def test_tree_has_every_osd_with_its_weights(session: Session) -> None:
    tree = session.module.get("osd_map_tree")
    osds = osds_of(tree)
    assert set(osds) == set(session.cluster.map.osds) and not tree["stray"]
    assert {"device_class", "crush_weight", "exists", "status", "reweight"} <= set(osds[0])
    run(session, "sim osd down 3")
    down = osds_of(session.module.get("osd_map_tree"))[3]
    assert down["status"] == "down" and down["exists"] == 1


def test_queries_make_no_epoch_and_no_log_entry(session: Session) -> None:
    cluster = session.cluster
    epoch, entries = cluster.map.epoch, len(session.command_log)
    answered, stat = ask(session, "osd stat")
    assert answered and stat.startswith(f"{len(cluster.map.osds)} osds: ")
    assert "flags" not in stat
    assert ask(session, "osd get-require-min-compat-client") == (True, "luminous\n")
    assert (cluster.map.epoch, len(session.command_log)) == (epoch, entries)
    run(session, "osd set norebalance", "osd set pause")
    assert ask(session, "osd stat")[1].endswith("\nflags norebalance,pauserd,pausewr\n")


def test_query_without_a_monitor_is_not_answered(session: Session) -> None:
    for line, is_answered in (("sim mon down", False), ("sim mon up", True)):
        run(session, line)
        assert ask(session, "osd stat")[0] == is_answered


def test_balancer_that_was_disabled_by_force() -> None:
    session = Session.from_state(None, 20)
    assert session.module.remote("balancer", "gather_telemetry")["mode"] == "upmap"
    run(session, "sim balancer disable")
    with pytest.raises(ImportError):
        session.module.remote("balancer", "gather_telemetry")
