"""No figure of how plain the project is gets worse. Whoever betters one lowers it here."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from .code import measure
from .prose import odd_per_thousand

ROOT = Path(__file__).resolve().parents[2]
_SHOWN = 20   # places, where a limit is exceeded


class CodeLimit(NamedTuple):
    """The most that a folder may have."""

    folder: str
    operations: int
    dense: int            # expressions above the limits of code.py
    long_functions: int
    inside_percent: float


class ProseLimit(NamedTuple):
    """The most odd constructions per 1,000 words that the texts of a folder or a page may have."""

    folder: str
    suffix: str
    odd: float


#: To reach: (56,000, 0, 0, 45), (25,000, 0, 0, 45), (110,000, 0, 0, 55).
CODE = (
    CodeLimit("equilibrium_mgr", 60_800, 0, 0, 44.2),
    CodeLimit("mgr_stub", 24_560, 0, 0, 41.5),
    CodeLimit("tests", 109_950, 0, 0, 54.5))
#: To reach: 3.0 each.
PROSE = (
    ProseLimit("equilibrium_mgr", ".py", 3.0),
    ProseLimit("equilibrium_mgr/doc/DESIGN.md", ".md", 3.0),
    ProseLimit("equilibrium_mgr/doc", ".md", 9.0),
    ProseLimit("mgr_stub", ".py", 3.0),
    ProseLimit("tests", ".py", 13.8))


@pytest.mark.parametrize("limit", CODE, ids=lambda limit: limit.folder)
def test_code_does_not_get_denser(limit: CodeLimit) -> None:
    found = measure(ROOT / limit.folder)
    assert found.operations <= limit.operations
    assert len(found.dense) <= limit.dense, "\n".join(found.dense[:_SHOWN])
    assert len(found.long_functions) <= limit.long_functions, "\n".join(found.long_functions)
    assert found.inside_percent <= limit.inside_percent


@pytest.mark.parametrize("limit", PROSE, ids=lambda limit: f"{limit.folder}-{limit.suffix[1:]}")
def test_prose_does_not_get_odder(limit: ProseLimit) -> None:
    odd, places = odd_per_thousand(ROOT / limit.folder, limit.suffix)
    assert odd <= limit.odd, "\n".join(places[:_SHOWN])
