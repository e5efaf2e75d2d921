"""`python3 -m mgr_stub` with the module in it, as a process of its own."""

from __future__ import annotations

import copy
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest

ROOT = Path(__file__).resolve().parents[2]


def stub(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mgr_stub", *map(str, arguments)], cwd=ROOT, text=True,
        capture_output=True, timeout=120, check=False,
        env={**os.environ, "PYTHONHASHSEED": "random"})


@pytest.mark.full
def test_demo_and_seed() -> None:
    first, second = (stub("--seed", 3) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert "The same cluster after that" in first.stdout and "MISPLACED" in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.full
@pytest.mark.parametrize("release", [20, 16])
def test_plan_and_save_are_reproducible(tmp_path: Path, release: int) -> None:
    results = []
    for number in range(2):
        saved = tmp_path / (f"{number}.json")
        result = stub("--release", release, *(word for line in (
            "equilibrium optimize p", "equilibrium show p", "equilibrium dump p --format json",
            "equilibrium execute p", "sim run idle", "equilibrium status",
            f"sim save {saved}") for word in ("-c", line)))
        assert (result.returncode, result.stderr) == (0, "")
        results.append((result.stdout, saved.read_text()))
    assert results[0] == results[1]
    assert ("p: planning; 'ceph equilibrium eval p' shows it when it is made\n# plan p"
            in results[0][0])


def test_one_command_on_a_state() -> None:
    result = stub("equilibrium", "eval", "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    assert {row["device_class"] for row in json.loads(result.stdout)["classes"]} == {"hdd", "ssd"}


def test_exit_code_of_the_first_failure() -> None:
    result = stub("-c", "equilibrium show nope", "-c", "equilibrium ls --format xml",
                  "-c", "equilibrium ls --format json")
    assert result.returncode == 2
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == [
        "Error ENOENT", "Error EINVAL"]
    assert result.stdout == '{"plans": []}\n'


def without(*keys: str) -> Callable[[Dict[str, Any]], None]:
    def take(state: Dict[str, Any]) -> None:
        holder: Any = state
        for key in keys[:-1]:
            holder = holder[int(key)] if isinstance(holder, list) else holder[key]
        del holder[keys[-1]]
    return take


BAD_STATES: Dict[str, Callable[[Dict[str, Any]], None]] = {
    "no stateversion": without("stateversion"),
    "another version": lambda state: state.update(stateversion=2),
    "no osd_dump": without("osd_dump"),
    "no pools": without("osd_dump", "pools"),
    "no crush_dump": without("crush_dump"),
    "no pg_stats": without("pg_dump", "pg_map", "pg_stats"),
    "a pool without size": without("osd_dump", "pools", "1", "size"),
    "a PG without up": without("pg_dump", "pg_map", "pg_stats", "3", "up"),
    "pools are none": lambda state: state["osd_dump"].update(pools={"a": 1}),
    "a rule is none": lambda state: state["crush_dump"].update(rules=[7]),
    "a profile is missing": lambda state: state["osd_dump"].update(erasure_code_profiles={}),
    "a weight is a text": lambda state: state["osd_dump"]["osds"][0].update(weight="much"),
    "a PG of no pool": lambda state: state["pg_dump"]["pg_map"]["pg_stats"][0].update(pgid="x"),
}


@pytest.mark.parametrize("what", BAD_STATES)
def test_damaged_states(tmp_path: Path, demo_state: Dict[str, Any], what: str,
                        capsys: pytest.CaptureFixture[str]) -> None:
    from mgr_stub.__main__ import main
    BAD_STATES[what](demo_state)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(demo_state))
    code = main(["--state", str(path), "equilibrium", "status"])
    seen = capsys.readouterr()
    assert code > 0 and seen.out == ""
    assert seen.err.startswith("Error E") and seen.err.count("\n") == 1
    assert "Traceback" not in seen.err and str(path) in seen.err


@pytest.mark.parametrize("content", [
    b"", b'{"stateversion": 1, "osd', lzma.compress(b"x" * 9000)[:50], b"[]", bytes(range(256)),
    None])
def test_damaged_files(tmp_path: Path, content: Optional[bytes],
                       capsys: pytest.CaptureFixture[str]) -> None:
    from mgr_stub.__main__ import main
    path = tmp_path / "state"
    if content is not None:
        path.write_bytes(content)
    assert main(["--state", str(path), "equilibrium", "status"]) > 0
    seen = capsys.readouterr()
    assert seen.err.startswith("Error E") and str(path) in seen.err and "Traceback" not in seen.err


def test_a_state_without_what_nobody_needs(tmp_path: Path, demo_state: Dict[str, Any]) -> None:
    """Only what the state file must have: a plan all the same."""
    lean = copy.deepcopy(demo_state)
    for key in ("versions", "health_detail", "osd_df_dump", "osd_df_tree_dump", "df_dump",
                "pool_dump", "crush_class_osds", "timestamp"):
        lean.pop(key, None)
    path = tmp_path / "state.json"
    path.write_text(json.dumps(lean))
    result = stub("--state", path, "-c", "equilibrium optimize p", "-c", "equilibrium show p")
    assert (result.returncode, result.stderr) == (0, "")
    assert "ceph osd pg-upmap-items" in result.stdout


def test_a_page_stands_alone_on_stdout() -> None:
    result = stub("-c", "equilibrium optimize p", "-c", "equilibrium eval",
                  "-c", "equilibrium report p")
    assert result.returncode == 0
    assert result.stdout.startswith("<!DOCTYPE html>\n")
    assert result.stdout.count("<!DOCTYPE") == 1 and result.stdout.endswith("</html>\n")
    assert result.stderr.startswith("p: planning; ")
