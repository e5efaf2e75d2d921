"""Drains in the serve loop: the list, the shards left to move, and which OSDs are safe to stop."""
from __future__ import annotations

import threading
from typing import Callable, Mapping

from ..drain.drain_list import DrainList
from ..drain.status import DrainStatus, StuckDrains, may_lack_copies, remaining_shards
from ..execution.outcomes import Verdict
from ..execution.pending_moves import PendingMove
from ..gateway.gateway import Gateway
from ..observation.cluster_view import OFF, STUCK
from ..plan.options import OsdFilter
from ..settings import Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .balancing_scope import osd_filter
from .cluster_guards import is_open
from .journal import COMPLETED, DROPPED, Journal


#: Seconds after which stuck shards are tried again if they need a plan of their own, which
#: interrupts balancing within its limits.
_RETRY_SECONDS = 21600.0


class DrainControl:
    """Keeps the list of drains and their status, which it replaces whole. Commands replace the
    list, and the serve thread calls `observe`."""

    def __init__(self, gateway: Gateway, journal: Journal, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._journal = journal
        self._clock = clock
        self._lock = threading.Lock()
        self._planned_at = 0.0   # of the plan that found `status.stuck`, seconds since the epoch
        self.status = DrainStatus()

    @property
    def is_running(self) -> bool:
        """Returns True if shards have to leave OSDs now."""
        return self.status.drains.is_running

    @property
    def has_work(self) -> bool:
        """Returns True if a plan may find shards to move off drained OSDs."""
        if not self.is_running:
            return False
        if self.status.has_work:
            return True
        since = self._clock() - self._planned_at
        return bool(self.status.stuck) and not 0.0 <= since < _RETRY_SECONDS

    def replace(self, change: Callable[[DrainList], DrainList], store: bool = True,
                at_once: bool = False) -> None:
        """Replaces the list, and has the journal store it. `store`: False for the list as it was
        read from the store. `at_once`: stores it before this returns; a list that cannot be stored
        changes nothing."""
        with self._lock:
            before = self.status.drains
            drains = change(before)
            if store and drains != before:
                self._journal.record_drains(drains.to_dict(), at_once)
            self._gateway.drained = drains.osds
            if drains == before:
                return
            is_same = drains.osds == before.osds
            self.status = self.status._replace(
                drains=drains, stuck=self.status.stuck if is_same else (),
                remaining={osd: left for osd, left in self.status.remaining.items()
                           if osd in drains.names},
                down=self.status.down & drains.osds,
                stop_check=self.status.stop_check if is_same else None)

    def observe(self, snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> bool:
        """Updates the status by a newer snapshot. Returns True if an OSD has left the list.

        The snapshot shows the shards that are left, and the OSDs that no longer exist or have
        another disk. Asks the mgr whether empty OSDs may be stopped, which takes some seconds at
        most.
        """
        listed = self.status.drains
        if not listed.names:
            return False
        before = listed.osds
        now = self._clock()
        self.replace(lambda drains: drains.without_gone(snapshot.osds, now))
        osds = self.status.drains.osds
        remaining = remaining_shards(snapshot, osds, [
            (pgid, entry.sources) for pgid, entry in list(pending.items())])
        down = frozenset([osd for osd in osds & snapshot.osds.keys() if not snapshot.osds[osd].up])
        lacking = not down or may_lack_copies(snapshot)
        with self._lock:
            if self.status.drains.osds == osds:   # else a command has just changed the list
                self.status = self.status._replace(remaining=remaining, down=down,
                                                   is_lacking=lacking, epoch=snapshot.epoch)
        empty = self.status.empty_osds
        check = self._gateway.stop_check(empty) if empty else None
        with self._lock:
            if self.status.empty_osds == empty:
                self.status = self.status._replace(stop_check=check)
        return bool(before - osds)

    def observe_plan(self, stuck: StuckDrains) -> None:
        """Notes the shards without another place, by the last plan."""
        self._planned_at = stuck.planned_at
        with self._lock:
            drained = self.status.drains.osds
            self.status = self.status._replace(
                stuck=tuple([one for one in stuck.shards if one.osd in drained]))

    def drains_only(self, settings: Settings) -> bool:
        """Returns True if the next plan only drains OSDs: automatic balancing is off, or drains
        have work and balancing is outside its window or limited to some of the data."""
        if not self.is_running:
            return False
        if not settings.active:
            return True
        if not self.has_work:
            return False
        if settings.pool_ids is not None or settings.device_classes is not None:
            return True
        return osd_filter(settings) != OsdFilter() or not is_open(settings, self._clock())

    def at_rest(self, found: Verdict, settings: Settings) -> Verdict:
        """Returns the idle state with the drains. `found`: that of automatic balancing."""
        stuck = self.status.stuck_sentence
        if not self.is_running or settings.active and not stuck:
            return found
        if stuck:
            return Verdict(codes.CANNOT_LEAVE, stuck,
                           {"osd": min(one.osd for one in self.status.stuck)}, STUCK)
        return Verdict(codes.SWITCHED_OFF,
                       f"automatic balancing is off; {self.status.result_sentence}", state=OFF)

    def ending_of(self, found: Verdict) -> str:
        """Returns how the episode ends before an idle state."""
        if found.state != OFF:
            return found.state
        is_done = self.status.empty_osds == self.status.drains.osds != frozenset()
        return f"{COMPLETED if is_done else DROPPED}: {self.status.result_sentence}"
