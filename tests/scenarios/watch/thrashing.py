"""How much a series goes up and down for nothing, on top of the way it has to go.

After CockroachDB's allocation simulator: with U the sum of a series' rises, D that of its falls,
the smaller of both is thrashing, discounted where the series has a trend.
"""
from __future__ import annotations

from typing import Sequence

#: How steeply the discount grows with the trend.
_POWER = 0.8


def trend_discounted_variation(values: Sequence[float]) -> float:
    """The thrashing of a series, in the unit of its values; 0 for a monotone one."""
    rises = sum(max(0.0, b - a) for a, b in zip(values, values[1:]))
    falls = sum(max(0.0, a - b) for a, b in zip(values, values[1:]))
    smaller, larger = min(rises, falls), max(rises, falls)
    if smaller <= 0.0:
        return 0.0
    balance = (smaller / larger) ** _POWER
    return balance * (rises + falls) + (1.0 - balance) * smaller
