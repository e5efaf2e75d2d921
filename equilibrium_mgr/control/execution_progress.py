"""How far an execution has come: bytes that have arrived, and when the rest will."""
from __future__ import annotations

from typing import Optional

from ..execution.execution import Execution, ExecutionProgress
from ..observation.cluster_view import ClusterView
from ..observation.transfer_rates import time_left
from .episodes.episode import Episode


def execution_progress(execution: Execution, episode: Optional[Episode],
                       view: Optional[ClusterView]) -> ExecutionProgress:
    """The progress as of the view; totals and times are unknown without one, and before the
    execution has been compared with the map: what it wants may be in place already.

    Bytes are those of the episode, which outlives both a plan and a mgr: what it has sent, and what
    the plan under way is still to send. Sent and not yet in flight no more: arrived.
    """
    progress = ExecutionProgress(execution.name, execution.summary())
    if view is None or episode is None or not execution.is_compared:
        return progress
    wanted = execution.wanted_bytes
    left = time_left(view.rates, view.movements, wanted)
    if execution.wanted and not wanted and left is not None and left.seconds <= 0.0:
        left = None   # shards of no bytes wait, for which no rate tells anything
    rate = view.rates.ours_now
    return progress._replace(
        eta_at=None if left is None else view.snapshot.taken_at + left.seconds,
        eta_osd=None if left is None else left.osd,
        bytes_total=episode.bytes + sum(wanted.values()),
        bytes_done=max(0, episode.bytes - view.moving.bytes),
        bytes_per_second=rate.per_second if rate.seconds > 0.0 else None)
