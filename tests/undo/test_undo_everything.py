"""After an undo of everything or of a span each PG has the pairs that it had before,
byte for byte, whatever came in between; each that has not is named with its reason."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterator, Set

import pytest

from .random_story import Story

pytestmark = pytest.mark.full

COMPANY = pytest.mark.parametrize("company", [
    "alone", "others", "map_changes"])
#: Pairs that others had set come back even where they are without effect.
_NOT_HELD = ("S7", "S14")


@pytest.fixture
def story(undo_seed: int, company: str, tmp_path: Path) -> Iterator[Story]:
    """Eight random operations, and all of it at rest again."""
    told = Story(undo_seed, tmp_path, **({} if company == "alone" else {company: True}))
    told.tell(8)
    yield told
    assert not [what for what in told.watch.broken if what.partition(":")[0] not in _NOT_HELD]
    told.session.close()


@COMPANY
def test_every_pair_comes_back(story: Story, company: str) -> None:
    first, between = story.moments[0], story.now()
    story.rest()
    changed = story.changed_since(first)
    not_restored = story.undo("--since 365d")
    wrong = differing(first.items, story.now().items)
    print(f"{len(first.items)} PGs had items, {len(differing(first.items, between.items))} were"
          f" changed, {len(wrong)} are still, named are {not_restored}")
    assert wrong & changed <= {*not_restored, *story.touched}
    if company == "alone":   # neither a rule is broken again that others broke, nor an OSD filled
        assert wrong == set(not_restored)
        assert all(re.match(r"no longer legal: |osd\.\d+ is nearfull|osd\.\d+ would pass its fill",
                            why) for why in not_restored.values())


@COMPANY
def test_a_span_comes_back(story: Story, company: str) -> None:
    moments = [moment for moment in story.moments[1:] if story.is_quiet(moment)]
    if not moments:
        pytest.skip("something was sent all the time")
    moment = story.rng.choice(moments)
    story.rest()
    changed = story.changed_since(moment)
    not_restored = story.undo(since=moment.at)
    wrong = differing(moment.items, story.now().items) & changed
    print(f"{len(changed)} PGs were sent since, named are {not_restored}")
    assert wrong <= {*not_restored, *story.touched}


def differing(one: Dict[str, Any], other: Dict[str, Any]) -> Set[str]:
    return {pgid for pgid in {*one, *other} if one.get(pgid) != other.get(pgid)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "story" in metafunc.fixturenames:
        metafunc.parametrize("undo_seed", range(metafunc.config.getoption("--undo-stories")))
