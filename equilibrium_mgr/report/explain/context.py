"""The sources of an explanation: the view, the status of the loop and the settings. An explanation
reads nothing from the cluster."""
from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional

from ...control.balancing_scope import automatic_options
from ...control.status import BalancerStatus
from ...execution.outcomes import ExcludedPgs, Items
from ...observation.cluster_view import BALANCED, HELD_UP, STUCK, ClusterView
from ...plan.model import Usage
from ...plan.options import PgShardLimits, PlanOptions
from ...planner.refusal_census import RefusalCensus
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot
from ...undo.change_log import ChangeLog, ChangeRow


class ExplainContext(NamedTuple):
    """Everything that an explanation rests on."""

    view: ClusterView
    status: BalancerStatus
    settings: Settings
    excluded: ExcludedPgs = ExcludedPgs()
    max_pg_shards: PgShardLimits = PgShardLimits()
    now: float = 0.0   # seconds since the epoch
    #: (snapshot, options, pool id, pg_num) → the usage after a plan; None until that is made
    plan_pg_num: Callable[[Snapshot, PlanOptions, int, int], Optional[Usage]] = (
        lambda *_: None)
    changes: Optional[ChangeLog] = None   # None: nothing was ever sent

    @property
    def snapshot(self) -> Snapshot:
        """Returns the cluster as it was last observed."""
        return self.view.snapshot

    @property
    def rejected(self) -> Items:
        """Returns the upmap items that the monitor dropped, or whose PG an OSD withheld, of PGs
        that plans leave alone now."""
        return {pgid: item for pgid, item in self.status.rejected.items()
                if pgid in self.excluded.rejected}

    @property
    def rest_code(self) -> str:
        """Returns the code of the status; of an idle state the code before refusals were
        counted."""
        refusals = self.status.refusals
        if refusals is None:
            return self.status.reason_code
        return refusals.rest_code

    @property
    def is_idle(self) -> bool:
        """Returns True if a plan has found nothing to do. A plan of a drain alone, while automatic
        balancing is off, does not ask what else would gain."""
        return self.status.state in (STUCK, BALANCED) and self.settings.active

    @property
    def is_too_full(self) -> bool:
        """Returns True if an OSD that is too full for PGs comes before the reason of the state. A
        flag, which an operator has set, comes before both."""
        if self.status.reason_code == codes.FLAG or self.status.state not in HELD_UP:
            return False
        return bool(self.view.too_full)

    @property
    def options(self) -> PlanOptions:
        """Returns the options with which automatic balancing would plan now."""
        return automatic_options(self.settings, self.snapshot, frozenset(self.rejected),
                                 self.max_pg_shards)

    def rows_of(self, pgid: str, kind: str) -> List[ChangeRow]:
        """Returns the sent changes of a PG by plans of a kind, the newest first."""
        if self.changes is None:
            return []
        return [row for row in self.changes.newest_first({pgid})
                if row.pgid == pgid and row.kind == kind]

    def census(self) -> Optional[RefusalCensus]:
        """Returns a counter of refusals with these options; None if the bounds are not known."""
        bounds = self.view.utilization_bounds
        if bounds is None:
            return None
        return RefusalCensus(self.snapshot, self.options, bounds, self.excluded.codes)
