"""The real daemons: begins the cluster, does events with Ceph's own commands, tells the view."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, Dict, List

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for
from . import cluster_shape as shape
from .events import Event

HERE = Path(__file__).resolve().parent
PASSING = {"peering", "activating", "creating", "unknown", "premerge", "stale", "wait", "laggy"}
"""States that a PG does not stay in."""
MOVING = {"backfilling", "recovering", "backfill_wait", "recovery_wait"}
NUMBERS = ("pg_num", "pg_num_target", "pg_placement_num", "pg_placement_num_target")
"""Of a pool: they differ while it is split or merged."""
QUIET_SECONDS, QUIET_MOVING_SECONDS, QUIET_DEFERRED_SECONDS = 2.5, 6.0, 33.0
"""So long nothing may change before a step counts as done; longer where something could move.

A PG whose backfill is deferred (a reservation was refused or revoked) is `active+remapped` with
nothing going on until osd_backfill_retry_interval, 30 s, has passed."""
SETTLE_SECONDS = 180.0
PAUSE_SECONDS = 0.4

WRITER = """
import rados, sys
cluster = rados.Rados(conffile=sys.argv[1], name='client.admin')
cluster.connect()
prefix = sys.argv[2]
for pool, count in zip(sys.argv[3::2], sys.argv[4::2]):
    io = cluster.open_ioctx(pool)
    waiting = []
    for number in range(int(count)):
        waiting.append(io.aio_write_full('%s%d' % (prefix, number), b'x' * 4096))
        if len(waiting) > 60:
            [one.wait_for_complete() for one in waiting]
            waiting = []
    [one.wait_for_complete() for one in waiting]
"""

FAST = ("osd_recovery_sleep_hdd", "osd_recovery_sleep_hybrid", "osd_recovery_sleep_ssd",
        "osd_recovery_sleep_degraded_hdd", "osd_recovery_sleep_degraded_hybrid",
        "osd_recovery_sleep_degraded_ssd")
"""Set to 0 where the release has them: seconds between two objects."""

REPORTS = ("osd_pg_stat_report_interval_max", "osd_pg_stat_report_interval_max_epochs")
"""Set to 1 where the release has them: a PG reports again with each epoch."""

OPTIONS: Dict[str, Dict[str, Any]] = {
    "osd": {"osd_min_pg_log_entries": 10, "osd_max_pg_log_entries": shape.MOST_LOG_ENTRIES,
            "osd_pg_log_trim_min": 1},
    "mon": {"mon_allow_pool_delete": "true", "mon_osd_down_out_interval": 100000,
            "mon_osd_min_in_ratio": 0.1},
    "mgr": {"target_max_misplaced_ratio": 1.0}}


class RealCluster(DaemonCluster):
    """Ten OSDs, nine of them in the CRUSH map, with the probe module beside equilibrium."""

    spares = len(shape.SPARES)

    def __enter__(self) -> RealCluster:
        super().__enter__()
        return self

    def _write_files(self) -> None:
        super()._write_files()
        lines = self.conf.read_text().splitlines()
        slots = [f"osd max backfills = {shape.MAX_BACKFILLS}" if "max backfills" in line else line
                 for line in lines]
        self.conf.write_text("\n".join(slots) + "\n")

    def _fill_module_folder(self, folder: Path) -> None:
        super()._fill_module_folder(folder)
        shutil.copytree(HERE / "probe", folder / "probe",
                        ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("shapes.py", "view.py"):
            shutil.copy(HERE / name, folder / "probe")

    # -- the beginning ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the pools, write to them and enable the modules."""
        self.mgr("balancer off")
        for name, profile in shape.PROFILES.items():
            self.mon("osd erasure-code-profile set", name=name, profile=profile)
        pools = shape.pools_of(self.release.major)
        for pool in pools:
            self.mon("osd pool create", **shape.pool_arguments(pool))
            self.mon("osd pool application enable", pool=pool.name, app="rados")
            if pool.optimized:
                self.mon("osd pool set", pool=pool.name, var="allow_ec_optimizations", val="true")
        self._set_options("mon")
        self._set_options("mgr")
        perhaps = {**dict.fromkeys(FAST, "0"), **dict.fromkeys(REPORTS, "1")}
        for name, value in perhaps.items():
            self._ask("config set", who="osd", name=name, value=value)
        self.settle()
        self._write([pool for pool in pools if not pool.trimmed])
        self._set_options("osd")
        self._write([pool for pool in pools if pool.trimmed])
        for module in ("probe", "equilibrium"):
            self.mon("mgr module enable", module=module)
        wait_for("both modules", self._modules_answer, 90)
        self.settle()

    def _set_options(self, who: str) -> None:
        for name, value in OPTIONS[who].items():
            self.set_config(who, name, value)

    def _ask(self, prefix: str, **arguments: Any) -> int:
        """The return code of a monitor command, whatever it is."""
        return self.agent.ask("mon", {"prefix": prefix, **arguments}).rc

    def _modules_answer(self) -> bool:
        """The mgr starts again with each module that is enabled, and may forget a command then."""
        if not self.active_mgr():
            return False
        try:
            for module in ("probe", "equilibrium"):
                if self.mgr(f"{module} status", 10).rc:
                    return False
        except ClusterError:
            return False
        return True

    def _write(self, pools: List[shape.PoolShape]) -> None:
        self._write_objects("o", {pool.name: pool.objects for pool in pools})

    def _write_objects(self, prefix: str, counts: Dict[str, int]) -> None:
        """Writes objects of 4 KiB, whose names begin with `prefix`, to pools."""
        script = self.work / "fill.py"
        script.write_text(WRITER)
        words: List[str] = []
        for name, count in counts.items():
            words += (name, str(count))
        self.processes.check(["python3", str(script), str(self.conf), prefix, *words], 120)

    def state(self) -> Dict[str, Any]:
        """The cluster as a state file has it."""
        def read(name: str) -> Any:
            return self.mgr("probe get", name=name).json()
        return {"stateversion": 1, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
                "osd_dump": read("osd_map"), "crush_dump": read("osd_map_crush"),
                "pg_dump": {"pg_ready": True, "pg_map": read("pg_dump")}, "df_dump": read("df")}

    # -- events ----------------------------------------------------------------------------------

    def do(self, event: Event) -> int:
        """Do one event; the return code of its command, 0 where it has none or has to succeed."""
        return getattr(self, f"_do_{event.kind}")(*event.values) or 0

    def _do_out(self, osd: int) -> int:
        return self._ask("osd out", ids=[str(osd)])

    def _do_in(self, osd: int) -> int:
        return self._ask("osd in", ids=[str(osd)])

    def _do_reweight(self, osd: int, weight: float) -> int:
        return self._ask("osd reweight", id=osd, weight=weight)

    def _do_crush_reweight(self, osd: int, weight: float) -> int:
        return self._ask("osd crush reweight", name=f"osd.{osd}", weight=weight)

    def _do_affinity(self, osd: int, weight: float) -> int:
        return self._ask("osd primary-affinity", id=osd, weight=weight)

    def _do_remove_pool(self, name: str) -> int:
        return self._ask("osd pool rm", pool=name, pool2=name, yes_i_really_really_mean_it=True)

    def _do_pg_num(self, name: str, count: int) -> int:
        return self._ask("osd pool set", pool=name, var="pg_num", val=str(count))

    def _do_upmap(self, pgid: str, *pairs: int) -> int:
        return self._ask("osd pg-upmap-items", pgid=pgid, id=pairs)

    def _do_remove_upmap(self, pgid: str) -> int:
        return self._ask("osd rm-pg-upmap-items", pgid=pgid)

    def _do_set_flag(self, flag: str) -> int:
        return self._ask("osd set", key=flag)

    def _do_unset_flag(self, flag: str) -> int:
        return self._ask("osd unset", key=flag)

    def _do_down(self, osd: int) -> None:
        self.processes.end(f"osd.{osd}", hard=True)
        self.mon("osd down", ids=[str(osd)])

    def _do_up(self, osd: int) -> None:
        self.start_osd(osd)
        wait_for(f"osd.{osd} up", lambda: self.osd_dump()["osds"][osd]["up"], 60)

    def _do_set_out_interval(self, seconds: int) -> None:
        self.set_config("mon", "mon_osd_down_out_interval", seconds)

    def _do_await_out(self, osd: int) -> None:
        wait_for(f"osd.{osd} out", lambda: not self.osd_dump()["osds"][osd]["in"], 60)

    def _do_pass(self, seconds: float) -> None:
        time.sleep(seconds)

    def _do_write(self, pool: str, objects: int, prefix: str) -> None:
        self._write_objects(prefix, {pool: objects})

    def _do_add_osd(self, osd: int, host: str, weight: float) -> None:
        self.place(osd, weight, host)

    def _do_create_pool(self, name: str, pgs: int, kind: str) -> None:
        profile = "k2m1" if kind == "erasure" else ""
        pool = shape.PoolShape(name, pgs, 3, profile, 0)
        self.mon("osd pool create", **shape.pool_arguments(pool))

    def _do_fail_mgr(self) -> None:
        before = self.mgr_dump()
        self.mon("mgr fail", who=before["active_name"])
        self.wait_other_mgr(before["active_gid"])
        wait_for("both modules", self._modules_answer, 60)

    # -- what is told ----------------------------------------------------------------------------

    def view(self) -> Dict[str, Any]:
        """What the probe module sees."""
        answer = self.mgr("probe view")
        if answer.rc:
            raise ClusterError(f"probe view: rc {answer.rc}: {answer.err}")
        return answer.json()

    def settle(self) -> Dict[str, Any]:
        """Wait until nothing changes any more; the last view, {} before the probe is there.

        A PG that recovers, but may not, does not report what it hears of old members: it does
        with the next epoch.
        """
        self._wait_quiet()
        if any("recover" in state for state in self._odd_states().values()):
            for command in ("osd set", "osd unset"):
                self.mon(command, key="nodeep-scrub")
            self._wait_quiet()
        return self.view() if self.mgr("probe status").rc == 0 else {}

    def _wait_quiet(self) -> None:
        since, last = time.monotonic(), ""
        deadline = since + SETTLE_SECONDS
        while True:
            now, quiet = self._signature()
            if now != last:
                since, last = time.monotonic(), now
            elif time.monotonic() - since >= quiet:
                break
            if time.monotonic() > deadline:
                print(f"not settled after {SETTLE_SECONDS:.0f} s: {self._odd_states()}")
                break
            time.sleep(PAUSE_SECONDS)

    def _odd_states(self) -> Dict[str, str]:
        return {pg["pgid"]: pg["state"] for pg in self.pg_stats() if pg["state"] != "active+clean"}

    def _signature(self) -> tuple[str, float]:
        """What may not change, and for how long; a new one each time while PGs pass through."""
        osdmap, pgs = self.osd_dump(), self.pg_stats()
        here = {osd["osd"] for osd in osdmap["osds"] if osd["up"]}
        count, quiet, moment = 0, QUIET_SECONDS, 0.0
        for pool in osdmap["pools"]:
            count += pool["pg_num"]
            if len({pool[name] for name in NUMBERS}) > 1:
                quiet = QUIET_MOVING_SECONDS
        rows = []
        for pg in pgs:
            state, sums = set(pg["state"].split("+")), pg["stat_sum"]
            rows.append((pg["pgid"], pg["state"], pg["up"], pg["acting"],
                         sums["num_objects_misplaced"], sums["num_objects_degraded"]))
            if state & MOVING:
                quiet = max(quiet, QUIET_MOVING_SECONDS)
            elif "remapped" in state and "clean" not in state:
                quiet = QUIET_DEFERRED_SECONDS
            # nobody is left to report those that stay stale
            if state & PASSING and here.intersection(pg["up"], pg["acting"]):
                moment = time.monotonic()
        if len(rows) != count:
            moment = time.monotonic()
        return f"{moment} {osdmap['epoch']} {sorted(rows)}", quiet
