"""How far an execution has come: bytes that have arrived, and when the rest will."""
from __future__ import annotations

from typing import Optional

from ..execution.execution import Execution, ExecutionProgress
from ..observation.cluster_view import ClusterView
from ..observation.transfer_rates import time_left
from ..snapshot import reason_codes as codes
from .episodes.episode import Episode

_NOTHING_YET = "nothing of it has arrived yet"
#: States in which nothing moves, or nothing can be seen to.
_STANDS = (codes.FLAG, codes.NO_MONITOR, codes.NOT_READY)


def execution_progress(execution: Execution, episode: Optional[Episode],
                       view: Optional[ClusterView], code: str, now: float) -> ExecutionProgress:
    """The progress as of the view; totals and times are unknown without one, and before the
    execution has been compared with the map: what it wants may be in place already.

    Bytes are those of the episode, which outlives both a plan and a mgr: what it has sent, and what
    the plan under way is still to send. Sent and not yet in flight no more: arrived. No time is
    known where nothing moves, nor by statistics that stand still. `code`: of the state.
    """
    progress = ExecutionProgress(execution.name, execution.summary())
    if view is None or episode is None or not execution.is_compared:
        return progress
    wanted = execution.wanted_bytes
    progress = progress._replace(bytes_total=episode.bytes + sum(wanted.values()),
                                 bytes_done=max(0, episode.bytes - view.moving.bytes))
    why, rate = _still_reason(view, code, now), view.rates.ours_now
    left = None if why else time_left(view.rates, view.movements, wanted)
    if left is None or execution.wanted and not wanted and left.seconds <= 0.0:
        return progress._replace(still_reason=why or _NOTHING_YET)
    at = view.snapshot.taken_at
    return progress._replace(
        eta_at=at + left.seconds, eta_osd=left.osd,
        eta_range_at=(at + left.least, at + left.most),
        bytes_per_second=rate.per_second if rate.seconds > 0.0 else None)


def _still_reason(view: ClusterView, code: str, now: float) -> str:
    """Why nothing can be told of the time left; empty where it can."""
    if view.stale_osds:
        return "OSDs do not report"
    if code in _STANDS or view.rates.stand_still(now):
        return "nothing arrives at present"
    return _NOTHING_YET if view.rates.moved_at is None else ""
