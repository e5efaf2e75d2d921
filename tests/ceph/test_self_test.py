"""What Ceph's qa does with a module, on a small cluster: its selftest module asks this one to test
itself, and the unit of tests/qa runs, with a stand-in for teuthology's base class."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import pytest

from tests.qa.test_unit import load

from .cluster import DaemonCluster
from .conftest import PACKAGE
from .daemons import Answer, wait_for
from .release import RELEASES

pytestmark = pytest.mark.releases(16)   # passed on 20 too: --ceph-every


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Four equal OSDs and two mgrs, as in Ceph's suite."""
    with DaemonCluster(RELEASES[request.param], PACKAGE, request.config.getoption("--ceph-keep"),
                       {f"h{number}": (1.0,) for number in range(4)}) as made:
        made.start_mgr("y")
        made.mon("config set", who="mon", name="mon_allow_pool_delete", value="true")
        for module in ("selftest", "equilibrium"):
            made.mon("mgr module enable", module=module)
        made.wait_module()
        yield made


def self_test(cluster: DaemonCluster) -> Answer:
    return cluster.mgr("mgr self-test module", module="equilibrium")


def written(cluster: DaemonCluster) -> Any:
    """What a module could have changed: the osdmap, options, its store."""
    return [cluster.mon_json("osd dump"), cluster.mon_json("config dump"),
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
    class MgrTestCase(unittest.TestCase):
        mgr_cluster = SimpleNamespace(
            mon_manager=SimpleNamespace(
                raw_cluster_cmd=lambda *words: cluster.processes.check(
                    ["ceph", "-c", str(cluster.conf), *words]).out,
                raw_cluster_cmd_result=lambda *words: cluster.ceph(" ".join(words)).rc),
            admin_remote=SimpleNamespace(run=lambda args: cluster.processes.check(
                [args[0], "-c", str(cluster.conf), *args[1:]])),
            set_module_conf=lambda _, name, value: cluster.set_option(name, value),
            get_mgr_map=lambda: cluster.mon_json("mgr dump"), get_active_id=cluster.active_mgr,
            mgr_fail=lambda name: cluster.mon("mgr fail", who=name))

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
    cluster.mon("config set", who="mgr", name="mgr/equilibrium/pool_ids", value="none")
    failed = wait_for("a failure", lambda: self_test(cluster).err.partition("Test failed: ")[2], 30)
    assert "pool_ids is 'none'" in failed
