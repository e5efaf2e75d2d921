"""Equilibrium on a cluster of teuthology: it tests itself, empties an OSD, and survives its mgr."""
import json
from typing import Any, List

from tasks.mgr.mgr_test_case import MgrTestCase


class TestEquilibrium(MgrTestCase):
    MODULE = "equilibrium"
    POOL = "equilibrium_data"
    DRAINED = "0"
    # seconds in which data has to be moved, and in which the module has to look at the cluster
    MOVED, LOOKED_AT = 300, 60
    # a round every few seconds, and no rest after a failover or for a PG that was moved
    OPTIONS = {"sleep_interval": "5", "start_delay": "0", "pg_cooldown": "0"}

    def setUp(self) -> None:
        super().setUp()
        self._load_module("selftest")
        self._load_module(self.MODULE)
        for name, value in self.OPTIONS.items():
            self.mgr_cluster.set_module_conf(self.MODULE, name, value)
        self._ceph("balancer", "off")   # both write upmap items; Ceph's is on by default
        self._ceph("osd", "pool", "create", self.POOL, "16")
        self._ceph("osd", "pool", "application", "enable", self.POOL, "rados")

    def tearDown(self) -> None:
        self._eventually(self.MODULE, "off")
        self._ceph("osd", "pool", "delete", self.POOL, self.POOL,
                   "--yes-i-really-really-mean-it")
        super().tearDown()

    def _ceph(self, *words: str) -> str:
        return str(self.mgr_cluster.mon_manager.raw_cluster_cmd(*words))

    def _json(self, *words: str) -> Any:
        return json.loads(self._ceph(*words, "--format=json"))

    def _eventually(self, *words: str) -> None:
        """Until it succeeds: an mgr that has just started cannot answer, and a command that moves
        data wants a new look at the cluster."""
        self.wait_until_true(
            lambda: self.mgr_cluster.mon_manager.raw_cluster_cmd_result(*words) == 0,
            self.LOOKED_AT)

    def _items_of_pool(self) -> List[Any]:
        pool = next(one["pool"] for one in self._json("osd", "dump")["pools"]
                    if one["pool_name"] == self.POOL)
        return [one["mappings"] for one in self._json("osd", "dump")["pg_upmap_items"]
                if one["pgid"].startswith(f"{pool}.")]

    def test_self_test(self) -> None:
        self._eventually("mgr", "self-test", "module", self.MODULE)
        self.wait_until_true(
            lambda: "PGs of" in self._ceph("mgr", "self-test", "module", self.MODULE),
            self.LOOKED_AT)

    def test_drained_osd_ends_without_pgs(self) -> None:
        self.mgr_cluster.admin_remote.run(args=[
            "rados", "-p", self.POOL, "bench", "30", "write", "-b", "1048576",
            "--max-objects", "64", "--no-cleanup"])
        self.assertTrue(self._pgs_of_drained())
        self.assertEqual([], self._items_of_pool())
        self._eventually(self.MODULE, "drain", "add", self.DRAINED)
        self.addCleanup(self._eventually, self.MODULE, "drain", "rm", self.DRAINED)
        self.wait_until_true(lambda: not self._pgs_of_drained(), self.MOVED)
        items = self._items_of_pool()
        self.assertTrue(items)
        self.assertNotIn(int(self.DRAINED), [pair["to"] for pairs in items for pair in pairs])

    def _pgs_of_drained(self) -> List[Any]:
        # without any PG the answer has no list at all
        return list(self._json("pg", "ls-by-osd", self.DRAINED).get("pg_stats", ()))

    def test_on_survives_a_failover_and_off_is_final(self) -> None:
        self._ceph("balancer", "on")
        self._eventually(self.MODULE, "on")
        self.wait_until_true(
            lambda: not self._json("balancer", "status")["active"], self.LOOKED_AT)
        for switch in (True, False):
            self._fail_over()
            self.assertEqual(switch, self._json(self.MODULE, "status")["active"])
            self._eventually(self.MODULE, "off")

    def _fail_over(self) -> None:
        gid = self.mgr_cluster.get_mgr_map()["active_gid"]
        self.mgr_cluster.mgr_fail(self.mgr_cluster.get_active_id())
        self.wait_until_true(
            lambda: self.mgr_cluster.get_mgr_map()["active_gid"] not in (0, gid), self.LOOKED_AT)
        self._eventually(self.MODULE, "status")
