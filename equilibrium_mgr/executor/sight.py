"""What is seen of the cluster: full looks, the view that is made of them, and glances between."""
from __future__ import annotations

import logging
from typing import Callable, FrozenSet, Optional

from ..gateway import Gateway
from ..planner.bound import Reachable
from ..planner.plan import Usage
from ..settings import Settings
from ..snapshot.model import Snapshot
from .glance import Glance
from .guards import pg_num_changes
from .ledger import Ledger
from .view import View, bounds_of, make_view, misplaced_ratio


class Sight:
    """`view` is replaced whole: commands read it."""

    def __init__(self, gateway: Gateway, ledger: Ledger, clock: Callable[[], float],
                 log: logging.Logger) -> None:
        self._gateway = gateway
        self._ledger = ledger
        self._log = log
        self.glance = Glance(gateway, clock)
        self.view: Optional[View] = None

    def look(self) -> Snapshot:
        """Reads the whole cluster. Raises NotReady; then, as after any failure, a look is owed."""
        self.glance.begin_look()
        try:
            return self._gateway.snapshot()
        except Exception:
            self.look_again()
            raise

    def look_again(self) -> None:
        self.glance.look_wanted = True

    def nothing_new(self, state: str) -> bool:
        """Would a full look show nothing that matters? Keeps the misplaced ratio up to date."""
        nothing = self.glance.nothing_new(self.view, state)
        if self.glance.misplaced is not None and self.view is not None:
            self.view = self.view._replace(misplaced_ratio=misplaced_ratio(
                self.view.snapshot, self.glance.misplaced, self._ledger))
        return nothing

    def show(self, snapshot: Snapshot, settings: Settings, same_bounds: bool = False) -> None:
        """Makes the view. Our own moves leave the bounds as they are."""
        bounds = self.view.reachable if same_bounds and self.view is not None else (
            bounds_of(snapshot, self._log))
        self.view = make_view(snapshot, bounds, self._ledger,
                              self.max_misplaced_ratio(snapshot, settings),
                              self._gateway.builtin_balancer_active())

    def max_misplaced_ratio(self, snapshot: Snapshot, settings: Settings) -> float:
        """While the mgr changes a pg_num it needs misplaced objects itself, below its own target:
        half of that is left to it."""
        target = self._gateway.target_max_misplaced_ratio()
        limit = settings.max_misplaced_ratio or target
        return min(limit, target / 2.0) if pg_num_changes(snapshot) else limit

    def bounds(self, snapshot: Snapshot,
               movable_pools: Optional[FrozenSet[int]]) -> Optional[Reachable]:
        """As the view has them, or with all but some pools where they are."""
        if movable_pools is None:
            return self.view.reachable if self.view is not None else None
        return bounds_of(snapshot, self._log, frozenset(snapshot.pools) - movable_pools)

    @property
    def usage(self) -> Optional[Usage]:
        return self.view.usage if self.view is not None else None
