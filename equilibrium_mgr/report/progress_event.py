"""The event of Ceph's progress module that shows an episode: one each, in bytes, until it ends."""
from __future__ import annotations

from typing import Callable, Optional

from ..control.episodes.outcomes import COMPLETED, STOPPED, outcome_code
from ..control.status import BalancerStatus

_STUCK = "stuck"
#: While an episode lasts its event is not complete, whatever has arrived: another plan may follow.
_HIGHEST_RATIO = 0.99

#: (event id, message, progress as a ratio)
UpdateEvent = Callable[[str, str, float], None]
#: (event id, why it failed; None where it is complete)
EndEvent = Callable[[str, Optional[str]], None]


class ProgressEvents:
    """Shows the episode that lasts; used by the serve thread, once a round.

    An event's id comes from the begin of the episode, which is stored, so that a successor goes on
    with it. Its progress never falls: the highest is stored with the episode.
    """

    def __init__(self, update: UpdateEvent, end: EndEvent) -> None:
        self._update = update
        self._end = end
        self._shown_of: Optional[float] = None   # begin of the episode of the event that is shown

    def report(self, status: BalancerStatus, failure: str = "") -> None:
        """Updates, begins or ends the event. `failure`: why the round failed, or empty."""
        started_at = status.episode["started_at"] if status.episode is not None else None
        shown = self._shown_of
        if shown is not None and (failure or started_at != shown):
            self._shown_of = None
            self._end(f"equilibrium-{shown:.3f}", failure or _failure(status, shown))
            return   # one call a round
        ratio = status.progress_ratio()
        if failure or started_at is None or ratio is None or status.episode is None:
            return
        ratio = min(max(ratio, status.episode["progress"]), _HIGHEST_RATIO)
        plan = status.episode["plan"]
        self._shown_of = started_at
        self._update(f"equilibrium-{started_at:.3f}", f"equilibrium: plan {plan}" if plan
                     else "equilibrium: automatic balancing", ratio)


def _failure(status: BalancerStatus, started_at: float) -> Optional[str]:
    """Why the episode that began then has ended before all had arrived; None where it had."""
    outcome = next((str(entry.get("outcome", "")) for entry in reversed(status.history)
                    if entry.get("started_at") == started_at), STOPPED)
    return None if outcome_code(outcome) in (COMPLETED, _STUCK) else outcome
