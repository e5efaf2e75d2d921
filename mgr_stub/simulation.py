"""Cluster, monitor and backfill in one virtual time."""

from __future__ import annotations

from .backfill import Backfill
from .cluster import Cluster, MapChange
from .config import Config
from .mon_store import MonStore
from .monitor import Monitor


class Simulation:
    """What exists apart from the mgr: it goes on through a failover."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clock = cluster.clock
        self.store = MonStore()
        self.config = Config(self.store.config)
        self.monitor = Monitor(cluster)
        self.backfill = Backfill(cluster, self._max_backfills)

    def _max_backfills(self) -> int:
        return int(self.config.core("osd", "osd_max_backfills"))

    def commit(self) -> None:
        """Makes the epochs for all that the monitor has been sent; time does not pass."""
        while True:
            peered = self.backfill.take_peered()
            change = MapChange(pg_temp={
                pgid: acting for pgid, acting in peered.items()
                if self.cluster.map.pg_temp.get(pgid) != acting})
            answers = self.monitor.prepare(change)
            if change:
                self.monitor.clean(change)
                self.backfill.map_changed(self.cluster.apply(change))
            self.backfill.report(peered)
            for answer in answers:
                answer()
            if not self.monitor.busy:
                break

    def advance(self, seconds: float) -> None:
        """Lets virtual time pass: backfill, peering and the epochs they make."""
        self.commit()
        end = self.clock.now + seconds
        while True:
            due = self.backfill.next_temp()
            stop = end if due is None else min(end, due)
            complete = self.backfill.next_completion()
            if complete is not None and self.clock.now + complete < stop:
                # by the time span, not by the moment: a clock of 1e9 s cannot tell 1e-8 s apart
                self._pass(complete)
                continue
            self._pass(max(0.0, stop - self.clock.now))
            if due is not None and due <= stop:
                self.commit()
            if stop >= end:
                break
        self.backfill.settle()

    def _pass(self, seconds: float) -> None:
        """The clock goes first: what ends by the copying ends at the new moment."""
        self.clock.now += seconds
        self.backfill.copy(seconds)

    def idle(self) -> bool:
        """Whether nothing moves and nothing waits for an epoch."""
        return not self.monitor.busy and self.backfill.idle()
