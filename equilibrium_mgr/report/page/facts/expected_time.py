"""How long the moves of a plan are likely to take."""
from __future__ import annotations

from typing import Dict, Optional, Tuple

from .plan_standing import PlanStanding
from .sources import PageFacts

#: Bytes a second that reach an OSD, where nothing has been measured yet.
_ASSUMED_RATE = 50 << 20


def expected_seconds(facts: PageFacts, standing: PlanStanding) -> Tuple[Optional[float], str]:
    """(seconds, what they rest on): the most bytes that one OSD gets or gives, at the rate of one
    OSD. None where nothing is moved."""
    most: Dict[Tuple[str, int], int] = {}
    for move in standing.moves:
        for key in (("in", move.target), ("out", move.source)):
            most[key] = most.get(key, 0) + move.bytes
    if not any(most.values()):
        return None, ""
    return max(most.values()) / _ASSUMED_RATE, "if an OSD takes 50 MiB/s"
