"""Every command of the module as an operator types it, good and bad, on Ceph 16."""

from __future__ import annotations

import errno
import json
from typing import Any, Dict, List

import pytest

from .cluster import DaemonCluster
from .daemons import Answer, wait_for
from .harness import workload
from .harness.commands import (
    assert_refused, equilibrium, equilibrium_json, is_builtin_on, ready_plan, run, status)

pytestmark = pytest.mark.releases(16)

READING = ["status", "eval", "eval rep", "eval kept", "show kept", "dump kept",
           "ls", "pool ls", "dump-state", "history", "report", "report kept", "status --brief",
           "explain 1.0 osd.0"]
CHANGING = ["pool add rep ec", "pool rm ec", "optimize other rep --max-moves 3 --replace",
            "rm other", "off"]
FORMATS = ["plain", "json", "json-pretty"]

REFUSED = [
    ("show nothing", errno.ENOENT), ("dump nothing", errno.ENOENT), ("rm nothing", errno.ENOENT),
    ("execute nothing", errno.ENOENT), ("eval nothing", None), ("report nothing", errno.ENOENT),
    ("optimize bad nopool", None), ("pool add nopool", None),
    ("optimize bad --device-class floppy", None), ("optimize bad --max-bytes 12parsecs", None),
    ("optimize bad --max-bytes -1G", None), ("optimize bad --max-moves -3", None),
    ("explain 1.0 foo", errno.EINVAL), ("explain 1.0 99", errno.ENOENT),
    ("optimize a/b", None), ("status --format xml", errno.EINVAL),
    ("eval --format yaml", errno.EINVAL), ("ls --format xml", errno.EINVAL),
    ("show kept --format xml", errno.EINVAL), ("optimize bad --format xml", errno.EINVAL)]


LOOK_SECONDS = 30.0
"""A look comes within so long of being asked for."""


def looked_at(answer: Answer) -> Any:
    """The answer, but for one that asks to try again in some seconds, as a look is made."""
    return None if answer.rc == -errno.EAGAIN else answer


@pytest.mark.parametrize("command", READING + CHANGING)
def test_command_answers_in_every_format(
        cluster: DaemonCluster, plan: Dict[str, Any], command: str) -> None:
    for form in FORMATS:
        if command == "rm other":
            ready_plan(cluster, "other", max_moves=1)
        typed = f"equilibrium {command} --format {form}"
        answer = wait_for("an answer", lambda: looked_at(cluster.ceph(typed)), LOOK_SECONDS)
        assert answer.rc == 0, answer
        if form != "plain":
            json.loads(answer.out)
        elif command != "dump-state":
            assert (answer.out + answer.err).strip()
            with pytest.raises(ValueError):
                json.loads(answer.out)
    if command == "pool rm ec":   # the last one is not taken out: others test with all pools
        cluster.remove_option("pool_ids")
        wait_for("all pools again", lambda: not equilibrium_json(cluster, "pool ls")["pools"], 30)


@pytest.mark.parametrize("command,number", REFUSED)
def test_bad_input_is_one_sentence(
        cluster: DaemonCluster, plan: Dict[str, Any], command: str, number: Any) -> None:
    answer = cluster.ceph(f"equilibrium {command}")
    assert_refused(answer, number)
    assert plans(cluster) == ["kept"]


def plans(cluster: DaemonCluster) -> List[str]:
    return [entry["plan"] for entry in equilibrium_json(cluster, "ls")["plans"]]


def test_execute_of_a_plan_whose_pool_is_gone(cluster: DaemonCluster) -> None:
    workload.make_pool(cluster, "brief", pgs=8)
    workload.wait_clean(cluster)
    workload.write(cluster, "brief", 60)
    workload.settled_usage(cluster)
    assert ready_plan(cluster, "orphan", pools=["brief"])["upmap_items"]
    workload.delete_pool(cluster, "brief")
    workload.wait_clean(cluster)   # once the mgr has the new map
    assert_refused(equilibrium(cluster, "execute", plan="orphan"), errno.ENOENT)
    assert "orphan" in plans(cluster)


def test_execute_is_refused_while_the_builtin_balancer_is_active(
        cluster: DaemonCluster, plan: Dict[str, Any]) -> None:
    cluster.mgr("balancer on")
    try:
        answer = cluster.ceph("equilibrium execute kept")
        assert_refused(answer, errno.EPERM)
        assert "ceph balancer off" in answer.err
        assert wait_for("status sees the built-in balancer",
                        lambda: status(cluster)["builtin_balancer_active"], 15)
    finally:
        cluster.mgr("balancer off")


@pytest.mark.parametrize("form", FORMATS)
def test_on_switches_the_builtin_balancer_off(cluster: DaemonCluster, form: str) -> None:
    cluster.mgr("balancer on")
    try:
        answer = cluster.ceph(f"equilibrium on --format {form}")
        assert answer.rc == 0, answer
        assert "balancer" in answer.out + answer.err
        if form != "plain":
            json.loads(answer.out)
        wait_for("the built-in balancer off", lambda: not is_builtin_on(cluster), 15)
        assert status(cluster)["active"] is True
        answer = run(cluster, "off")
        assert "balancer on" in answer.out + answer.err, answer
        assert not is_builtin_on(cluster)
    finally:
        equilibrium(cluster, "off")
        cluster.mgr("balancer off")
