"""Read-only monitor commands and small structures of the mgr, as in 16 and 20."""

from __future__ import annotations

import json
from typing import Any, Tuple

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr.api import CommandResult


@pytest.fixture(name="session", params=[16, 20])
def open_session(request: Any) -> Session:
    return Session.from_state(None, request.param)


def ask(session: Session, prefix: str) -> Tuple[bool, str]:
    result = CommandResult("")
    session.module.send_command(result, "mon", "", json.dumps({"prefix": prefix}), "")
    return result.ev.wait(1.0), result.outb


def test_tree_has_every_osd_with_its_weights(session: Session) -> None:
    tree = session.module.get("osd_map_tree")
    osds = {node["id"]: node for node in tree["nodes"] if node["type"] == "osd"}
    assert set(osds) == set(session.cluster.map.osds) and not tree["stray"]
    assert {"device_class", "crush_weight", "exists", "status", "reweight"} <= set(osds[0])
    assert not any("~" in node["name"] for node in tree["nodes"])
    session.command("sim osd down 3")
    down = next(n for n in session.module.get("osd_map_tree")["nodes"] if n["id"] == 3)
    assert down["status"] == "down" and down["exists"] == 1


def test_queries_make_no_epoch_and_no_log_entry(session: Session) -> None:
    epoch, entries = session.cluster.map.epoch, len(session.command_log)
    answered, stat = ask(session, "osd stat")
    assert answered and stat.startswith(f"{len(session.cluster.map.osds)} osds: ")
    assert "flags" not in stat
    assert ask(session, "osd get-require-min-compat-client") == (True, "luminous\n")
    assert (session.cluster.map.epoch, len(session.command_log)) == (epoch, entries)
    session.command("osd set norebalance")
    session.command("osd set pause")
    assert ask(session, "osd stat")[1].endswith("\nflags norebalance,pauserd,pausewr\n")


def test_query_without_a_monitor_is_not_answered(session: Session) -> None:
    session.command("sim mon down")
    assert not ask(session, "osd stat")[0]
    session.command("sim mon up")
    assert ask(session, "osd stat")[0]


def test_balancer_that_was_disabled_by_force() -> None:
    session = Session.from_state(None, 20)
    assert session.module.remote("balancer", "gather_telemetry")["mode"] == "upmap"
    session.command("sim balancer disable")
    with pytest.raises(ImportError):
        session.module.remote("balancer", "gather_telemetry")
