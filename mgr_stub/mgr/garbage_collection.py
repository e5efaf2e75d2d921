"""Python's search for circular garbage, which sees every object of a simulated cluster."""

from __future__ import annotations

import gc


def search_seldom() -> None:
    """Searches less often: it took 14 to 30 % of a simulation's time, in two single runs."""
    gc.set_threshold(100_000, 50, 100)
