"""What `explain` says first, of the cluster, an OSD, a pool and a PG alike: what is so, the reason
with its counts, and what to do.
"""
from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...control.balancing_scope import automatic_options
from ...control.status import BalancerStatus
from ...execution.outcomes import ExcludedPgs, Items, WaitingGroup, held
from ...observation.cluster_view import BALANCED, STUCK, ClusterView
from ...plan.options import PlanOptions
from ...planner.refusal_census import Census, RefusalCensus
from ...runtime.formatting import plural
from ...settings import Settings
from ...snapshot.model import Snapshot
from ..answer import Row


class ExplainContext(NamedTuple):
    """The sources of an explanation; nothing is read from the cluster for it."""

    view: ClusterView
    status: BalancerStatus
    settings: Settings
    excluded: ExcludedPgs = ExcludedPgs(frozenset(), frozenset(), 0.0)
    #: PG shards per OSD that plans keep to, and at which OSDs refuse more; 0: no limit
    max_pg_shards: Tuple[int, int] = (0, 0)
    now: float = 0.0   # seconds since the epoch

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as it was last observed."""
        return self.view.snapshot

    def plan_options(self) -> PlanOptions:
        """The options with which automatic balancing would plan now."""
        return automatic_options(self.settings, self.snapshot, frozenset(self.rejected),
                                 self.max_pg_shards)

    @property
    def rejected(self) -> Items:
        """What the monitor did not keep and is left alone for that now."""
        return held(self.status.rejected, self.now)

    @property
    def rest_code(self) -> str:
        """The code of the status; of a state at rest, that of before anything was counted."""
        refusals = self.status.refusals
        return self.status.reason_code if refusals is None else refusals.rest_code

    @property
    def is_settled(self) -> bool:
        """True where a plan has found nothing to do; that of a drain alone, while automatic
        balancing is off, was not asked what else would gain."""
        return self.status.state in (STUCK, BALANCED) and self.settings.active

    def census(self) -> Optional[RefusalCensus]:
        """Counts refusals with these options; None where the bounds are not known."""
        bounds = self.view.utilization_bounds
        if bounds is None:
            return None
        return RefusalCensus(self.snapshot, self.plan_options(), bounds, self.excluded.codes)


class Explanation(NamedTuple):
    """What is so, why, and what helps."""

    what: str
    code: str
    action: str
    text: str = ""                    # behind the code: what the rows count, or a sentence
    rows: Sequence[Row] = ()          # see count_row
    census: Optional[Census] = None   # where the rows are of one


def counted_text(census: Census, where: str) -> str:
    """What the rows of a census add up to, as in '36 shards on osd.13 x 13 targets:'."""
    if not census.pairs:
        return f"no shard {where} has a target"
    targets = census.pairs / census.counted
    shown = f"{targets:.0f}" if census.pairs % census.counted == 0 else f"about {targets:.1f}"
    part = ("" if census.counted == census.shards
            else f" (the first {census.counted} of {census.shards})")
    return f"{plural(census.shards, 'shard')}{part} {where} x {shown} targets:"


def count_row(code: str, count: int, text: str, option: Optional[str], limit: Optional[float],
              **more: Any) -> Row:
    """One line of counts, JSON-ready: so many shards, or pairs of a shard and a target, for one
    code. `useful`: pairs whose move would make the cluster more even."""
    return {"code": code, "count": count, "text": text, "option": option, "limit": limit,
            "osd": None, "useful": None, "pools": [], **more}


def waiting_rows(groups: Sequence[WaitingGroup]) -> List[Row]:
    """The rows of shards that wait, as `status` groups them."""
    return [count_row(group.code, group.shards, group.waits_for, group.option, group.limit,
                      osd=group.osd) for group in groups]


def pool_counts(found: Mapping[int, int], snapshot: Snapshot) -> List[Row]:
    """The counts of pools, the largest first."""
    return [{"id": pool, "name": snapshot.pools[pool].name, "count": count}
            for pool, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]
