"""What Ceph's qa does with a module, on a small cluster: its selftest module asks this one to test
itself, and the unit of tests/qa runs, with a stand-in for teuthology's base class."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Sequence

import pytest

from tests.qa.test_unit import load

from .cluster import DaemonCluster
from .conftest import new_cluster
from .daemons import Answer, wait_for

pytestmark = pytest.mark.releases(16)   # passed on 20 too: --ceph-every


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Four equal OSDs and two mgrs, as in Ceph's suite."""
    with new_cluster(request, {f"h{number}": (1.0,) for number in range(4)}) as made:
        made.start_mgr("y")
        made.set_config("mon", "mon_allow_pool_delete", "true")
        for module in ("selftest", "equilibrium"):
            made.mon("mgr module enable", module=module)
        made.wait_module()
        yield made


def self_test(cluster: DaemonCluster) -> Answer:
    return cluster.mgr("mgr self-test module", module="equilibrium")


def written(cluster: DaemonCluster) -> Any:
    """What a module could have changed: the osdmap, options, its store."""
    return [cluster.osd_dump(), cluster.mon_json("config dump"),
            cluster.mon_json("config-key dump", key="mgr/equilibrium")]


def test_self_test_reads_all_and_writes_nothing(
        cluster: DaemonCluster, figure: Callable[[str], None]) -> None:
    wait_for("statistics", lambda: "PGs of" in self_test(cluster).out, 120)
    before = written(cluster)
    answer = self_test(cluster)
    assert answer.rc == 0 and "read 4 OSDs" in answer.out, answer
    assert written(cluster) == before
    figure(f"`ceph mgr self-test module equilibrium`: {answer.out.strip()}; "
           f"{answer.err.strip()}; {answer.seconds:.2f} s")


def test_unit_of_ceph_qa(cluster: DaemonCluster) -> None:
    def run(args: Sequence[str]) -> str:
        program, *words = args
        return cluster.processes.check([program, "-c", str(cluster.conf), *words]).out

    def raw_cluster_cmd(*words: str) -> str:
        return run(["ceph", *words])

    def raw_cluster_cmd_result(*words: str) -> int:
        return cluster.ceph(" ".join(words)).rc

    def set_module_conf(_: str, name: str, value: str) -> None:
        cluster.set_option(name, value)

    def mgr_fail(name: str) -> None:
        cluster.mon("mgr fail", who=name)

    manager = SimpleNamespace(raw_cluster_cmd=raw_cluster_cmd,
                              raw_cluster_cmd_result=raw_cluster_cmd_result)

    class MgrTestCase(unittest.TestCase):
        mgr_cluster = SimpleNamespace(
            mon_manager=manager, admin_remote=SimpleNamespace(run=run), mgr_fail=mgr_fail,
            set_module_conf=set_module_conf, get_mgr_map=cluster.mgr_dump,
            get_active_id=cluster.active_mgr)

        def _load_module(self, module: str) -> None:
            assert module in cluster.mon_json("mgr module ls")["enabled_modules"]

        def wait_until_true(self, condition: Callable[[], bool], timeout: float) -> None:
            wait_for("what the unit waits for", condition, timeout)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(load(MgrTestCase)).run(result)
    assert result.testsRun == 3
    assert "\n".join(text for _, text in [*result.failures, *result.errors]) == ""
    assert not cluster.module_failures()


def test_what_self_test_finds_is_said(cluster: DaemonCluster) -> None:
    cluster.set_option("pool_ids", "none")
    failed = wait_for("a failure", lambda: self_test(cluster).err.partition("Test failed: ")[2], 30)
    assert "pool_ids is 'none'" in failed
