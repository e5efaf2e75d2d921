"""The room that knows the mgr API: how often it reads, how it sends, the built-in balancer."""
from __future__ import annotations

import copy
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import pytest
from tests.support.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

from equilibrium_mgr.gateway.gateway import Gateway, NotReady
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.runtime.work_counters import Counts
from mgr_stub.crush.placement_seed import stable_mod
from mgr_stub.mgr.frozen import frozen


class FakeMap:
    """An OSDMap of the mgr over a Cluster."""

    def __init__(self, mgr: FakeMgr) -> None:
        self._mgr = mgr

    def get_epoch(self) -> int:
        return self._mgr.cluster.epoch

    def get_crush_version(self) -> int:
        return int(self._mgr.cluster.osd_map()["crush_version"])

    def dump(self) -> Dict[str, Any]:
        self._mgr.count("dump")
        return copy.deepcopy(self._mgr.cluster.osd_map())

    def get_crush(self) -> Any:
        mgr = self._mgr

        class Crush:
            def dump(self) -> Dict[str, Any]:
                mgr.count("crush")
                return mgr.cluster.crush
        return Crush()

    def map_pool_pgs_up(self, pool_id: int) -> Dict[str, List[int]]:
        self._mgr.count("map_pool_pgs_up")
        return {pgid: up for pgid, up in self._mgr.cluster.up.items()
                if pgid.startswith(f"{pool_id}.")}

    def pg_to_up_acting_osds(self, pool_id: int, ps: int) -> Dict[str, Any]:
        self._mgr.count("pg_to_up_acting_osds")
        pg_num = self._mgr.cluster.pools[pool_id]["pg_num"]
        pgid = f"{pool_id}.{stable_mod(ps, pg_num):x}"   # as Ceph does: none is not there
        up = self._mgr.cluster.up.get(pgid, [])
        return {"up": up, "acting": self._mgr.cluster.acting.get(pgid, up)}

    def pool_raw_used_rate(self, pool_id: int) -> float:
        if pool_id not in self._mgr.cluster.pools:
            raise SystemError("returned NULL without setting an exception")
        # not always a pool's size by its data shards: plugin lrc leaves its local parities out
        return float(self._mgr.cluster.pools[pool_id]["size"]) * self._mgr.raw_used_factor


class FakeMgr:
    """What a module inherits, counted."""

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
        self.raw_used_factor = 1.0

    def get_module_option(self, name: str) -> Any:
        return self.options.get(("equilibrium", name))

    def count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    def get(self, name: str) -> Any:
        self.count(name)
        if name in self.missing:
            return None
        cluster = self.cluster
        progress = {pgid: {"num_bytes": r.num_bytes, "num_bytes_recovered": 0, "state": r.state,
                           "reported_epoch": r.reported_epoch}
                    for pgid, r in cluster.records.items()}
        pg_stats = [{
            "pgid": pgid, "state": r.state, "reported_epoch": r.reported_epoch,
            "up": cluster.up.get(pgid, []), "acting": [], "stat_sum": {
                "num_objects": r.num_objects, "num_omap_bytes": r.omap_bytes}}
            for pgid, r in cluster.records.items()]
        return frozen({"pg_progress": {"pgs": progress, "pg_ready": self.pg_ready},
                "pg_stats": {"pg_stats": pg_stats}, "pg_status": cluster.pg_status,
                "pool_stats": {"pool_stats": cluster.pool_stats()},
                "osd_stats": {"osd_stats": cluster.osd_stats()},
                "osd_map_crush": cluster.crush,
                "osd_map_tree": cluster.osd_map_tree(),
                "df": {"pools": [{"name": p["pool_name"], "id": p["pool"],
                                  "stats": {"max_avail": 77}} for p in cluster.pools.values()]},
                }[name])

    def _read_command(self, prefix: str) -> str:
        osd_map = self.cluster.osd_map()
        if prefix == "osd get-require-min-compat-client":
            return str(osd_map["require_min_compat_client"]) + "\n"
        assert prefix == "osd stat", prefix
        shown = [f for f in osd_map["flags"].split(",") if f != "sortbitwise"]
        return f"4 osds: 4 up (since 5m), 4 in (since 6m); epoch: e{osd_map['epoch']}\n" + (
            f"flags {','.join(shown)}\n" if shown else "")

    def get_osdmap(self) -> FakeMap:
        return FakeMap(self)

    def get_module_option_ex(self, module: str, key: str, default: Any = None) -> Any:
        return self.options.get((module, key), default)

    def set_module_option(self, name: str, value: Any) -> None:
        self.options["equilibrium", name] = value

    def set_health_checks(self, checks: Mapping[str, Any]) -> None:
        """Nobody asks for them here."""

    def get_mgr_id(self) -> str:
        return "x"

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
        self.events.append(f"send {asked.get('pgid', asked['prefix'])}")
        result.ev = Event(self.events)
        if "pgid" not in asked:
            result.ev.done = self.monitor_answers
            result.r, result.outb = 0, self._read_command(asked["prefix"])
        self.answer(result)
        self.sent.append(json.loads(command))


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
        self.sleeps = 0

    def __call__(self) -> float:
        return self.now

    monotonic = __call__

    def sleep(self, _seconds: float) -> None:
        """Nobody has to wait."""
        self.sleeps += 1


def small() -> Cluster:
    cluster = Cluster(hosts(4)).pool(1, size=2, name="rbd").pool(2, size=2, name="data")
    for ps in range(4):
        cluster.pg(f"1.{ps:x}", [ps, (ps + 1) % 4]).pg(f"2.{ps:x}", [ps, (ps + 2) % 4])
    return cluster


def open_gateway(cluster: Cluster) -> Tuple[Gateway, FakeMgr, Clock]:
    mgr, clock = FakeMgr(cluster), Clock()
    return Gateway(mgr, clock, monotonic=clock), mgr, clock


def test_one_reading_asks_for_everything_once() -> None:
    gateway, mgr, _ = open_gateway(small())
    snapshot = gateway.snapshot()
    assert len(snapshot.pgs) == 8 and snapshot.pools[1].max_avail_bytes == 77
    for name in ("dump", "crush", "pg_progress", "osd_stats", "pg_status", "pool_stats",
                 "pg_stats"):
        assert mgr.calls[name] == 1, name


def test_up_sets_are_read_again_only_at_a_new_epoch() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    for _ in range(3):
        gateway.snapshot()
    assert mgr.calls["map_pool_pgs_up"] == 2 and mgr.calls["dump"] == 1
    cluster.epoch += 1
    cluster.pg("1.0", [3, 1])
    assert gateway.snapshot().pgs["1.0"].up == (3, 1)
    assert mgr.calls["map_pool_pgs_up"] == 6    # an unknown change: a second time for the dump


def test_large_pools_are_mapped_in_slices(mocker: Any) -> None:
    cluster = Cluster(hosts(4)).pool(1, size=2).pool(2, size=2)
    for ps in range(1100):
        cluster.pg(f"1.{ps:x}", [ps % 4, (ps + 1) % 4])
    cluster.pg("2.0", [0, 1])
    gateway, mgr, clock = open_gateway(cluster)
    pauses = mocker.spy(gateway._maps, "_checkpoint")
    snapshot = gateway.snapshot()
    assert 20 <= pauses.call_count <= 60          # the interpreter is given up now and then
    assert mgr.calls["pg_to_up_acting_osds"] == 1100 and mgr.calls["map_pool_pgs_up"] == 1
    assert {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()} == cluster.up


def test_pg_stats_at_most_hourly() -> None:
    gateway, mgr, clock = open_gateway(small())
    for minutes in range(0, 59, 5):
        clock.now = 1000.0 + 60.0 * minutes
        gateway.snapshot()
    assert mgr.calls["pg_stats"] == 1
    clock.now = 10.0                    # a clock set back does not freeze the statistics
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 2


@pytest.mark.parametrize("what, change, readings", [
    ("nothing", lambda c: None, 1),
    ("bytes", lambda c: c.pg("1.0", [0, 1], num_bytes=5 * GIB, objects=100, omap=GIB), 1),
    ("a little", lambda c: c.pg("1.0", [0, 1], objects=101, omap=GIB), 1),
    ("objects", lambda c: c.pg("1.0", [0, 1], objects=102, omap=GIB), 2),
    ("omap", lambda c: c.pg("1.0", [0, 1], objects=100, omap=2 * GIB), 2),
    ("a pool", lambda c: c.pool(3, size=2).pg("3.0", [0, 1]), 2),
    ("a split", lambda c: c.pg("2.4", [0, 1]), 2)], ids=lambda value: str(value)[:9])
def test_pg_stats_only_where_pools_have_changed(what: str, change: Callable[[Cluster], Any],
                                                readings: int) -> None:
    cluster = small()
    cluster.pg("1.0", [0, 1], objects=100, omap=GIB)
    gateway, mgr, clock = open_gateway(cluster)
    gateway.snapshot()
    change(cluster)
    clock.now += 3599.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 1
    clock.now += 2.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == readings
    clock.now += 86_400.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == readings + 1


def test_pg_stats_again_where_some_pgs_had_not_reported() -> None:
    cluster = small()
    cluster.pg("1.0", [0, 1], state="unknown", reported=0)
    gateway, mgr, clock = open_gateway(cluster)
    gateway.snapshot()
    cluster.pg("1.0", [0, 1])
    clock.now += 3601.0
    gateway.snapshot()
    assert mgr.calls["pg_stats"] == 2


@pytest.mark.parametrize("name", ["pg_progress", "osd_stats", "pool_stats", "pg_status", "df",
                                  "pg_stats"])
def test_missing_answers_are_not_ready(name: str) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.missing = [name]
    with pytest.raises(NotReady, match=name):
        gateway.snapshot()
    mgr.missing = []
    assert len(gateway.snapshot().pgs) == 8


def test_not_ready_until_all_pgs_have_reported() -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.pg_ready = False
    with pytest.raises(NotReady):
        gateway.snapshot()
    assert gateway.last_reading() is None


def test_last_reading_is_that_of_the_snapshot() -> None:
    gateway, _, clock = open_gateway(small())
    snapshot = gateway.snapshot()
    reading = gateway.last_reading()
    assert reading is not None and reading.taken_at == snapshot.taken_at == clock.now
    assert reading.osd_map["epoch"] == snapshot.epoch


def test_pool_deleted_between_two_answers() -> None:
    """The statistics still know a pool that the map has lost."""
    cluster = small()
    gateway, _, _ = open_gateway(cluster)
    gateway.snapshot()
    del cluster.pools[2]
    cluster.epoch += 1
    assert {pg.pool for pg in gateway.snapshot().pgs.values()} == {1}


def changes(count: int) -> List[PgChange]:
    return [change_of(f"1.{ps:x}", [ps, 4], [9, 4]) for ps in range(count)]


def test_all_commands_are_sent_before_the_first_wait() -> None:
    gateway, mgr, _ = open_gateway(small())
    answers = gateway.send(changes(4), 30.0)
    assert mgr.events[:4] == ["send 1.0", "send 1.1", "send 1.2", "send 1.3"]
    assert set(mgr.events[4:]) == {"wait"}
    assert [answer.change for answer in answers] == changes(4)


def test_commands_in_the_monitor_s_words() -> None:
    gateway, mgr, _ = open_gateway(small())
    gateway.send([change_of("1.a", [0, 1, 2], [3, 1, 4]),
                  change_of("1.b", [0, 1], [0, 1], before=[5, 1])], 30.0)
    assert mgr.sent == [
        {"prefix": "osd pg-upmap-items", "format": "json", "pgid": "1.a", "id": [0, 3, 2, 4]},
        {"prefix": "osd rm-pg-upmap-items", "format": "json", "pgid": "1.b"}]


def test_what_moved_since_the_look_is_not_sent() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    snapshot = gateway.snapshot()
    mgr.calls.clear()
    assert gateway.without_remapped(changes(3), snapshot) == changes(3) and not mgr.calls
    cluster.epoch += 1
    cluster.pg("1.1", [3, 0])            # by somebody else
    assert [c.pgid for c in gateway.without_remapped(changes(3), snapshot)] == ["1.0", "1.2"]
    assert mgr.calls == {"pg_to_up_acting_osds": 3}


def test_answers_are_handed_on() -> None:
    gateway, mgr, _ = open_gateway(small())

    def refuse(result: Any) -> None:
        result.r, result.outb, result.outs = -2, "", "pg 1.0 does not exist"
    mgr.answer = refuse
    answer, = gateway.send(changes(1), 30.0)
    assert (answer.returncode, answer.message) == (-2, "pg 1.0 does not exist")


def test_wait_is_bounded_for_the_whole_batch() -> None:
    gateway, mgr, clock = open_gateway(small())
    waits: List[float] = []

    def silent(result: Any) -> None:
        def time_passes(seconds: float) -> None:
            waits.append(seconds)
            clock.now += seconds
        result.ev.done, result.ev.on_timeout = False, time_passes
    mgr.answer = silent
    answers = gateway.send(changes(5), 30.0)
    assert [answer.returncode for answer in answers] == [None] * 5
    assert sum(waits) == 30.0 and min(waits) >= 0.0
    assert clock.now == 1030.0


@pytest.mark.parametrize("value, active", [
    (None, True), (True, True), (False, False), ("true", True), ("false", False),
    ("True", True), ("False", False), ("0", False), ("1", True)])
def test_builtin_balancer_is_on_unless_told(value: Any, active: bool) -> None:
    gateway, mgr, _ = open_gateway(small())
    if value is not None:
        mgr.options["balancer", "active"] = value
    assert gateway.builtin_balancer_active() is active


@pytest.mark.parametrize("methods, tried", [
    ({"off": None}, ["off"]),                                            # Ceph 18 and 20
    ({"handle_command": None}, ["off", "handle_command"]),               # Ceph 16
    ({}, ["off", "handle_command"]),
    ({"off": ImportError("no module"), "handle_command": ImportError("no module")},
     ["off", "handle_command"]),
    ({"off": RuntimeError("failed")}, ["off", "handle_command"])])
def test_switching_the_builtin_balancer_off(methods: Dict[str, Optional[Exception]], tried: List[str]) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.methods = methods
    gateway.switch_off_builtin_balancer()
    assert not gateway.builtin_balancer_active()
    assert [call[1] for call in mgr.remotes] == tried
    if "handle_command" in tried:
        assert mgr.remotes[-1][2:] == ("", {"prefix": "balancer off"})


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
    assert gateway.min_compat_client() == "luminous"
    assert "dump" not in mgr.calls and "pg_stats" not in mgr.calls
    mgr.monitor_answers, cluster.epoch = False, 101
    assert gateway.min_compat_client() == "luminous" and mgr.calls["dump"] == 1


# -- the summary ---------------------------------------------------------------------------------

def answering(cluster: Cluster) -> Callable[[Any], None]:
    """A monitor that says `osd stat` and which clients the map requires, in this order."""
    def answer(result: Any) -> None:
        osd_map = cluster.osd_map()
        answers = [f"4 osds: 4 up, 4 in; epoch: e1\nflags {osd_map['flags']}\n",
                   osd_map["require_min_compat_client"] + "\n"]
        result.r, result.outs = 0, ""
        result.outb = answers[answer.count % 2]  # type: ignore[attr-defined]
        answer.count += 1                        # type: ignore[attr-defined]
    answer.count = 0                             # type: ignore[attr-defined]
    return answer


def test_summary_reads_no_large_structure_and_asks_nobody() -> None:
    gateway, mgr, _ = open_gateway(small())
    summary = gateway.summary()
    assert set(mgr.calls) == {"osd_map_tree", "osd_stats", "pool_stats", "pg_status"}
    assert mgr.sent == [] and (summary.flags, summary.min_compat_client) == (None, None)
    assert (summary.epoch, summary.crush_version, summary.taken_at) == (100, 5, 1000.0)
    assert set(summary.osds) == {0, 1, 2, 3} and set(summary.pools) == {1, 2}


def test_flags_are_asked_for_once_an_epoch() -> None:
    cluster = small()
    cluster.extra["flags"] = "noout,norebalance"
    gateway, mgr, _ = open_gateway(cluster)
    mgr.answer = answering(cluster)
    for _ in range(5):
        summary = gateway.summary(with_map_settings=True)
        assert summary.flags == frozenset({"noout", "norebalance"})
        assert summary.min_compat_client == "luminous"
    assert [c["prefix"] for c in mgr.sent] == ["osd stat", "osd get-require-min-compat-client"]
    cluster.extra["flags"] = "noout"
    cluster.epoch += 1
    assert gateway.summary(with_map_settings=True).flags == frozenset({"noout"})
    assert len(mgr.sent) == 4


def test_monitor_that_does_not_answer_leaves_the_flags_unknown() -> None:
    gateway, mgr, clock = open_gateway(small())
    def silent(result: Any) -> None:
        result.ev.done = False
        result.ev.on_timeout = lambda seconds: setattr(clock, "now", clock.now + seconds)
    mgr.answer = silent
    assert gateway.summary(with_map_settings=True).flags is None
    assert clock.now <= 1010.0
    mgr.answer = answering(small())
    assert gateway.summary(with_map_settings=True).flags == frozenset({"sortbitwise"})


@pytest.mark.parametrize("name", ["osd_map_tree", "osd_stats", "pool_stats", "pg_status"])
def test_summary_is_not_ready_without_its_parts(name: str) -> None:
    gateway, mgr, _ = open_gateway(small())
    mgr.missing = [name]
    with pytest.raises(NotReady, match=name):
        gateway.summary()


def test_summary_does_not_wait_for_a_full_look() -> None:
    """A command may have one read while a look holds the gateway's lock for seconds."""
    gateway, _, _ = open_gateway(small())
    with gateway._lock:
        assert gateway.summary().epoch == 100


@pytest.mark.parametrize("value", [None, True, "true"])
def test_balancer_that_does_not_run_is_not_active(value: Any) -> None:
    """Ceph 20: `mgr module force disable balancer` leaves its option where it was."""
    gateway, mgr, _ = open_gateway(small())
    if value is not None:
        mgr.options["balancer", "active"] = value
    mgr.methods = {"gather_telemetry": ImportError("Module not found")}
    assert not gateway.builtin_balancer_active() and not gateway.summary().builtin_active
    mgr.methods = {"gather_telemetry": RuntimeError("it fails")}
    assert gateway.builtin_balancer_active()


def test_work_is_counted() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    assert gateway.counts == Counts()
    gateway.snapshot()
    gateway.snapshot()
    gateway.summary()
    gateway.send(changes(3), 1.0)
    assert gateway.counts == Counts(full_readings=2, pg_stats=1, osdmap_dumps=1, summaries=1,
                                    mon_commands=3)
