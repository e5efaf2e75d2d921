"""After an undo of everything or of a span each PG has the pairs that it had before,
byte for byte, whatever came in between; each that has not is named with its reason."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterator, Set

import pytest

from .random_story import Story

pytestmark = pytest.mark.full

COMPANY = pytest.mark.parametrize("company", ["alone", "others", "map_changes"])
_ALLOWED = re.compile(r"no longer legal: |osd\.\d+ is nearfull|osd\.\d+ would pass its fill")
#: Pairs that others had set come back even where they are without effect.
_NOT_HELD = ("S7:", "S14:")


@pytest.fixture
def story(undo_seed: int, company: str, tmp_path: Path) -> Iterator[Story]:
    """Eight random operations, and all of it at rest again."""
    told = Story(undo_seed, tmp_path, company)
    told.tell(8)
    yield told
    broken = [what for what in told.watch.broken if not what.startswith(_NOT_HELD)]
    assert not broken
    told.session.close()


@COMPANY
def test_every_pair_comes_back(story: Story, company: str) -> None:
    first = story.moments[0]
    story.rest()
    changed = story.changed_since(first)
    not_restored = story.undo(first.at - 3600.0)
    wrong = differing(first.items, story.now().items)
    assert wrong & changed <= {*not_restored, *story.touched}
    if company == "alone":   # neither a rule is broken again that others broke, nor an OSD filled
        assert wrong == set(not_restored)
        for why in not_restored.values():
            assert _ALLOWED.match(why), why


@COMPANY
def test_a_span_comes_back(story: Story, company: str) -> None:
    moments = [moment for moment in story.moments[1:] if story.is_quiet(moment)]
    if not moments:
        pytest.skip("something was sent all the time")
    moment = story.rng.choice(moments)
    story.rest()
    changed = story.changed_since(moment)
    not_restored = story.undo(moment.at)
    wrong = differing(moment.items, story.now().items) & changed
    assert wrong <= {*not_restored, *story.touched}


def differing(one: Dict[str, Any], other: Dict[str, Any]) -> Set[str]:
    return {pgid for pgid in {*one, *other} if one.get(pgid) != other.get(pgid)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "story" in metafunc.fixturenames:
        metafunc.parametrize("undo_seed", range(metafunc.config.getoption("--undo-stories")))
