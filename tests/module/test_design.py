"""The pages name files that are there, and what the design names is defined."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.readme.blocks import HANDBOOK, PAGES

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "equilibrium_mgr"
_PATH = re.compile(r"(?<![\w/.-])((?:[\w.]+/)+(?:[\w.]+\.(?:py|md|txt))?|[\w]+\.py)(?![\w/])")
_OTHERS = {"mgr/equilibrium/", "pool/"}   # names of options and pools
#: Where a path may begin: at the top, in the module, or in the simulated mgr.
_BASES = (ROOT, MODULE, ROOT / "mgr_stub")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_folders_that_are_named_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {path for quoted in re.findall(r"`([^`\n]+)`", text) for path in _PATH.findall(quoted)}
    missing = sorted(path for path in named - _OTHERS
                     if not any((base / path).exists() for base in _BASES))
    assert missing == []


def test_the_handbook_has_a_chapter_for_each_health_check() -> None:
    source = (MODULE / "report" / "health.py").read_text(encoding="utf-8")
    codes = set(re.findall(r"\"(MGR_EQUILIBRIUM_\w+)\"", source))
    text = (HANDBOOK / "troubleshooting.md").read_text(encoding="utf-8")
    assert codes
    assert codes == set(re.findall(r"^### (MGR_\w+)$", text, re.MULTILINE))


def test_classes_and_constants_that_the_design_names_are_defined() -> None:
    text = (HANDBOOK / "DESIGN.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = set(re.findall(r"`((?:[A-Z][a-z]+){2,}|[A-Z]+_[A-Z_]+|[A-Z]{5,})(?:\.\w+)?`", prose))
    sources = [path.read_text(encoding="utf-8")
               for top in ("equilibrium_mgr", "mgr_stub", "tests")
               for path in (ROOT / top).rglob("*.py")]
    defined = {name for source in sources for name in re.findall(
        r"^(?:class |\s*)([A-Za-z_]+)(?:\(.*\)|: .*)?(?::| = )", source, re.MULTILINE)}
    assert len(named) >= 10
    assert named - defined - {"MGR_EQUILIBRIUM_"} == set()
