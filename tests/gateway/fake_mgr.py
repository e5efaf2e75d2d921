"""A mgr over a Cluster for tests of the gateway; it counts what is read."""
from __future__ import annotations

import copy
import json
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.gateway.gateway import Gateway, UpmapReply
from equilibrium_mgr.plan.model import PgChange
from mgr_stub.crush.hashes import stable_mod
from mgr_stub.frozen import frozen


class FakeCrush:
    """A CRUSHMap of the mgr."""

    def __init__(self, dump: Dict[str, Any]) -> None:
        self._dump = dump

    def dump(self) -> Dict[str, Any]:
        return self._dump


class FakeMap:
    """An OSDMap of the mgr over a Cluster."""

    def __init__(self, cluster: Cluster, count: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._count = count

    def get_epoch(self) -> int:
        return self._cluster.epoch

    def get_crush_version(self) -> int:
        return int(self._cluster.osd_map()["crush_version"])

    def dump(self) -> Dict[str, Any]:
        self._count("dump")
        return copy.deepcopy(self._cluster.osd_map())

    def get_crush(self) -> FakeCrush:
        return FakeCrush(self._cluster.crush)

    def pg_to_up_acting_osds(self, pool_id: int, ps: int) -> Dict[str, Any]:
        self._count("pg_to_up_acting_osds")
        pg_num = self._cluster.pools[pool_id]["pg_num"]
        pgid = f"{pool_id}.{stable_mod(ps, pg_num):x}"   # as Ceph does: none is not there
        up = self._cluster.up.get(pgid, [])
        return {"up": up, "acting": self._cluster.acting.get(pgid, up)}


class FakeMgr:
    """What a module inherits, counted."""

    version = "ceph version 18.2.7 (0000) reef (stable)"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.calls: Dict[str, int] = {}
        self.missing: List[str] = []
        self.pg_ready = True
        self.options: Dict[Tuple[str, str], Any] = {}
        self.ceph_options: Dict[str, Any] = {}
        self.remotes: List[Tuple[Any, ...]] = []
        self.methods: Dict[str, Optional[Exception]] = {}
        self.events: List[str] = []
        self.sent: List[Dict[str, Any]] = []
        self.answer: Callable[[Any], None] = lambda result: None
        self.monitor_answers = True
        self.config = "[]"

    def count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    def get(self, name: str) -> Any:
        self.count(name)
        if name in self.missing:
            return None
        cluster = self.cluster
        answers: Dict[str, Callable[[], Any]] = {
            "pg_progress": self._pg_progress,
            "pg_stats": self._pg_stats,
            "pg_status": lambda: cluster.pg_status,
            "pool_stats": lambda: {"pool_stats": cluster.pool_stats()},
            "osd_stats": self._osd_stats,
            "osd_map_crush": lambda: cluster.crush,
            "osd_map_tree": cluster.osd_map_tree,
            "health": lambda: {"json": ""},
            "df": self._df}
        return frozen(answers[name]())

    def _pg_progress(self) -> Dict[str, Any]:
        pgs = {pgid: {"num_bytes_recovered": 0, **record._asdict()}
               for pgid, record in self.cluster.records.items()}
        return {"pgs": pgs, "pg_ready": self.pg_ready}

    def _pg_stats(self) -> Dict[str, Any]:
        rows = []
        for pgid, record in self.cluster.records.items():
            sums = {"num_objects": record.num_objects, "num_omap_bytes": record.omap_bytes}
            rows.append({"pgid": pgid, "state": record.state, "acting": [], "stat_sum": sums,
                         "reported_epoch": record.reported_epoch,
                         "up": self.cluster.up.get(pgid, [])})
        return {"pg_stats": rows}

    def _osd_stats(self) -> Dict[str, Any]:
        return {"osd_stats": self.cluster.osd_stats(), "pool_statfs": self.cluster.pool_statfs()}

    def _df(self) -> Dict[str, Any]:
        return {"pools": [{"name": pool["pool_name"], "id": number, "stats": {"max_avail": 77}}
                          for number, pool in self.cluster.pools.items()]}

    def _read_command(self, prefix: str) -> str:
        osd_map = self.cluster.osd_map()
        if prefix == "osd get-require-min-compat-client":
            return f"{osd_map['require_min_compat_client']}\n"
        if prefix == "config dump":
            return self.config
        assert prefix == "osd stat", prefix
        stat = f"4 osds: 4 up (since 5m), 4 in (since 6m); epoch: e{osd_map['epoch']}\n"
        flags = osd_map["flags"]
        return stat if flags == "sortbitwise" else f"{stat}flags {flags}\n"

    def get_osdmap(self) -> FakeMap:
        return FakeMap(self.cluster, self.count)

    def get_module_option_ex(self, module: str, key: str, default: Any = None) -> Any:
        found = self.options.get((module, key))   # None if it is not set
        return default if found is None else found

    def set_module_option_ex(self, module: str, key: str, value: Any) -> None:
        self.options[module, key] = value

    def get_ceph_option(self, key: str) -> Any:
        return self.ceph_options.get(key)

    def have_mon_connection(self) -> int:
        return 1

    def remote(self, module: str, method: str, *args: Any, **_kwargs: Any) -> None:
        self.remotes.append((module, method) + args)
        error = self.methods.get(method, NameError(method))
        if error is not None:
            raise error

    def send_command(self, result: Any, service: str, who: str, command: str, tag: str) -> None:
        assert (service, who) == ("mon", "")
        asked = json.loads(command)
        self.sent.append(asked)
        self.events.append(f"send {asked.get('pgid', asked['prefix'])}")
        result.ev = Event(self.events)
        if "pgid" not in asked:
            result.ev.done = self.monitor_answers
            result.r, result.outb = 0, self._read_command(asked["prefix"])
        self.answer(result)


class Event:
    """Stands for `result.ev`: remembers waits; is set when `done` is."""

    def __init__(self, log: List[str]) -> None:
        self.log = log
        self.done = True
        self.on_timeout: Callable[[float], None] = lambda seconds: None

    def wait(self, timeout: Optional[float] = None) -> bool:
        assert timeout is not None, "a wait without a limit"
        self.log.append("wait")
        if not self.done:
            self.on_timeout(timeout)
        return self.done


class Clock:
    """A clock that only the test moves, and with it the monotonic one."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    monotonic = __call__


def send(gateway: Gateway, changes: Sequence[PgChange], timeout: float) -> List[UpmapReply]:
    return gateway.collect_replies(gateway.submit_upmaps(changes), timeout)


def small() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2, name="rbd").pool(2, size=2, name="data")
    for pool in (1, 2):
        for ps in range(4):
            cluster.pg(f"{pool}.{ps:x}", [ps, (ps + pool) % 4])
    return cluster


def open_gateway(cluster: Cluster) -> Tuple[Gateway, FakeMgr, Clock]:
    mgr, clock = FakeMgr(cluster), Clock()
    module: Any = mgr   # only what these tests reach is there
    return Gateway(module, clock, monotonic=clock), mgr, clock
