"""Cluster, monitor, backfill and clients in one virtual time."""

from __future__ import annotations

import json
import random
from typing import Any, Callable, Dict, List, Optional, Set

from ..cluster import map_update
from ..cluster.cluster import Cluster
from ..errors import Answer
from ..monitor.config import Config
from ..monitor.mon_store import MonStore
from ..monitor.monitor import Monitor
from ..osdmap.osd_map import MapChange
from .backfill import Backfill
from .client_load import ClientLoad, report_by_scrub
from .read_balancer import OsdAutoOut, ReadBalancer
from .pg_num_steps import PgNumSteps, change_pg_num, merging_pgs
from .reports import Reports
from .deletion import Schedule, Timer

#: Virtual seconds that a wait for the monitor lasts if it has no timeout.
_LONGEST_WAIT = 3600.0


class Simulation:
    """Everything except the mgr; it continues through failovers.

    All randomness comes from `seed`: the same seed and the same commands give the same run.
    """

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        self.cluster = cluster
        self.clock = cluster.clock
        self.rng = random.Random(seed)
        self.store = MonStore()
        self.config = Config(self.store.config)
        self._backfill_limits: Dict[int, int] = {}
        self._config_version = self.config.version
        self.monitor = Monitor(cluster, self.rng)
        self.backfill = Backfill(cluster, self._max_backfills)
        self.schedule = Schedule()
        self.client_load = ClientLoad(cluster, self.backfill)
        self.reports = Reports(cluster, seed, self.backfill.account_copied)
        #: True if a mgr is active; without one pg_num does not change.
        self.mgr_alive = True
        #: Always-on modules disabled by `mgr module force disable` (Ceph 20).
        self.disabled_modules: Set[str] = set()
        self.timers: List[Timer] = [
            self.schedule, OsdAutoOut(cluster, self.config, self.apply_change),
            PgNumSteps(cluster, self.monitor, self.config, lambda: self.mgr_alive),
            ReadBalancer(cluster, self.monitor, self.config, self._balancer_is_loaded),
            self.client_load, self.reports]
        report_by_scrub(cluster, self.schedule)

    def reseed(self, seed: int) -> None:
        """Restarts the random streams."""
        self.rng.seed(seed)
        self.reports.seed = seed

    def _balancer_is_loaded(self) -> bool:
        return self.mgr_alive and "balancer" not in self.disabled_modules

    def _max_backfills(self, osd: int) -> int:
        if osd not in self._backfill_limits:
            self._backfill_limits[osd] = int(self.config.core(f"osd.{osd}", "osd_max_backfills"))
        return self._backfill_limits[osd]

    # -- epochs -------------------------------------------------------------------------------

    def commit(self) -> None:
        """Makes the epochs of all due commands and peered PGs; time does not pass."""
        while True:
            peered = self.backfill.pop_peered()
            change = MapChange(pg_temp={
                pgid: acting for pgid, acting in peered.items()
                if self.cluster.map.pg_temp.get(pgid) != acting})
            answers = self.monitor.prepare(change)
            self.apply_change(change)
            self.backfill.report(peered)
            for answer in answers:
                answer()
            if not self.monitor.ready:
                break

    def answer_to(self, sender: str, command: Dict[str, Any]) -> Answer:
        """Sends the monitor a command and makes its epoch; returns the answer."""
        answers: List[Answer] = []

        def note(*answer: Any) -> None:
            answers.append(answer)
        self.monitor.submit_from(sender, json.dumps(command), note)
        self.commit()
        return answers[0]

    def apply_change(self, change: MapChange) -> None:
        """Makes the epoch of a change unless it is empty; StubError if CRUSH cannot be computed."""
        if not change:
            return
        pools = self.cluster.map.pools
        counts = dict.fromkeys(change.pools, 0)
        pairs: Set[str] = set()
        for pool_id, pool in change.pools.items():
            if pool_id in pools:
                counts[pool_id] = int(pools[pool_id]["pg_num"])
                pairs.update(pg.pgid for pg in merging_pgs(self.cluster, pools[pool_id], pool))
        touched = map_update.prepare(self.cluster, change) | pairs
        for pool_id, before in counts.items():
            after = int(self.cluster.map.pools[pool_id]["pg_num"])
            if after != before:
                touched |= change_pg_num(self.cluster, pool_id, before, after)
        self.monitor.clean(change)
        self.backfill.map_changed(map_update.apply(self.cluster, change, touched),
                                  change.is_pg_temp_only)

    # -- time ---------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Advances virtual time: backfill, peering, timers, and the epochs that result."""
        if self._config_version != self.config.version:
            self._config_version = self.config.version
            self._backfill_limits = {}
            self.cluster.pgs_withheld_from = int(
                float(self.config.core("osd", "mon_max_pg_per_osd"))
                * float(self.config.core("osd", "osd_max_pg_per_osd_hard_ratio")))
            self.cluster.max_log_entries = int(self.config.core("osd", "osd_max_pg_log_entries"))
            self.backfill.replan()
        self.commit()
        end = self.clock.now + seconds
        while True:
            due = self._next_moment()
            stop = end
            if due is not None:
                stop = min(end, max(due, self.clock.now))
            complete = self.backfill.next_completion()
            if complete is not None and self.clock.now + complete < stop:
                # by the span, not by the moment: a clock of 1e9 s has no resolution of 1e-8 s
                self._advance_clock(complete)
                continue
            self._advance_clock(max(0.0, stop - self.clock.now))
            if due is not None and due <= stop:
                self._run_due()
                self.commit()
            if stop >= end and not self._due_now():
                break
        self.backfill.account_copied()

    def wait_until(self, done: Callable[[], bool], timeout: Optional[float]) -> None:
        """Advances time until `done` or a timeout (seconds), for a caller that awaits an answer."""
        if timeout is None:
            timeout = _LONGEST_WAIT
        end = self.clock.now + timeout
        self.commit()
        while not done() and self.clock.now < end:
            due = self.monitor.next_moment()
            stop = end
            if due is not None and due > self.clock.now:
                stop = min(end, due)
            self.advance(stop - self.clock.now)

    def _next_moment(self) -> Optional[float]:
        moments = [self.backfill.next_peered(), self.backfill.next_retry(),
                   self.monitor.next_moment()]
        moments += [timer.next_moment() for timer in self.timers]
        return min((moment for moment in moments if moment is not None), default=None)

    def _due_now(self) -> bool:
        due = self._next_moment()
        return due is not None and due <= self.clock.now

    def _run_due(self) -> None:
        now = self.clock.now
        retry = self.backfill.next_retry()
        if retry is not None and retry <= now:
            self.backfill.replan()
        for timer in self.timers:
            moment = timer.next_moment()
            while moment is not None and moment <= now:
                timer.run()
                moment = timer.next_moment()

    def _advance_clock(self, seconds: float) -> None:
        """Advances the clock before copying: transfers complete at the new moment."""
        self.clock.now += seconds
        self.backfill.copy(seconds)

    def idle(self) -> bool:
        """Returns True if no data moves and nothing waits for an epoch."""
        if self.monitor.busy or not self.backfill.idle():
            return False
        return all(timer.idle() for timer in self.timers)
