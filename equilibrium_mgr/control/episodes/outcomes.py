"""The words for how executions and episodes end.

An outcome is one of these words; where there is more to say it follows, as in 'dropped: its pool is
gone'. Automatic balancing ends in an idle state, 'balanced' or 'stuck'.
"""
from __future__ import annotations

from ...observation.states import BALANCED, STUCK

COMPLETED = "completed"     # all that could be sent of the plan was sent, and has arrived
STOPPED = "stopped"         # by a command or an option
SUPERSEDED = "superseded"   # another plan takes its place
DROPPED = "dropped"         # nothing of it could be sent, or nothing arrived

STOPPED_BY_OFF = f"{STOPPED}: by 'ceph equilibrium off'"
STOPPED_BY_RM = f"{STOPPED}: by 'ceph equilibrium rm'"
STOPPED_BY_DRAIN_RM = f"{STOPPED}: by 'ceph equilibrium drain rm'"
DRAIN_CHANGED = f"{SUPERSEDED}: other OSDs are to be drained"
SWITCHED_OFF = f"{STOPPED}: automatic balancing was switched off"

#: Codes of outcomes, for programs.
OUTCOMES = (COMPLETED, STUCK, STOPPED, SUPERSEDED, DROPPED)


def because(outcome: str, reason: str) -> str:
    """An outcome with its reason."""
    return f"{outcome}: {reason}"


def outcome_code(outcome: str) -> str:
    """One of OUTCOMES for an outcome in words; DROPPED for one that is garbled."""
    word = outcome.partition(": ")[0]
    return COMPLETED if word == BALANCED else word if word in OUTCOMES else DROPPED


def outcome_reason(outcome: str) -> str:
    """What an outcome in words says beyond its code; '' where that is nothing."""
    word, _, reason = outcome.partition(": ")
    return reason if word in OUTCOMES else outcome
