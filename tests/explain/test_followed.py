"""What `explain` names is the reason, and what it says to do ends it, in the simulator."""
from __future__ import annotations

from typing import Set

import pytest
from _pytest.mark.structures import ParameterSet
from tests.explain.followed import Situation, follow
from tests.explain.situations import SITUATIONS

from equilibrium_mgr.snapshot.reason_codes import NOTHING

#: Codes that no situation reaches, and why.
NOT_REACHED = {
    "max_moves": "what a round's limit defers goes a minute later, beside other reasons",
    "next_batch": "the same", "source_full": "needs a target that also loses shards",
    "failure_domain": "counted beside others, never the reason of a cluster",
    "holds_shard": "the same", "exchange": "the same",
    "rule_unknown": "rules of the simulator are understood",
    "not_ready": "commands answer EAGAIN", "busy": "a PG, for the minutes of its scrub",
    "given_up": "after hours of max_wait", "planning": "lasts seconds", "moving": "is no trouble",
    "balanced": "is no trouble"}

#: Of which a situation takes seconds.
_SLOW = ("too_full", "fill_limit", "monitor_backoff", "max_upmap_items", "degraded", "pg_count",
         "in_flight")
_CODES: Set[str] = set()   # of the default run


def _is_slow(situation: Situation) -> bool:
    if situation.cluster[0] != "random" or situation.is_outage:
        return True
    return situation.wait in ("12h", "20h", "1d") or situation.code in _SLOW


def _case(situation: Situation) -> ParameterSet:
    """Those that take seconds are of the full run, and those of a code that another one has."""
    name, marks = f"{situation.code}: {situation.name}", [pytest.mark.full]
    if not _is_slow(situation) and situation.code not in _CODES:
        _CODES.add(situation.code)
        marks = []
    return pytest.param(situation, id=name, marks=marks)


@pytest.mark.parametrize("situation", list(map(_case, SITUATIONS)))
def test_the_action_ends_the_reason(situation: Situation) -> None:
    seen = follow(situation)
    print(seen)
    assert seen.code == situation.code, seen
    assert seen.action != NOTHING, seen
    assert seen.ended, seen
    assert seen.action.startswith(situation.begins), seen
    assert not situation.is_outage or seen.outage is not None, seen


def test_every_code_is_reached_or_says_why_not() -> None:
    from tests.explain.test_actions import CODES
    reached = {situation.code for situation in SITUATIONS}
    assert reached.isdisjoint(NOT_REACHED)
    assert reached | set(NOT_REACHED) == set(CODES)
    assert len(SITUATIONS) >= 20
