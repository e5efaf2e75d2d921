"""The handbook and the files for containers say the same; neither was tried on cephadm or Rook."""

from __future__ import annotations

import re
from typing import List

import pytest

from tests.packaging.scripts import MODULE, MODULE_PATH

PACKAGING = MODULE / "packaging"
PAGE = (MODULE / "doc" / "install.md").read_text(encoding="utf-8")


def settings(text: str, begin: str) -> List[str]:
    """The lines from one setting on, without what they are indented by, up to an empty line."""
    lines = text[text.index(begin):].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


@pytest.mark.parametrize("name, begin", [
    ("cephadm-mgr.yaml", "extra_container_args:"), ("rook-cluster.yaml", "mgr:")])
def test_page_and_file_name_the_same_settings(name: str, begin: str) -> None:
    text = (PACKAGING / name).read_text(encoding="utf-8")
    chapter = PAGE[PAGE.index("## cephadm"):]
    assert settings(text, f"\n{begin}" if name.startswith("cephadm") else f"  {begin}") == settings(
        chapter, f"  {begin}")


def test_the_mount_ends_where_a_mgr_looks() -> None:
    text = (PACKAGING / "cephadm-mgr.yaml").read_text(encoding="utf-8")
    found = re.search(r'"([^":]+):([^":]+):ro"', text)
    assert found and found.group(2) == f"/{MODULE_PATH}/equilibrium"
    assert f"install.sh --to {found.group(1)}" in text
