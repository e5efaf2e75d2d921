"""The parts of the module that commands work with."""
from __future__ import annotations

from typing import Callable, NamedTuple, Optional

from ..control.balancer import Balancer
from ..gateway.gateway import Gateway
from ..plan.store import PlanStore
from ..plan_service.failure_service import FailureService
from ..plan_service.plan_service import PlanService
from ..option_values import OptionValues
from ..settings import Settings


class ModuleParts(NamedTuple):
    """One of each; all may be used from any thread."""

    balancer: Balancer
    gateway: Gateway
    plan_service: PlanService
    failure_service: FailureService
    plan_store: PlanStore
    options: OptionValues
    settings: Callable[[], Settings]
    clock: Callable[[], float]                       # seconds since the epoch
    next_round_at: Callable[[], Optional[float]]     # on that clock; None before the first round
    last_round_at: Callable[[], Optional[float]]     # likewise, of those that did not fail
    wake: Callable[[], None]                         # ends the wait of the serve loop

    def executing(self) -> Optional[str]:
        """Name of the kept plan that is being executed at this moment, or None. Commands decide by
        it, so it is not the published status, which is of the loop's last step."""
        return self.balancer.plan_name
