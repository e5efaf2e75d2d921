"""A `ceph` that answers what a real one did, as files of a folder; tests change these."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from mgr_stub import gather
from mgr_stub.__main__ import main

_RECORDED = Path(__file__).parent / "recorded"
#: $1 $2 are --connect-timeout N; the words of the command end at --format.
_SCRIPT = """#!/bin/sh
shift 2; name=$1; shift
while [ "$1" != --format ]; do name="$name $1"; shift; done
cd "{folder}"
echo "$name" >> asked
count=$(grep -cx "$name" asked)
[ -e "$name.sh" ] && exec sh "$name.sh"
[ -e "$name.$count" ] && exec cat "$name.$count"
exec cat "$name"
"""


class Ceph:
    """`answers`: command → what it answers; they are written as the test gathers."""

    def __init__(self, folder: Path, release: int) -> None:
        self.folder = folder / "answers"
        self.folder.mkdir()
        self.out = folder / "out"
        self.out.mkdir()
        self.answers: Dict[str, Any] = json.loads(
            lzma.decompress((_RECORDED / f"ceph{release}.json.xz").read_bytes()))
        programs = folder / "bin"
        programs.mkdir()
        (programs / "ceph").write_text(_SCRIPT.format(folder=self.folder))
        (programs / "ceph").chmod(0o755)
        self.path = f"{programs}:{os.environ['PATH']}"

    def behaves(self, command: str, script: str) -> None:
        """The command runs these lines of the shell."""
        (self.folder / f"{command}.sh").write_text(script)

    def gather(self, name: str = "state.json", *options: str) -> int:
        """The exit code of `python3 -m mgr_stub gather`."""
        for command, answer in self.answers.items():
            (self.folder / command).write_text(json.dumps(answer))
        return main(["gather", str(self.out / name), *options])

    def state(self) -> Dict[str, Any]:
        """What is in the file."""
        (self.out / "read.json").unlink(missing_ok=True)
        assert self.gather("read.json") == 0
        found: Dict[str, Any] = json.loads((self.out / "read.json").read_text())
        return found

    def pgs(self) -> List[Dict[str, Any]]:
        """The records of PGs in the file."""
        return list(self.state()["pg_dump"]["pg_map"]["pg_stats"])

    @property
    def reported(self) -> List[Dict[str, Any]]:
        """Those that `pg dump` answers; they can be changed."""
        found: List[Dict[str, Any]] = self.answers["pg dump"]["pg_map"]["pg_stats"]
        return found

    @property
    def asked(self) -> List[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture(params=[16, 20])
def ceph(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ceph:
    made = Ceph(tmp_path, request.param)
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.setattr(gather, "_PAUSE", 0.0)
    return made
