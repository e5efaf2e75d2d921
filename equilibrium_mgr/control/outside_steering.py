"""What steering leaves as it is: shards that moved before it was on, and all shards while a plan
with a name is executed."""
from __future__ import annotations

from typing import Any, FrozenSet, Optional

from ..observation.cluster_view import ClusterView
from ..observation.movements import CRUSH, RECOVERY
from ..settings import Settings
from ..snapshot.model import Snapshot
from .cluster_guards import is_limited, is_open


class OutsideSteering:
    """Compares each snapshot with the first one of the plan, and notes what moves when shards begin
    to be held."""

    def __init__(self) -> None:
        #: PGs in flight when automatic balancing began to hold shards where their data is
        self.moved_before: FrozenSet[str] = frozenset()
        self._was_holding = False
        self._plan: Optional[str] = None   # that is executed
        self._topology: Any = None         # as it began
        self._has_changed = False          # since then

    def observe(self, plan: Optional[str], snapshot: Snapshot, settings: Settings) -> None:
        """Compares. `plan`: the one with a name that is executed, or None."""
        is_holding = holds_placement(settings)
        if is_holding and not self._was_holding:
            self.moved_before = frozenset(snapshot.in_flight())
        self._was_holding = is_holding
        weights = {osd.id: osd.reweight for osd in snapshot.osds.values() if osd.is_in}
        topology = snapshot.crush_version, weights
        if plan != self._plan:
            self._plan = plan
            self._topology = topology
        self._has_changed = topology != self._topology

    def plan_before(self, view: Optional[ClusterView], settings: Settings, now: float) -> str:
        """Returns the plan, if it keeps shards from being steered that Ceph has not begun to copy;
        else empty text. `now`: seconds since the epoch."""
        if view is None or not self._has_changed:
            return ""
        if not (settings.steers and is_open(settings, now)):
            return ""
        for move in view.movements:
            if move.origin in (CRUSH, RECOVERY) and not move.is_running:
                return self._plan or ""
        return ""


def holds_placement(settings: Settings) -> bool:
    """Returns True if shards that CRUSH moves are kept where their data is, at any time of day."""
    return settings.active and settings.hold_placement and not is_limited(settings)
