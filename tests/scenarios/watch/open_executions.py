"""No automatic plan is kept open for ever by what only waits.

L5 where nothing moves and nothing forbids sending, a plan of which nothing has gone for max_wait
and a few rounds is given up, whatever it waits for.
"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

from mgr_stub.console.session import Session

from ..rules.guard_rules import STOP_FLAGS

#: The longest time between two full looks, twice: the wait is seen to begin and to end.
_LOOKS_SECONDS = 1200.0


class OpenExecutions:
    """Looks at what the module has under way."""

    def __init__(self) -> None:
        self._seen: Optional[Tuple[Any, int]] = None   # the execution and what it has sent
        self._since = 0.0

    def observe(self, session: Session) -> List[str]:
        """What is wrong now."""
        if session.module is None:   # the mgr is dead
            return []
        execution, now = getattr(session.module.balancer, "execution", None), session.clock.now
        seen = None
        if execution is not None and not execution.name and not _stopped(session):
            seen = (execution, execution.sent_moves)
        if seen is None or seen != self._seen:
            self._seen, self._since = seen, now
            return []
        settings = session.module.settings()
        most = settings.max_wait + _LOOKS_SECONDS + 2 * settings.sleep_interval
        if now - self._since <= most:
            return []
        self._since = now
        return [f"an automatic plan has waited for more than {int(most)} s: "
                f"{session.module.balancer.reason}"]


def _stopped(session: Session) -> bool:
    """Does something move, or does something keep everything from moving?"""
    settings = session.module.settings()
    return (not session.simulation.idle() or not settings.active
            or not session.mgr.mon_connected or session.mgr.balancer.may_move_data
            or settings.begin_time % 1440 != settings.end_time % 1440
            or any(flag in session.mgr.maps()[0].flags for flag in STOP_FLAGS))
