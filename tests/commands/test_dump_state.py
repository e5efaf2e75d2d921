"""`dump-state`: loads again as a state file; `--anonymous` tells no names."""

from __future__ import annotations

import errno
import json
from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from .asking import ask, by, optimize, refused, run, until_all_have_peered
from .conftest import look

ADDRESS = "10.11.12.13"


def dumped(session: Session, arguments: str = "") -> Dict[str, Any]:
    state: Dict[str, Any] = json.loads(run(session, "equilibrium dump-state " + arguments))
    return state


def reopened(open_session: Callable[..., Session], state: Dict[str, Any]) -> Session:
    again = open_session(18, state)
    look(again)
    return again


FIGURES = ("utilization", "max_utilization", "min_utilization", "stddev",
           "soon_max_utilization", "soon_min_utilization", "soon_stddev")


def classes(session: Session) -> Dict[str, Any]:
    return by("device_class", ask(session, "eval")["classes"])


def pools(session: Session) -> Dict[int, Any]:
    """Figures of the pools by id: names may differ."""
    return {space["id"]: {key: value for key, value in space.items() if key != "name"}
            for space in ask(session, "eval")["pools"]}


def same_evaluation(one: Session, other: Session) -> None:
    found = [sorted(({**row, "device_class": ""} for row in classes(session).values()),
                    key=lambda row: int(row["fullest_osd"])) for session in (one, other)]
    assert found[0] == found[1]
    assert pools(one) == pools(other)
    wanted, made = optimize(one), optimize(other)
    assert made["moves"] == wanted["moves"]
    assert made["predicted_up"] == wanted["predicted_up"]


def test_with_upmap_items_and_moves_under_way(
        session: Session, open_session: Callable[..., Session]) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run 2m", "equilibrium off", "sim run 61s")
    until_all_have_peered(session)
    look(session)
    again = reopened(open_session, dumped(session, "--anonymous"))
    assert again.cluster.map.upmap_items == session.cluster.map.upmap_items
    assert again.cluster.map.up == session.cluster.map.up
    for name, figures in classes(session).items():
        for key in FIGURES:
            assert classes(again)[name][key] == pytest.approx(figures[key], abs=0.002)
    for one in (session, again):
        run(one, "sim run idle")
        look(one)
    for name, figures in classes(session).items():
        assert classes(again)[name]["max_utilization"] == pytest.approx(
            figures["max_utilization"], abs=0.002)


def test_before_the_first_look(open_session: Callable[..., Session]) -> None:
    """Switched off, nothing else starts one."""
    session = open_session(18)
    run(session, "sim run 1s")
    rc, text = refused(session, "equilibrium dump-state")
    assert rc == -errno.EAGAIN and "a look has been started" in text
    run(session, "sim run 1s")
    assert dumped(session)["osd_dump"]["epoch"] == session.cluster.map.epoch


_CLASSES = {"hdd": "hdd", "ssd": "secretssd"}
_TYPES = {"host": "secretblade", "chassis": "secretchassis"}


def secret_name(bucket: str) -> str:
    name, tilde, device_class = bucket.partition("~")
    return "secret-" + name + tilde + _CLASSES.get(device_class, device_class)


def with_secrets(state: Dict[str, Any]) -> Dict[str, Any]:
    """The state with names and addresses that can be told apart, wherever Ceph has them."""
    osd_map, crush = state["osd_dump"], state["crush_dump"]
    osd_map["fsid"] = "5ec2e7f5-1d00-4000-8000-000000000001"
    profiles = osd_map["erasure_code_profiles"]
    for pool in osd_map["pools"]:
        pool["pool_name"] = f"a~secret~pool-{pool['pool']}"
        pool["pool_snaps"] = [{"snapid": 1, "stamp": "2026-01-02", "name": "secret snapshot"}]
        pool["application_metadata"] = {"secret-app": {"secret-key": "secret-value"}}
        if pool["erasure_code_profile"]:
            profiles[pool["pool_name"]] = {**profiles.pop(pool["erasure_code_profile"]),
                                           "crush-root": "secret", "crush-device-class": "secret"}
            pool["erasure_code_profile"] = pool["pool_name"]
    for device in crush["devices"]:
        device["class"] = _CLASSES[device["class"]]
    for kind in crush["types"]:
        kind["name"] = _TYPES.get(kind["name"], kind["name"])
    for bucket in crush["buckets"]:
        bucket["name"] = secret_name(bucket["name"])
        bucket["type_name"] = _TYPES.get(bucket["type_name"], bucket["type_name"])
    for rule in crush["rules"]:
        rule["rule_name"] = f"secret-pool-2_rule_{rule['rule_id']}"
        for step in rule["steps"]:
            step.update({key: value for key, value in (
                ("item_name", secret_name(step.get("item_name", ""))),
                ("type", _TYPES.get(step.get("type", ""), step.get("type")))) if key in step})
    osd_map["cluster_snapshot"] = "secret"
    for osd in osd_map["osds"]:
        osd["uuid"] = f"5ec2e7f5-1d00-4000-8000-1{int(osd['osd']):011}"
        for key in ("public_addr", "cluster_addr", "heartbeat_back_addr"):
            osd[key] = ADDRESS + ":6800/1"
        osd["public_addrs"] = {"addrvec": [{"type": "v2", "addr": ADDRESS + ":6800", "nonce": 1}]}
    osd_map["blocklist"] = {ADDRESS + ":0/1": "2026-01-02T00:00:00.000000+0000"}
    osd_map["range_blocklist"] = {ADDRESS + "/24": "2026-01-02T00:00:00.000000+0000"}
    osd_map["crush_node_flags"] = {"secret-host0": ["noout"]}
    return state


@pytest.mark.parametrize("release", few((18, 16, 20), 1))
def test_anonymous_tells_no_names(release: int, demo_state: Dict[str, Any],
                                  open_session: Callable[..., Session]) -> None:
    session = open_session(release, with_secrets(demo_state))
    look(session)
    named = run(session, "equilibrium dump-state")
    assert "secret" in named and ADDRESS in named
    text = run(session, "equilibrium dump-state --anonymous")
    for word in ("secret", ADDRESS, "10.11.12", "5ec2e7f5"):
        where = text.find(word)
        assert where < 0, text[max(0, where - 80):where + 80]
    same_evaluation(session, reopened(open_session, json.loads(text)))
