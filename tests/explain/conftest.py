"""The same clusters are planned again and again here, and the planner is not what is tested."""
from __future__ import annotations

from tests.support.remembered_plans import plans_are_made_once  # noqa: F401
