"""A glance that spares a full look while moves are under way or nothing is to be done."""
from __future__ import annotations

from typing import Callable, Optional

from ..gateway import Gateway
from ..snapshot.model import Snapshot
from .states import BALANCED, OFF, STUCK
from .view import View
from .window import Window, is_open

#: While moves are under way, the cluster is read in full again when this share of what is
#: misplaced (or of the limit, if that is less) has arrived, and at the latest after so many
#: seconds.
_STEP = 0.1
_LONGEST_SECONDS = 600.0


class Glance:
    """Remembers what the last look waits for."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._clock = clock
        self._awaited_misplaced: Optional[int] = None
        self.look_wanted = False
        self.closed: Optional[Window] = None      # automatic balancing waits for this to open
        self.misplaced: Optional[int] = None      # object copies, where the glance has counted

    def begin_look(self) -> None:
        """What was waited for is looked at in full."""
        self.look_wanted = False
        self._awaited_misplaced = None
        self.closed = None

    def await_arrivals(self, snapshot: Snapshot, max_misplaced_ratio: float) -> None:
        """Until so many copies have arrived that it matters, a glance a round is enough."""
        misplaced = snapshot.misplaced_copies
        if misplaced > 0:
            step = _STEP * min(max_misplaced_ratio * snapshot.object_copies, misplaced)
            self._awaited_misplaced = max(0, int(misplaced - step))

    def nothing_new(self, view: Optional[View], state: str) -> bool:
        """Would a full look show nothing that matters?"""
        self.misplaced = None
        if view is None or self.look_wanted:
            return False
        if not 0.0 <= self._clock() - view.snapshot.taken_at < _LONGEST_SECONDS:
            return False
        if self._gateway.builtin_balancer_active() != view.builtin_active:
            return False  # switching it moves no epoch
        if self.closed is not None and is_open(self.closed, self._clock()):
            return False
        if self.closed is not None or state in (OFF, BALANCED, STUCK):
            return self._gateway.epoch() == view.snapshot.epoch
        if self._awaited_misplaced is None:
            return False
        self.misplaced = self._gateway.misplaced_copies()
        return self.misplaced > self._awaited_misplaced
