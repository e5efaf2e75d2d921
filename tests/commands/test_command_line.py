"""`python3 -m mgr_stub` with the module in it, as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    assert "The same cluster after that" in first.stdout
    assert "MISPLACED" in first.stdout
    assert first.stdout == second.stdout


def test_exit_code_of_the_first_failure() -> None:
    result = stub("-c", "equilibrium show nope", "-c", "equilibrium ls --format xml",
                  "-c", "equilibrium ls --format json")
    assert result.returncode == 2
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == [
        "Error ENOENT", "Error EINVAL"]
    assert result.stdout == '{"plans": []}\n'
