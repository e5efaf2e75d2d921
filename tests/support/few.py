"""Parameters of which a run without `--full` takes the first ones."""
from __future__ import annotations

from typing import Any, Iterable, List

import pytest


def few(values: Iterable[Any], count: int) -> List[Any]:
    """The values of one argument; those after the first `count` are marked `full`."""
    return [value if number < count else pytest.param(value, marks=pytest.mark.full)
            for number, value in enumerate(values)]
