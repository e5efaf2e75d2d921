"""Test-only mgr module: does equilibrium's work on a made cluster, in the mgr's own process.

`ceph planner_load begin plan|look|poll`, `ceph planner_load end`, `ceph planner_load status`,
`plan` makes plans one after the other with equilibrium's own plan service and job thread. `look`
does what follows each reading of the cluster: snapshot, reachable evenness, view, report. `poll`
has a gateway read the cluster of this mgr. The made
reading is READING_FILE in the folder of this module, where measure_stall.py has left it.

What it does is imported from the mgr module `equilibrium`, late: at load time equilibrium's
commands would become this module's, too. No `from __future__ import annotations` here, for Ceph
reads the annotations of the handlers.
"""
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple

import mgr_module
from mgr_module import MgrModule, Option

if hasattr(mgr_module, "CLICommandBase"):   # Ceph 20
    CLICommand = mgr_module.CLICommandBase.make_registry_subtype("PlannerLoadCLICommand")
else:
    CLICommand = mgr_module.CLICommand

READING_FILE = "reading.json"
PLAN_SECONDS = 600.0


class Module(MgrModule):
    """Runs one kind of work over and over until it is told to stop."""

    CLICommand = CLICommand
    MODULE_OPTIONS: List[Option] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._over = threading.Event()
        self._wanted = ""
        self._wake = threading.Event()
        self._rounds = 0
        self._failure = ""

    @CLICommand("planner_load begin")
    def _cmd_begin(self, work: str) -> Tuple[int, str, str]:
        """Do `plan` or `look` over and over"""
        self._wanted, self._rounds = work, 0
        self._wake.set()
        return 0, "", ""

    @CLICommand("planner_load end")
    def _cmd_end(self) -> Tuple[int, str, str]:
        """Stop after what is under way"""
        self._wanted = ""
        return 0, "", ""

    @CLICommand("planner_load status")
    def _cmd_status(self) -> Tuple[int, str, str]:
        """Rounds done since `begin`, what is done now, and why it failed"""
        return 0, json.dumps({"rounds": self._rounds, "doing": self._wanted,
                              "failure": self._failure}), ""

    def serve(self) -> None:
        """The loop of the serve thread; returns only at shutdown."""
        while not self._over.is_set():
            self._wake.wait()
            self._wake.clear()
            try:
                self._work()
            except Exception as error:
                self.log.exception("the made work failed")
                self._failure = f"{type(error).__name__}: {error}"

    def shutdown(self) -> None:
        """Ends the loop."""
        self._wanted = ""
        self._over.set()
        self._wake.set()

    def _work(self) -> None:
        name = self._wanted
        if not name:
            return
        works = {"plan": planning, "look": looking, "poll": polling}
        work = works[name](self)
        while self._wanted == name:
            work(lambda: self._wanted == name)
            self._rounds += 1


Work = Callable[[Callable[[], bool]], None]   # one round; is told whether to go on


def planning(mgr: Any) -> Work:
    """Plans by equilibrium's plan service in its job thread, which gives way to others."""
    from equilibrium.plan.options import PlanOptions
    from equilibrium.plan_service.plan_service import PlanService
    from equilibrium.runtime.job_thread import JobThread, WorkCounters
    from equilibrium.snapshot.builder import SnapshotBuilder
    snapshot = SnapshotBuilder().build(_reading())
    unused: Any = None
    gateway: Any = SimpleNamespace(epoch=lambda: snapshot.epoch, counters=WorkCounters(),
                                   max_pg_shards=lambda: (0, 0))
    jobs = JobThread(mgr.log)

    def work(going_on: Callable[[], bool]) -> None:
        service = PlanService(gateway, unused, jobs, time.time, mgr.log)
        done = threading.Event()
        service.submit_automatic(snapshot, PlanOptions(), PLAN_SECONDS, lambda plan: done.set())
        while not done.wait(0.2):
            if not going_on():
                service.stop()
                return
            if service.last_failure(""):
                raise RuntimeError(service.last_failure(""))
    return work


def looking(_mgr: Any) -> Work:
    """What the serve loop does with each reading, and what `eval` prints of it."""
    from equilibrium.execution.pending_moves import PendingMoves
    from equilibrium.observation.cluster_view import make_view
    from equilibrium.planner.bound.lower_bound import utilization_bounds
    from equilibrium.report.cluster.evaluation import Look, evaluate_cluster
    from equilibrium.runtime.time_slice import giving_way
    from equilibrium.snapshot.builder import SnapshotBuilder
    reading, builder = _reading(), SnapshotBuilder()

    def work(_going_on: Callable[[], bool]) -> None:
        with giving_way():
            snapshot = builder.build(reading)
            bounds = utilization_bounds(snapshot, frozenset())
            view = make_view(snapshot, bounds, PendingMoves(), 0.05, False)
            evaluate_cluster(Look(view, 0.0, {}))
    return work


def polling(mgr: Any) -> Work:
    """Equilibrium's gateway reads the mgr's own maps and statistics, and builds a snapshot."""
    from equilibrium.gateway.gateway import Gateway
    from equilibrium.runtime.time_slice import giving_way
    gateway = Gateway(mgr, time.time)

    def work(_going_on: Callable[[], bool]) -> None:
        with giving_way():
            gateway.snapshot()
        time.sleep(1.0)
    return work


def _reading() -> Any:
    from equilibrium.snapshot.model import PgRecord, Reading
    fields: Dict[str, Any] = json.loads((Path(__file__).parent / READING_FILE).read_text())
    fields["records"] = {pgid: PgRecord(*record) for pgid, record in fields["records"].items()}
    fields["up"] = {pgid: tuple(osds) for pgid, osds in fields["up"].items()}
    fields["max_avail"] = {int(pool): size for pool, size in fields["max_avail"].items()}
    fields["stale_osds"] = frozenset(fields["stale_osds"])
    return Reading(**fields)
