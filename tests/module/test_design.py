"""DESIGN.md and the README name files that are there, and the README all that operators can use."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from equilibrium_mgr.settings import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "equilibrium_mgr"
README = ROOT / "README.md"
_PATH = re.compile(r"(?<![\w/.-])((?:[\w.]+/)+(?:[\w.]+\.(?:py|md|txt))?|[\w]+\.py)(?![\w/])")
_OTHERS = {"mgr/equilibrium/", "pool/"}   # names of options and pools
#: Where a path may begin: at the top, in the module, or in the simulated mgr.
_BASES = (ROOT, MODULE, ROOT / "mgr_stub")


@pytest.mark.parametrize("document", ["equilibrium_mgr/DESIGN.md", "README.md"])
def test_files_and_folders_that_are_named_are_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = {path for quoted in re.findall(r"`([^`\n]+)`", text) for path in _PATH.findall(quoted)}
    assert named
    missing = sorted(path for path in named - _OTHERS
                     if not any((base / path).exists() for base in _BASES))
    assert missing == []


def test_the_readme_has_a_row_for_each_option() -> None:
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {option["name"] for option in OPTIONS} <= told


def test_the_readme_names_each_command() -> None:
    text = README.read_text(encoding="utf-8")
    commands = re.findall(r"(?:read|write)_command\(\"equilibrium ([\w -]+)\"",
                          (MODULE / "cli.py").read_text(encoding="utf-8"))
    assert len(commands) >= 17
    assert [name for name in commands
            if f"`{name}" not in text and f"equilibrium {name}" not in text] == []


def test_the_readme_lists_the_commands_that_need_more_than_to_read() -> None:
    paragraph = re.search("`ceph equilibrium …` is sent to the mgr[.] (.*?) need the cap",
                          " ".join(README.read_text("utf-8").split()))
    assert paragraph is not None
    cli = (MODULE / "cli.py").read_text("utf-8")
    writing = re.findall('@write_command[(]"equilibrium ([^"]*)"', cli)
    assert sorted(re.findall("`([^`]*)`", paragraph.group(1))) == sorted(writing)
    assert "undo" in writing


def test_the_readme_has_a_row_for_each_health_check() -> None:
    source = (MODULE / "report" / "health.py").read_text(encoding="utf-8")
    codes = set(re.findall(r"\"(MGR_EQUILIBRIUM_\w+)\"", source))
    text = README.read_text(encoding="utf-8")
    assert codes
    assert {code for code in codes if f"| `{code}` |" not in text} == set()


def test_classes_and_constants_that_the_design_names_are_defined() -> None:
    text = (MODULE / "DESIGN.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = set(re.findall(r"`((?:[A-Z][a-z]+){2,}|[A-Z]+_[A-Z_]+|[A-Z]{5,})(?:\.\w+)?`", prose))
    sources = [path.read_text(encoding="utf-8")
               for top in ("equilibrium_mgr", "mgr_stub", "tests")
               for path in (ROOT / top).rglob("*.py")]
    defined = {name for source in sources for name in re.findall(
        r"^(?:class |\s*)([A-Za-z_]+)(?:\(.*\)|: .*)?(?::| = )", source, re.MULTILINE)}
    assert len(named) >= 10
    assert named - defined - {"MGR_EQUILIBRIUM_"} == set()
