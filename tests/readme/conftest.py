"""The demo cluster is planned again and again here, and the planner is not what is tested."""
from __future__ import annotations

from tests.support.remembered_plans import (  # noqa: F401
    plans_are_made_once, questions_are_answered_whole)
