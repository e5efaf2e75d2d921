"""Limits of a round for tests: none at all, but for those that are given."""
from __future__ import annotations

from typing import Any, Optional

from equilibrium_mgr.execution.batch import Decision
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.settings import default_settings

_NONE = ThrottleLimits(default_settings()._replace(
    max_moves_per_round=1000, max_backfills_per_osd=0, max_transit_ratio=0.0, max_upmap_items=0.0),
    max_misplaced_ratio=1.0, misplaced_copies=0, in_flight=())


def limited(**fields: Any) -> ThrottleLimits:
    """By fields of ThrottleLimits and options."""
    own = {name: value for name, value in fields.items() if name in ThrottleLimits._fields}
    options = {name: value for name, value in fields.items() if name not in own}
    return _NONE._replace(settings=_NONE.settings._replace(**options), **own)


FREE = limited()


def throttled(decision: Decision) -> bool:
    """Whether most shards that wait do so for the throttle."""
    return decision.leading is not None and decision.leading.is_throttle


def why(decision: Decision) -> Optional[str]:
    """What most shards wait for."""
    return decision.leading.reason if decision.leading is not None else None
