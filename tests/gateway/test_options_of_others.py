"""The gateway reads options of Ceph, and switches the built-in balancer off."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import pytest
from tests.gateway.fake_mgr import open_gateway, small
from tests.support.tables import rows


@pytest.mark.parametrize("option, value, answer", rows("""
active    null                true
active    true                true
active    false               false
active    "true"              true
active    "false"             false
active    "True"              true
active    "False"             false
active    "0"                 false
active    "1"                 true
mode      null                true
mode      "upmap"             true
mode      "crush-compat"      true
mode      "upmap-read"        true
mode      "read"              false
mode      "none"              false
mode      "one of Ceph 30"    true
"""))
def test_builtin_balancer_is_active_unless_told_or_without_moves(
        option: str, value: str, answer: str) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.options["balancer", option] = json.loads(value)
    assert gateway.builtin_balancer_active() is json.loads(answer)
    assert gateway.summary().builtin_active is json.loads(answer)
    assert option == "active" or gateway.builtin_balancer_on()


ABSENT, FAILS = ImportError("no module"), RuntimeError("failed")
OLD_COMMAND = ("balancer", "handle_command", "", {"prefix": "balancer off"})   # of Ceph 16


@pytest.mark.parametrize("methods, calls", [
    ({"off": None}, [("balancer", "off")]),                              # Ceph 18 and 20
    ({"handle_command": None}, [("balancer", "off"), OLD_COMMAND]),
    ({}, [("balancer", "off"), OLD_COMMAND]),
    ({"off": ABSENT, "handle_command": ABSENT}, [("balancer", "off"), OLD_COMMAND]),
    ({"off": FAILS}, [("balancer", "off"), OLD_COMMAND])])
def test_switching_the_builtin_balancer_off(methods: Dict[str, Optional[Exception]],
                                            calls: List[Any]) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.methods = methods
    gateway.switch_off_builtin_balancer()
    assert not gateway.builtin_balancer_active()
    assert mgr.remotes == calls


def test_options_of_the_mgr_have_ceph_s_defaults() -> None:
    gateway, mgr, _ = open_gateway(small())
    assert gateway.target_max_misplaced_ratio() == 0.05
    assert gateway.builtin_balancer_sleep() == 60.0
    mgr.ceph_options["target_max_misplaced_ratio"] = "0.2"
    mgr.options["balancer", "sleep_interval"] = 10
    assert gateway.target_max_misplaced_ratio() == 0.2
    assert gateway.builtin_balancer_sleep() == 10.0


@pytest.mark.parametrize("value", ["nan", "-1", "5", "inf", None])
def test_a_misplaced_ratio_that_cannot_be_one_is_the_default(value: Optional[str]) -> None:
    """Ceph takes any float for it; with nan no comparison would ever stop anything."""
    gateway, mgr, _ = open_gateway(small())
    mgr.ceph_options["target_max_misplaced_ratio"] = value
    assert gateway.target_max_misplaced_ratio() == 0.05


def test_cheap_questions_of_commands_dump_no_map() -> None:
    cluster = small()
    cluster.crush["devices"][0]["class"] = "ssd"
    del cluster.crush["devices"][1]["class"]
    cluster.pg_status = {"misplaced_objects": 5}
    gateway, mgr, _ = open_gateway(cluster)
    assert gateway.pool_ids_by_name() == {"rbd": 1, "data": 2}
    assert gateway.device_classes() == {"hdd", "ssd", "none"}
    assert gateway.epoch() == 100 and gateway.misplaced_copies() == 5
    assert gateway.have_mon_connection() is True
    assert gateway.summary(with_map_settings=True).min_compat_client == "luminous"
    assert gateway.min_compat_client() == "luminous"
    assert "dump" not in mgr.calls and "pg_stats" not in mgr.calls
    cluster.epoch = 101   # for which no monitor was asked yet
    assert gateway.min_compat_client() == "luminous" and mgr.calls["dump"] == 1


@pytest.mark.parametrize("value", [None, True, "true"])
def test_balancer_that_does_not_run_is_not_active(value: Any) -> None:
    """Ceph 20: `mgr module force disable balancer` leaves its option where it was."""
    gateway, mgr, _ = open_gateway(small())
    mgr.options["balancer", "active"] = value
    mgr.methods = {"gather_telemetry": ImportError("Module not found")}
    assert not gateway.builtin_balancer_active() and not gateway.summary().builtin_active
    mgr.methods = {"gather_telemetry": RuntimeError("it fails")}
    assert gateway.builtin_balancer_active()
