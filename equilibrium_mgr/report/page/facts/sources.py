"""What the page is made from: read once, before anything is written."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ....control.status import BalancerStatus
from ....observation.cluster_view import ClusterView
from ....gateway.pool_space import PoolSpaceNow
from ....observation.planned_placement import planned_placement
from ....plan.model import PgChange, Plan, Room
from ....plan.usage import counted_usage
from ....runtime.checkpoints import Checkpoint
from ....settings import Settings
from ...cluster.classes import class_rows
from ...cluster.pools import PoolFigures, figures_of_usage
from ..drawings.axis import Level
from .fill import Fill, osd_fills
from .plan_standing import PlanStanding, standing_of


class ClusterIdentity(NamedTuple):
    """Which cluster the page is of, and by whom it was made."""

    fsid: str
    ceph_version: str
    epoch: int     # of the newest osdmap
    now: float     # seconds since the epoch


class PageSources(NamedTuple):
    """What the command has at hand."""

    identity: ClusterIdentity
    view: ClusterView
    status: BalancerStatus
    settings: Settings
    option: Callable[[str], Any]     # the mgr's get_module_option
    pool_space: Mapping[int, PoolSpaceNow]   # as `ceph df` has it now
    plan: Optional[Tuple[str, Plan]]


class Later(NamedTuple):
    """What the figures of later are for; both empty where nothing is to change."""

    label: str    # for a legend
    column: str   # head of a column


class PageFacts(NamedTuple):
    """The sources, and what several sections need of them."""

    sources: PageSources
    standing: Optional[PlanStanding]
    wanted: Optional[Sequence[PgChange]]   # what is to be sent; None where nothing is
    classes: List[Dict[str, Any]]   # rows of class_figures
    pools: PoolFigures
    osds: List[Fill]                # the fullest first
    later: Later                    # what the later figures are for
    checkpoint: Checkpoint

    @property
    def view(self) -> ClusterView:
        """The cluster as last observed."""
        return self.sources.view

    @property
    def room_now(self) -> Optional[Room]:
        """What fits now if all pools grow alike."""
        return self.pools.room

    @property
    def room_later(self) -> Optional[Room]:
        """The same later; None where nothing is to change."""
        return self.pools.planned_room if self.wanted is not None else (
            self.view.usage.room if self.later.label else None)

    def levels(self, device_class: str) -> List[Level]:
        """The utilizations that are marked in drawings of a device class."""
        snapshot = self.view.snapshot
        marked = [Level("nearfull", snapshot.nearfull_ratio, "6 3"),
                  Level("backfillfull", snapshot.backfillfull_ratio, "2 3")]
        bound = self.view.bounds.get(device_class)
        if bound is not None:
            marked.insert(0, Level("bound", bound, ""))
        return [level for level in marked if 0.0 < level.ratio <= 1.0]

    def by_class(self) -> Dict[str, List[Fill]]:
        """Device class → its OSDs, the fullest first."""
        classes: Dict[str, List[Fill]] = {}
        for osd in self.osds:
            classes.setdefault(osd.device_class, []).append(osd)
        return dict(sorted(classes.items()))


def gather(sources: PageSources, checkpoint: Checkpoint) -> PageFacts:
    """Computes the facts: a pass over the OSDs, the pools and the plan's changes, none over PGs."""
    view, status = sources.view, sources.status
    standing: Optional[PlanStanding] = None
    wanted: Optional[Sequence[PgChange]] = None
    later_bytes: Optional[Mapping[int, int]] = None
    later = Later("", "")
    if sources.plan is not None:
        standing = standing_of(*sources.plan, view.snapshot, sources.identity.epoch)
        wanted, later = standing.to_make, Later(f"with {standing.name}", "%PLAN")
    elif status.progress is not None:
        wanted, later = status.wanted, Later("when the plan under way is done", "%PLAN")
    elif view.in_flight_moves:
        later_bytes, later = view.used_soon, Later("when what moves has arrived", "%SOON")
    checkpoint()
    planned = planned_placement(view, wanted) if wanted is not None else None
    checkpoint()
    usage = None
    if planned is not None:
        later_bytes = planned.used
        usage = counted_usage(view.snapshot, planned.used, planned.shards)
    pools = figures_of_usage(view, sources.pool_space, view.usage_now(), usage)
    checkpoint()
    classes = class_rows(view, planned.used if planned is not None else None)
    checkpoint()
    return PageFacts(sources, standing, wanted, classes, pools, osd_fills(view, later_bytes),
                     later, checkpoint)
