"""A cluster that changes in every way, read by one that amends and by one that builds all anew."""
from __future__ import annotations

from typing import Any, Dict, List

from tests.gateway.fake_mgr import Clock, FakeMgr
from tests.support.clusters.unit_cluster import Cluster

from equilibrium_mgr.gateway.snapshot_reader import NotReady, SnapshotReader
from equilibrium_mgr.runtime.job_thread import WorkCounters
from equilibrium_mgr.settings import Settings, default_settings
from equilibrium_mgr.snapshot.osds import OsdReports
from mgr_stub.frozen import frozen


class ChangingMgr(FakeMgr):
    """A mgr whose OSDs number their reports and whose PGs count recovered bytes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.recovered: Dict[str, int] = {}
        self.silent_osds: List[int] = []
        self.seq = 1
        self.objects_written: Dict[int, int] = {}   # pool → objects since the PGs were scrubbed
        self.settings: Settings = default_settings()

    def get(self, name: str) -> Any:
        found = super().get(name)
        if found is None:
            return None
        if name == "pg_progress":
            pgs = {pgid: dict(pg, num_bytes_recovered=self.recovered.get(pgid, 0))
                   for pgid, pg in found["pgs"].items()}
            return frozen(dict(found, pgs=pgs))
        if name == "osd_stats":
            return frozen({"pool_statfs": found["pool_statfs"], "osd_stats": [
                dict(entry, seq=1 if entry["osd"] in self.silent_osds else self.seq)
                for entry in found["osd_stats"]]})
        if name == "pool_stats":
            return frozen({"pool_stats": [dict(pool, stat_sum=dict(
                pool["stat_sum"], num_objects=pool["stat_sum"]["num_objects"]
                + self.objects_written.get(pool["poolid"], 0))) for pool in found["pool_stats"]]})
        return found


def open_reader(mgr: ChangingMgr, clock: Clock) -> SnapshotReader:
    """A reader of its own on the mgr."""
    def get(name: str) -> Any:
        found = mgr.get(name)
        if found is None:
            raise NotReady(name)
        return found

    def settings() -> Settings:
        return mgr.settings
    return SnapshotReader(mgr, get, clock, settings, WorkCounters(), OsdReports())
