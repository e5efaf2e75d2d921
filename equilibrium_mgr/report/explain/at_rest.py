"""What helps against the reason for which a cluster is at rest far from its bound, by what the loop
counted when it came to rest: for `status` and health checks, which count nothing themselves."""
from __future__ import annotations

from typing import Any, Dict, Optional

from ...control.status import BalancerStatus
from ...drain.status import DrainStatus
from ...observation.cluster_view import ClusterView
from ...observation.refusals import Refusals
from ...observation.states import STUCK
from ...settings import Settings
from ...snapshot import reason_codes as codes
from .actions import NOTHING, action
from .census_rows import numbers_of
from .reason import ExplainContext

#: Of these the figures of the action take longer than a status may.
_EXPLAIN = "'ceph equilibrium explain' counts what is in the way, and names what helps"
_LONG = (codes.GRANULARITY, codes.IMMOVABLE)


#: Names that a command has; OSDS stands for more.
_NAMED = 4


def paused_drain(drains: DrainStatus) -> Dict[str, Any]:
    """What the action of `off` has where a drain with shards left is paused: `drained`, the names
    as they were given."""
    names = sorted({name for osd, name in drains.drains.names.items()
                    if osd not in drains.empty_osds})
    if not drains.drains.is_paused or not names:
        return {}
    return {"drained": " ".join(names) if len(names) <= _NAMED else "OSDS"}


def state_action(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                 now: float) -> str:
    """The action for the reason of the state; `now` in seconds since the epoch."""
    code, refusals = status.reason_code, status.refusals
    if code == codes.SWITCHED_OFF:
        return action(code, paused_drain(status.drains))
    if status.state == STUCK and code in _LONG:
        return _EXPLAIN
    if refusals is None or view is None or not _is_of(refusals, view):
        return action(code, status.reason_numbers)
    if code == codes.MIN_GAIN and refusals.rest_code != codes.MIN_GAIN:
        return NOTHING   # the option is not the cause
    context = ExplainContext(view, status, settings, refusals.excluded, refusals.max_pg_shards, now)
    return action(code, numbers_of(code, refusals.census.of(code), context))


def _is_of(refusals: Refusals, view: ClusterView) -> bool:
    """True where all that was counted is in the view still, which may be a newer one."""
    found, snapshot = refusals.census.of(refusals.code), view.snapshot
    if found is None:
        return True
    return (found.example[0] in snapshot.pgs and set(found.pools) <= set(snapshot.pools)
            and {*found.targets, *found.example[1:]} <= set(snapshot.osds))
