"""The words for how executions and episodes end.

An outcome is one of these words; where there is more to say it follows, as in 'dropped: its pool is
gone'. Automatic balancing ends in an idle state, 'balanced' or 'stuck'.
"""
from __future__ import annotations

COMPLETED = "completed"     # all that could be sent of the plan was sent, and has arrived
STOPPED = "stopped"         # by a command or an option
SUPERSEDED = "superseded"   # another plan takes its place
DROPPED = "dropped"         # nothing of it could be sent, or nothing arrived

STOPPED_BY_OFF = f"{STOPPED}: by 'ceph equilibrium off'"
STOPPED_BY_RM = f"{STOPPED}: by 'ceph equilibrium rm'"
STOPPED_BY_DRAIN_RM = f"{STOPPED}: by 'ceph equilibrium drain rm'"
DRAIN_CHANGED = f"{SUPERSEDED}: other OSDs are to be drained"
SWITCHED_OFF = f"{STOPPED}: automatic balancing was switched off"

#: Code, for programs → beginnings of outcomes, those of earlier releases among them.
_BEGINNINGS = {
    COMPLETED: (COMPLETED, "balanced", "through"),
    "stuck": ("stuck",),
    STOPPED: (STOPPED, "switched off"),
    SUPERSEDED: (SUPERSEDED, "given up for another plan"),
    DROPPED: ("",),
}
OUTCOMES = tuple(_BEGINNINGS)


def because(outcome: str, reason: str) -> str:
    """An outcome with its reason."""
    return f"{outcome}: {reason}"


def outcome_code(outcome: str) -> str:
    """One of OUTCOMES for an outcome in words."""
    return next(code for code, words in _BEGINNINGS.items() if outcome.startswith(words))


def outcome_reason(outcome: str) -> str:
    """What an outcome in words says beyond its code; '' where that is nothing."""
    for word in (*OUTCOMES[:-1], DROPPED, "given up"):
        if outcome.startswith(word + ": "):
            return outcome[len(word) + 2:]
    return "" if outcome in (COMPLETED, "through", "stuck") else outcome
