"""What all runs of the simulation have in common."""
from __future__ import annotations

import pytest

from equilibrium_mgr.runtime import time_slice as turns


@pytest.fixture(autouse=True)
def nobody_else_wants_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module gives others their turn for a moment, thousands of times in such a run."""
    monkeypatch.setattr(turns, "_YIELD_SECONDS", 0.0)
