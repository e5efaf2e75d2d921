"""Factors that are kept while they are as good as new.

A factor that is fitted to the whole cluster differs a little at every look, and with it what was
computed by it of each PG. One that is kept until it is clearly another leaves the PGs as they are.
"""
from __future__ import annotations

from typing import Optional

#: The ratio by which a kept factor may differ from the fitted one: less than a thousandth.
STEADY_RATIO = 1.0 / 2048.0


def is_near(kept: Optional[float], fitted: Optional[float]) -> bool:
    """True where a kept factor is as good as the fitted one; None stands for no factor."""
    if kept is None or fitted is None:
        return kept is fitted
    return kept == fitted or abs(kept - fitted) <= STEADY_RATIO * min(abs(kept), abs(fitted))
