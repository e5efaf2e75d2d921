"""Whether shards that Ceph copies anyway are steered now: a plan with a name comes before that, and
options or a window may forbid it."""
from __future__ import annotations

from typing import Optional

from ..execution.execution import Execution
from ..observation.cluster_view import ClusterView
from ..observation.movements import CRUSH, RECOVERY
from ..settings import Settings
from ..snapshot.pg_states import BACKFILL_WAIT
from .cluster_guards import is_limited, is_open


def plan_before_steering(execution: Optional[Execution], view: Optional[ClusterView],
                         settings: Settings, now: float) -> str:
    """Returns the plan with a name that keeps shards from being steered; else empty text. These
    shards have not begun to arrive, and do not move since before the plan. `now`: seconds since the
    epoch."""
    if execution is None or view is None or not settings.steers:
        return ""
    for move in view.movements:
        if move.origin in (CRUSH, RECOVERY) and move.state == BACKFILL_WAIT:
            if move.pgid not in execution.moved_before and is_open(settings, now):
                return execution.name
    return ""


def holds_placement(settings: Settings) -> bool:
    """Returns True if shards that CRUSH moves are kept where their data is, at any time of day."""
    return settings.active and settings.hold_placement and not is_limited(settings)
