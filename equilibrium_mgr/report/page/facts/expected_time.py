"""How long the moves of a plan are likely to take."""
from __future__ import annotations

from typing import Dict, Optional, Tuple

from ....observation.transfer_rates import time_left
from .plan_standing import PlanStanding
from .sources import PageFacts

#: Bytes a second that an OSD is taken to get where nothing has been measured.
_ASSUMED_RATE = 50 << 20


def expected_seconds(facts: PageFacts, standing: PlanStanding) -> Tuple[Optional[float], str]:
    """(seconds, what they rest on): by the OSD that gets most, at the rate at which OSDs were
    measured to get shards, else at an assumed one. None where no bytes are moved."""
    to_come: Dict[int, int] = {}
    for move in standing.moves:
        to_come[move.target] = to_come.get(move.target, 0) + move.bytes
    if not any(to_come.values()):
        return None, ""
    measured = time_left(facts.view.rates, facts.view.movements, to_come)
    if measured is not None:
        return measured.seconds, "at the rates last measured"
    return max(to_come.values()) / _ASSUMED_RATE, "if each OSD takes 50 MiB/s"
