"""What the pages show is what the program prints, and their links lead somewhere.

`python3 -m tests.readme` prints what they show anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

import pytest

from tests.readme import rst
from tests.readme.blocks import HANDBOOK, PAGES, README, rendered


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_what_the_program_prints(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text


def test_the_page_for_ceph_has_all_commands_and_options() -> None:
    text = rst.page()
    for name, mark in (("commands", "\n   ceph equilibrium "), ("options", "\n.. confval:: ")):
        listed = re.findall("^### ", (HANDBOOK / f"{name}.md").read_text("utf-8"), re.MULTILINE)
        assert text.count(mark) == len(listed) > 20
    assert "](" not in text


def test_the_readme_is_short() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200 and len(text.split()) <= 1400
    assert "ceph equilibrium off" in "\n".join(text.splitlines()[:80])


def anchors(page: Path) -> List[str]:
    """Of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_and_chapters_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target
