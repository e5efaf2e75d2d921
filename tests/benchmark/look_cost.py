"""What equilibrium's readings cost in processor time, on made clusters of several sizes.

    python3 -m tests.benchmark.look_cost [--osds 1000 3000 10000]

The mgr is a stand-in that makes new lists and dicts at each call, as Ceph's does; what it takes to
make them is not in the figures, but for up sets. Each is the median of three, in processor seconds:

summary        what a round looks at while nothing is to be done
first look     all is read and a snapshot made; once
look           the same after clients have written to 100 PGs
its view       the bounds and the view for `status` and `eval`
new epoch      a look after a new epoch; once
scrape         one answer to Prometheus; with --scrapes N the median and the slowest of N
"""
from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
from statistics import median
from typing import Any, Callable, Dict, List, Optional, Sequence, cast

from mgr_stub.mgr.install import install  # noqa: E402

install(18)

from tests.benchmark.made.scale import large_reading  # noqa: E402

from equilibrium_mgr.control.history import Totals  # noqa: E402
from equilibrium_mgr.control.status import BalancerStatus  # noqa: E402
from equilibrium_mgr.execution.outcomes import Cooldown  # noqa: E402
from equilibrium_mgr.execution.pending_moves import PendingMoves  # noqa: E402
from equilibrium_mgr.gateway.gateway import Gateway  # noqa: E402
from equilibrium_mgr.observation.cluster_view import make_view, with_figures_of_now
from equilibrium_mgr.observation.movements import PLAN, Movement  # noqa: E402
from equilibrium_mgr.observation.observer import ClusterObserver  # noqa: E402
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds  # noqa: E402
from equilibrium_mgr.report.metrics import report_metrics
from equilibrium_mgr.settings import default_settings  # noqa: E402
from equilibrium_mgr.snapshot.model import PgRecord, Snapshot

POOLS = {1000: 64, 3000: 80, 10000: 100}
TIMES = 3
CHANGED_PGS, WRITTEN = 100, 64 << 20


class MadeMap:
    """An OSDMap of the made cluster."""

    def __init__(self, mgr: MadeMgr) -> None:
        self._mgr = mgr

    def get_epoch(self) -> int:
        return self._mgr.epoch

    def get_crush_version(self) -> int:
        return 1

    def dump(self) -> Dict[str, Any]:
        return dict(json.loads(self._mgr.osd_map), epoch=self._mgr.epoch)

    def get_crush(self) -> Any:
        crush = self._mgr.reading.crush

        class Crush:
            def dump(self) -> Any:
                return crush
        return Crush()

    def map_pool_pgs_up(self, pool: int) -> Dict[str, List[int]]:
        return {pgid: list(up) for pgid, up in self._mgr.by_pool[pool].items()}

    def pg_to_up_acting_osds(self, pool: int, ps: int) -> Dict[str, List[int]]:
        up = self._mgr.by_pool[pool].get(f"{pool}.{ps:x}", ())
        return {"up": list(up), "acting": list(up)}


class MadeMgr:
    """As much of MgrModule as the gateway asks for."""

    def __init__(self, osds: int) -> None:
        pools = POOLS.get(osds, 64)
        self.reading = large_reading(osds, pools)
        self.osd_map = json.dumps(self.reading.osd_map)
        self.epoch = 5
        self.answering = 0.0   # processor seconds that `get` has taken
        self._random = random.Random(1)
        self.by_pool: Dict[int, Dict[str, Any]] = {pool: {} for pool in range(1, pools + 1)}
        for pgid, up in self.reading.up.items():
            self.by_pool[int(pgid.split(".")[0])][pgid] = up

    def get_osdmap(self) -> MadeMap:
        return MadeMap(self)

    def get(self, name: str) -> Any:
        started = time.process_time()
        found = getattr(self, "_" + name)()
        self.answering += time.process_time() - started
        return found

    def get_ceph_option(self, _key: str) -> Any:
        return 0.05

    def write(self, pgs: int) -> None:
        """Clients write to some PGs, and their OSDs report it."""
        stats = {entry["osd"]: entry["statfs"] for entry in self.reading.osd_stats}
        records = cast(Dict[str, PgRecord], self.reading.records)
        for pgid in self._random.sample(sorted(records), pgs):
            records[pgid] = records[pgid]._replace(num_bytes=records[pgid].num_bytes + WRITTEN)
            for osd in self.reading.up[pgid]:
                stats[osd]["available"] -= WRITTEN

    def _pg_progress(self) -> Any:
        return {"pg_ready": True, "pgs": {
            pgid: {"num_bytes_recovered": 0, "num_bytes": record.num_bytes, "reported_epoch": 5,
                   "state": record.state} for pgid, record in self.reading.records.items()}}

    def _pg_stats(self) -> Any:
        return {"pg_stats": [
            {"pgid": pgid, "state": record.state, "reported_epoch": 5,
             "up": list(self.reading.up[pgid]), "acting": list(self.reading.up[pgid]),
             "stat_sum": {"num_bytes": record.num_bytes, "num_objects": record.num_objects,
                          "num_omap_bytes": 0}} for pgid, record in self.reading.records.items()]}

    def _pool_stats(self) -> Any:
        return {"pool_stats": [
            {"poolid": pool, "num_pg": len(pgs), "store_stats": {}, "stat_sum": {
                "num_objects": 50_000 * len(pgs), "num_object_copies": 150_000 * len(pgs)}}
            for pool, pgs in self.by_pool.items()]}

    def _osd_stats(self) -> Any:
        return {"osd_stats": [dict(stats) for stats in self.reading.osd_stats]}

    def _pg_status(self) -> Any:
        return {"pgs_by_pool_state": [], "misplaced_objects": 0}

    def _health(self) -> Any:
        return {"json": "{}"}

    def _df(self) -> Any:
        return {"pools": [{"id": pool, "name": f"pool{pool}", "stats": {"max_avail": 1}}
                          for pool in self.by_pool]}

    def _osd_map_tree(self) -> Any:
        return {"nodes": [], "stray": [
            {"id": osd["osd"], "type": "osd", "exists": 1, "status": "up", "crush_weight": 1.0,
             "reweight": 1.0, "primary_affinity": 1.0, "device_class": "hdd"}
            for osd in self.reading.osd_map["osds"]]}

    def send_command(self, result: Any, _service: str, _who: str, command: str, _tag: str) -> None:
        text = "luminous\n" if "client" in command else "1 osds: 1 up, 1 in; epoch: e5\n"
        result.complete(0, text, "")

    def have_mon_connection(self) -> bool:
        return True

    def get_module_option_ex(self, _module: str, _key: str, default: Any = None) -> Any:
        return default

    def get_module_option(self, _key: str, default: Any = None) -> Any:
        return default

    def remote(self, *_arguments: Any) -> None:
        return None


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures and prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--osds", type=int, nargs="+", default=[1000, 3000, 10000])
    parser.add_argument("--scrapes", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    if options.scrapes:
        print(*(scrapes(osds, options.scrapes) for osds in options.osds), sep="\n")
        return 0
    print("| OSDs | PGs | summary | first look | its view | look | its view | new epoch"
          " | scrape |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for osds in options.osds:
        print(row(osds), flush=True)
    return 0


def row(osds: int) -> str:
    """One line of the table."""
    mgr = MadeMgr(osds)
    gateway = Gateway(cast(Any, mgr), time.time)
    observer = ClusterObserver(gateway, PendingMoves(), Cooldown(), time.time, logging.getLogger())
    looks: List[Snapshot] = []

    def cost(work: Callable[[], Any]) -> float:
        before = mgr.answering
        return seconds(work) + before - mgr.answering

    def look() -> None:
        looks[:] = [gateway.snapshot()]

    def view() -> None:
        observer.update_view(looks[0], default_settings())
    first = [cost(look), cost(view)]
    summary = median(cost(lambda: gateway.summary(with_map_settings=True)) for _ in range(TIMES))
    later: List[List[float]] = []
    for _ in range(TIMES):
        mgr.write(CHANGED_PGS)
        later.append([cost(look), cost(view)])
    mgr.write(CHANGED_PGS)
    mgr.epoch += 1
    new_epoch = cost(look)
    scrape = scraping(gateway, looks[0])
    figures = [summary, *first, *map(median, zip(*later)), new_epoch,
               median(seconds(scrape) for _ in range(TIMES))]
    shown = " | ".join(f"{figure:.3f}" for figure in figures)
    return f"| {osds} | {len(looks[0].pgs)} | {shown} |"


def scrapes(osds: int, times: int) -> str:
    """How long a scrape takes: of the processor, and in real time on this machine."""
    gateway = Gateway(cast(Any, MadeMgr(osds)), time.time)
    scrape = scraping(gateway, gateway.snapshot())
    spent: List[float] = []
    taken: List[float] = []
    for _ in range(times):
        started = time.perf_counter()
        spent.append(1000.0 * seconds(scrape))
        taken.append(1000.0 * (time.perf_counter() - started))
    return (f"{osds} OSDs: {times} scrapes, median {median(spent):.1f} ms of the processor, most"
            f" {max(spent):.1f} ms; real time {median(taken):.1f} and {max(taken):.1f} ms")


def scraping(gateway: Gateway, snapshot: Snapshot) -> Callable[[], str]:
    """What answers a scrape while a sixth of the PGs moves."""
    ids = list(snapshot.pgs)[::6]
    moving = tuple(Movement(pgid, 1, 0, 1, 1 << 30, 1 << 29, "backfilling", PLAN) for pgid in ids)
    view = make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)._replace(
        movements=moving)

    def scrape() -> str:
        now = with_figures_of_now(view, gateway.summary())
        return report_metrics(BalancerStatus(view=view), Totals(), time.time(), True, now,
                              time.time()).plain
    return scrape


def seconds(work: Callable[[], Any]) -> float:
    """Processor seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
