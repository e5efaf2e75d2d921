"""What is kept of comparisons between aims, and for how long."""
from __future__ import annotations

from equilibrium_mgr.plan.aim_comparison import (
    FAILED, MAX_COMPARISONS, PLANNING, READY, AimFigures, AimComparison, AimComparisons)
from equilibrium_mgr.plan.model import BALANCE
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.plan.store import PlanHead

MADE_WITH, PRESENT = PlanOptions(max_moves=3), PlanOptions(fill_limit=0.7)


def head(name: str = "p", generation: int = 1, aim: str = "space") -> PlanHead:
    return PlanHead(name, 1.0, 100, 2, 3, 4, "converged", generation, 1, aim, "", {}, 4,
                    BALANCE)


def test_limits_of_a_plan_that_this_process_has_made() -> None:
    memory = AimComparisons()
    memory.plan_made(head(), MADE_WITH)
    found, begins = memory.get_or_begin(head(), PRESENT)
    assert begins and found.options_known and found.options == MADE_WITH
    assert memory.get_or_begin(head(), PRESENT) == (found, False)


def test_limits_are_those_of_the_plan_that_is_kept_now() -> None:
    """Another plan of the name may be kept already when the comparison is asked for."""
    memory = AimComparisons()
    memory.plan_made(head(), MADE_WITH)
    old, _ = memory.get_or_begin(head(), PRESENT)
    new, begins = memory.get_or_begin(head(generation=2), PRESENT)
    assert begins and new is not old and not memory.is_kept(old)
    assert not new.options_known and new.options == PRESENT


def test_forgotten_plan_leaves_nothing() -> None:
    memory = AimComparisons()
    memory.plan_made(head(), MADE_WITH)
    old, _ = memory.get_or_begin(head(), PRESENT)
    memory.forget("p")
    assert not memory.is_kept(old)
    assert not memory.get_or_begin(head(), PRESENT)[0].options_known
    memory.forget("nobody")


def test_dropped_comparison_begins_anew_with_the_same_limits() -> None:
    memory = AimComparisons()
    memory.plan_made(head(), MADE_WITH)
    old, _ = memory.get_or_begin(head(), PRESENT)
    memory.drop("p")
    new, begins = memory.get_or_begin(head(), PRESENT)
    assert begins and new is not old and new.options == MADE_WITH
    assert memory.is_kept(new) and not memory.is_kept(old)


def test_no_more_than_so_many_are_kept() -> None:
    memory = AimComparisons()
    kept = [memory.get_or_begin(head(f"p{number}"), PRESENT)[0] for number in range(25)]
    assert [memory.is_kept(one) for one in kept] == (
        [False] * (25 - MAX_COMPARISONS) + [True] * MAX_COMPARISONS)
    assert MAX_COMPARISONS == 10


def test_course_of_a_comparison() -> None:
    comparison = AimComparison(head(aim="even"), PRESENT, True)
    assert list(comparison.aims) == ["space", "least-motion"]
    assert comparison.next_aim() == "space" and not comparison.has_failed()
    before = comparison.aims
    comparison.set_figures("space", AimFigures(FAILED, failure="no"))
    assert before["space"].state == PLANNING            # readers keep what they have in hand
    assert comparison.next_aim() == "least-motion" and not comparison.has_failed()
    comparison.set_figures("least-motion", AimFigures(READY))
    assert comparison.next_aim() is None and comparison.has_failed()
    comparison.set_figures("space", AimFigures(READY))
    assert not comparison.has_failed()
