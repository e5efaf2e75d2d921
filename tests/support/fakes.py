"""Stand-ins for the mgr's services."""
from __future__ import annotations

import logging
from typing import (
    Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple)

from tests.support.clusters.unit_cluster import Cluster

from equilibrium_mgr.control.balancer import Balancer
from equilibrium_mgr.drain.status import DrainStatus, StopCheck
from equilibrium_mgr.gateway.cluster_summary import (
    ClusterSummary, summarize_osds, summarize_pools)
from equilibrium_mgr.gateway.gateway import NotReady, UpmapReply
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.plan.options import PgShardLimits
from equilibrium_mgr.plan.store import PlanStore
from equilibrium_mgr.plan_service.plan_service import PlanService
from equilibrium_mgr.settings import Settings, read_settings
from equilibrium_mgr.snapshot.model import PoolRates, Snapshot, UpmapItems
from equilibrium_mgr.snapshot.upmap_items import apply_items

LOG = logging.getLogger("test")

#: Brakes that most tests are not about.
NO_BRAKES: Dict[str, Any] = {"max_misplaced_ratio": 0.0, "start_delay": 0, "pg_cooldown": 0,
                             "max_backfills_per_osd": 0, "max_transit_ratio": 0.0}


class KeyValueStore:
    """get_store, set_store and get_store_prefix of a mgr; remembers the order of writes."""

    def __init__(self, values: Optional[Dict[str, str]] = None) -> None:
        self.values: Dict[str, str] = dict(values or {})
        self.writes: List[Tuple[str, Optional[str]]] = []
        self.before_write: Callable[[str], None] = lambda key: None

    def get_store(self, key: str, default: Optional[str] = None) -> Optional[str]:
        return self.values.get(key, default)

    def set_store(self, key: str, value: Optional[str]) -> None:
        self.before_write(key)
        self.writes.append((key, value))
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def get_store_prefix(self, prefix: str) -> Dict[str, str]:
        return {k: v for k, v in self.values.items() if k.startswith(prefix)}


class InlineJobs:
    """Jobs that wait until the test runs them."""

    def __init__(self) -> None:
        self.waiting: List[Tuple[str, Callable[[], None]]] = []
        self.waited: List[float] = []
        self.is_over = False

    def submit(self, name: str, job: Callable[[], None], first: bool = False) -> None:
        self.waiting.insert(0 if first else len(self.waiting), (name, job))

    def run_pending(self) -> None:
        """As the mgr's own jobs: nobody waits."""

    def wait(self, seconds: float) -> bool:
        """A job has to wait: here that is only noted."""
        if not self.is_over:
            self.waited.append(seconds)
        return not self.is_over

    def stop(self) -> None:
        self.waiting = []

    def run(self) -> int:
        count = 0
        while self.waiting:
            self.waiting.pop(0)[1]()
            count += 1
        return count


class FakeGateway:
    """A cluster that obeys: upmaps change `up` at once, data comes when `arrive` is called."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.batches: List[List[PgChange]] = []
        self.drops: Set[str] = set()
        self.refuses: Set[str] = set()
        self.ignores: Set[str] = set()
        self.not_ready = ""
        self.connected = True
        self.builtin = False
        self.builtin_was_active = False
        self.ratio = 1.0
        self.shards_an_osd = PgShardLimits()
        self.full_readings = 0
        #: told by the loop; PGs hold what they say, whoever has sent them
        self.measured: Optional[Mapping[int, float]] = None
        self.drained: Optional[FrozenSet[int]] = None
        self.sent_before: Mapping[str, UpmapItems] = {}
        self.pool_rates: Mapping[int, PoolRates] = {}
        self.operations: Any = None
        self.before_snapshot: Callable[[], None] = lambda: None
        self.before_send_check: Callable[[], None] = lambda: None
        self.before_placement_check: Callable[[], None] = lambda: None
        self.before_hand_over: Callable[[], None] = lambda: None
        self.before_answers: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = lambda: 1000.0
        self.unsettled: List[float] = []   # of the next looks, in seconds
        self.silent: FrozenSet[int] = frozenset()   # OSDs that have stopped reporting
        self.cluster_log: List[str] = []
        self.asked_to_stop: List[FrozenSet[int]] = []
        self.stop_answer: Optional[StopCheck] = StopCheck(True, "")

    def ceph_version(self) -> str:
        return "ceph version 18.2.7 reef"

    def refresh_hourly(self) -> None:
        """As without counters."""

    def snapshot(self) -> Snapshot:
        self.full_readings += 1
        self.before_snapshot()
        if self.not_ready:
            raise NotReady(self.not_ready)
        if self.measured is not None:
            self.cluster.measured = self.measured
        if self.drained is not None:
            self.cluster.drained = self.drained
        unsettled = self.unsettled.pop(0) if self.unsettled else 0.0
        return self.cluster.snapshot()._replace(
            taken_at=self.clock(), unsettled_seconds=unsettled, stale_osds=self.silent)

    def stop_check(self, osds: FrozenSet[int]) -> Optional[StopCheck]:
        self.asked_to_stop.append(osds)
        return self.stop_answer

    def summary(self, with_map_settings: bool = False) -> ClusterSummary:
        if self.not_ready:
            raise NotReady(self.not_ready)
        cluster = self.cluster
        osd_map = cluster.osd_map()
        told = with_map_settings and self.connected
        builtin_active = self.builtin_balancer_active()
        return ClusterSummary(
            taken_at=self.clock(), epoch=cluster.epoch, crush_version=osd_map["crush_version"],
            osds=summarize_osds(cluster.osd_map_tree(), cluster.osd_stats()),
            pools=summarize_pools(cluster.pool_stats(), cluster.pg_status),
            misplaced_copies=self.misplaced_copies(),
            mon_connected=self.connected, builtin_active=builtin_active,
            flags=frozenset(osd_map["flags"].split(",")) if told else None,
            min_compat_client=osd_map["require_min_compat_client"] if told else None,
            stale_osds=self.silent)

    def at_newest_map(self, snapshot: Snapshot) -> Snapshot:
        return snapshot if snapshot.epoch == self.cluster.epoch else self.cluster.snapshot()

    def without_remapped(self, changes: Sequence[PgChange], snapshot: Snapshot) -> List[PgChange]:
        check, self.before_placement_check = self.before_placement_check, lambda: None
        check()
        return [change for change in changes
                if tuple(self.cluster.up.get(change.pgid, ())) == snapshot.pgs[change.pgid].up]

    def epoch(self) -> int:
        return self.cluster.epoch

    def misplaced_copies(self) -> int:
        return int(self.cluster.pg_status.get("misplaced_objects", 0))

    def have_mon_connection(self) -> bool:
        self.before_send_check()
        return self.connected

    def builtin_balancer_active(self) -> bool:
        self.builtin_was_active = self.builtin_was_active or self.builtin
        return self.builtin

    def pop_builtin_was_active(self) -> bool:
        was_active, self.builtin_was_active = self.builtin_was_active, False
        return was_active

    def builtin_balancer_sleep(self) -> float:
        return 60.0

    def target_max_misplaced_ratio(self) -> float:
        return self.ratio

    def write_to_cluster_log(self, line: str) -> None:
        self.cluster_log.append(line)

    def max_pg_shards(self) -> PgShardLimits:
        return self.shards_an_osd

    def silent_osds(self, _seconds: float) -> FrozenSet[int]:
        return frozenset()

    def submit_upmaps(self, changes: Sequence[PgChange]) -> List[PgChange]:
        self.before_hand_over()
        self.batches.append(list(changes))
        return list(changes)

    def collect_replies(self, handed_over: Sequence[PgChange], timeout: float) -> List[UpmapReply]:
        self.before_answers()
        self.cluster.epoch += 1
        return [self._answer(change) for change in handed_over]

    def _answer(self, change: PgChange) -> UpmapReply:
        if change.pgid in self.refuses:
            return (change, -2, "no such pg")
        if change.pgid in self.ignores:
            return (change, None, "no answer")
        if change.pgid not in self.drops:
            self.cluster.acting.setdefault(change.pgid, list(self.cluster.up[change.pgid]))
            self.set_items(change.pgid, change.raw, change.items)
        return (change, 0, "set")

    def op_latency(self, _osds: Iterable[int]) -> Dict[int, Tuple[int, int]]:
        return {}

    def stacked_backfills(self, _osds: Iterable[int]) -> Dict[int, int]:
        return {}

    def copying_options(self, _osd: int) -> Dict[str, Any]:
        return {}

    def set_items(self, pgid: str, raw: Sequence[int], items: Sequence[Tuple[int, int]]) -> None:
        self.cluster.up[pgid] = list(apply_items(raw, items, lambda osd: False))
        self.cluster.items.pop(pgid, None)
        if items:
            self.cluster.items[pgid] = list(items)

    def arrive(self) -> None:
        """Everything that moves has come: acting is up, and the PGs have said so."""
        self.cluster.acting.clear()
        self.cluster.epoch += 1
        for pgid, record in self.cluster.records.items():
            self.cluster.records[pgid] = record._replace(reported_epoch=self.cluster.epoch)

    @property
    def sent(self) -> List[str]:
        return [change.pgid for batch in self.batches for change in batch]


class Harness:
    """A Balancer with everything it needs, on a fake gateway; `round()` runs one round."""

    def __init__(self, cluster: Cluster, kv: Optional[KeyValueStore] = None,
                 **options: Any) -> None:
        self.now = 1000.0
        self.options: Dict[str, Any] = {**NO_BRAKES, **options}
        self.kv = kv or KeyValueStore()
        self.gateway = FakeGateway(cluster)
        self.gateway.clock = self.clock
        self.jobs = InlineJobs()
        self.wakes = 0
        gateway: Any = self.gateway
        self.plan_store = PlanStore(self.kv)
        self.planning = PlanService(gateway, self.plan_store, self.jobs, self.clock, LOG)
        self.balancer = Balancer(gateway, self.plan_store, self.planning, self.kv, self.settings,
                                 self.clock, self.wake, LOG)

    def clock(self) -> float:
        return self.now

    def wake(self) -> None:
        self.wakes += 1

    def settings(self) -> Settings:
        return read_settings(self.options.get)

    def look(self) -> str:
        """A round with the look that a command asks for, whatever the state; returns that."""
        self.balancer.request_observation()
        return self.round()

    def round(self, seconds: float = 0.0) -> str:
        """One round, so many seconds later, that observes the whole cluster; returns the state."""
        self.now += seconds
        self.balancer.require_observation()
        self.balancer.round()
        return self.balancer.status.state

    def plan(self, seconds: float = 0.0) -> str:
        """Runs a round, and makes the plan that it asks for."""
        state = self.round(seconds)
        self.jobs.run()
        return state

    def rounds(self, count: int, seconds: float) -> None:
        for _ in range(count):
            self.round(seconds)

    def arrive(self) -> None:
        self.gateway.arrive()

    def report(self, *pgids: str, **fields: Any) -> None:
        """PGs report otherwise."""
        records = self.gateway.cluster.records
        for pgid in pgids:
            records[pgid] = records[pgid]._replace(**fields)

    @property
    def cluster(self) -> Cluster:
        return self.gateway.cluster

    @property
    def state(self) -> str:
        return self.balancer.status.state

    @property
    def reason(self) -> str:
        return self.balancer.status.reason

    @property
    def history(self) -> Any:
        return self.balancer.status.history

    @property
    def execution(self) -> Any:
        return self.balancer.execution

    @property
    def sent(self) -> List[str]:
        return self.gateway.sent

    def drain(self, osds: Dict[int, str]) -> None:
        """Adds OSDs to the list as `drain add` does; `osds` has their names."""
        self.balancer.change_drains(lambda drains: drains.with_osds(osds))

    @property
    def drains(self) -> DrainStatus:
        return self.balancer.drains.status

    @property
    def looks(self) -> int:
        """How often the whole cluster was looked at."""
        return self.gateway.full_readings
