"""Sessions and the command line of the stub."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from mgr_stub.__main__ import main
from mgr_stub.clock import parse_span
from mgr_stub.console.session import Session
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.stub_states import load_fake

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]))


def test_virtual_time_and_rounds(session: Any) -> None:
    start = session.clock.now
    assert session.module.steps == [start]            # as a mgr starts serve() at once
    session.command("sim run 5m")
    assert session.clock.now == start + 300
    assert session.module.steps == [start + 60 * n for n in range(6)]
    session.command("sim run 30s")
    session.command("sim run 30s")
    assert session.module.steps[-1] == start + 360


def test_requested_rounds(session: Any) -> None:
    session.command("sim run 1s")
    assert len(session.module.steps) == 1
    session.command("config set mgr mgr/equilibrium/sleep_interval 10")
    assert len(session.module.steps) == 2             # config_notify set the wakeup
    assert session.clock.elapsed() == 1
    session.command("sim run 20s")
    assert [moment - session.clock.start for moment in session.module.steps] == [0, 1, 11, 21]


def test_jobs_run_after_the_command(session: Any) -> None:
    assert session.command("equilibrium later") == (0, "later: planning\n", "")
    assert session.module.get_store("later") == "done"
    assert session.clock.elapsed() == 0


def test_run_idle_waits_for_what_moves(session: Any) -> None:
    session.command("osd pg-upmap-items 2.0 2 4")
    assert session.command("sim run idle") == (0, "", "")
    assert not session.simulation.backfill.moving()
    assert session.clock.elapsed() >= 120


def test_run_idle_is_bounded(session: Any) -> None:
    session.module.work = lambda: session.module.mon_command(
        {"prefix": "osd rm-pg-upmap-items", "pgid": "2.0"})
    session.command("config set mgr mgr/equilibrium/sleep_interval 1d")
    rc, out, err = session.command("sim run idle")
    assert (rc, out) == (-110, "")
    assert err == "the simulation is not idle after 60d0h"


@pytest.mark.parametrize("line, text", [
    ("sim", "is not known"), ("sim dance", "'sim dance' is not known"),
    ("sim run", "needs a time span"), ("sim run 2 fortnights", "needs a time span"),
    ("sim run 2x", "is not a time span"), ("sim run -1h", "is not a time span"),
    ("sim save", "needs one file name"), ("sim save a b", "needs one file name"),
    ("sim failover now", "takes no arguments"),
    ("sim pool add x", "knows only"),
])
def test_unknown_sim_lines(session: Any, line: str, text: str) -> None:
    rc, out, err = session.command(line)
    assert (rc, out) == (-22, "") and text in err and "\n" not in err


def test_other_lines(session: Any) -> None:
    session.command("osd pg-upmap-items 2.0 2 osd.4")
    assert "pg_upmap_items 2.0 [2,4]" in session.command("osd dump")[1]
    assert json.loads(session.command("osd dump --format json")[1])["epoch"] == 11
    assert len(json.loads(session.command("osd df -f json")[1])["nodes"]) == 6
    assert session.command("osd df")[1].splitlines()[0].split()[0] == "ID"
    assert session.command("osd set nonsense")[0] == -22
    assert session.command("osd set pause")[2] == "pauserd,pausewr is set"
    assert session.command("osd pg-upmap-items 2.0 2 x")[0] == -22
    assert session.command("config set mgr a")[0] == -22
    assert json.loads(session.command("health --format=json")[1])["status"] == "HEALTH_OK"


def test_empty_lines_of_an_answer_are_dropped(session: Any) -> None:
    """As on real 16.2.15 and 20.2.4; a space is enough to keep a line."""
    words = ["equilibrium", "unannotated", "head\n\n\n  row\n \n", "\nend"]
    assert session.command_words(words) == (0, "head\n  row\n \nend\n", "")


@pytest.mark.parametrize("text, seconds", [
    ("90", 90), ("90s", 90), ("2h", 7200), ("1d12h", 129600), ("10 min", 600), ("1.5h", 5400)])
def test_time_spans(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


class TestCommandLine:
    """`main` with the fake module in place of equilibrium."""

    @pytest.fixture(autouse=True)
    def fake(self, monkeypatch: Any) -> None:
        original = Session.from_state.__func__  # type: ignore[attr-defined]
        monkeypatch.setattr(Session, "from_state", classmethod(
            lambda cls, *args, **kw: original(cls, *args, load_module=load_fake, **kw)))

    def test_output_goes_where_it_belongs(self, capsys: Any) -> None:
        assert main(["-c", "equilibrium echo a", "-c", "ceph equilibrium echo b"]) == 0
        seen = capsys.readouterr()
        assert seen.out == '["a", 7, "plain"]\n["b", 7, "plain"]\n'
        assert seen.err == ""

    def test_the_first_failing_line_gives_the_exit_code(self, capsys: Any) -> None:
        lines = ["equilibrium fail", "equilibrium echo a", "sim nonsense"]
        assert main([word for line in lines for word in ("-c", line)]) == 2
        seen = capsys.readouterr()
        assert seen.out == 'half an answer\n["a", 7, "plain"]\n'
        assert seen.err.splitlines()[0] == "Error ENOENT: no such thing"
        assert seen.err.splitlines()[1].startswith("Error EINVAL: 'sim nonsense' is not known")

    def test_missing_state_file(self, capsys: Any, tmp_path: Path) -> None:
        assert main(["--state", f"{tmp_path}/none.xz", "-c", "equilibrium echo a"]) == 2
        seen = capsys.readouterr()
        assert seen.out == ""
        assert seen.err == f"Error ENOENT: {tmp_path}/none.xz: no such state file\n"

def run(*arguments: str, cwd: Path = ROOT, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mgr_stub", *arguments], cwd=cwd, text=True,
                          capture_output=True, timeout=120, check=False,
                          env={**os.environ, "PYTHONHASHSEED": "random", "PYTHONPATH": path})


def test_the_demo_cluster_is_read_from_a_zip(tmp_path: Path) -> None:
    zips = [shutil.make_archive(str(tmp_path / name), "zip", ROOT, name)
            for name in ("mgr_stub", "equilibrium_mgr")]
    result = run("-c", "equilibrium status", cwd=tmp_path, path=os.pathsep.join(zips))
    assert (result.returncode, result.stderr) == (0, "") and "automatic:" in result.stdout


def test_demo() -> None:
    result = run()
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "$ ceph equilibrium on" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()
            if line.endswith(tuple("0123456789"))]
    moments = [row for row in rows if row[0].endswith(("m", "s")) and "GiB" in row]
    assert float(moments[-1][1].rstrip("%")) < float(moments[0][1].rstrip("%")) - 10


def test_what_operators_type_first(session: Any) -> None:
    session.command("osd set noout")
    said = {line: session.command(line)[1] for line in (
        "ceph -s", "ceph df", "osd pool ls detail", "equilibrium -h")}
    assert said["ceph -s"].split("\n") == [
        "health: HEALTH_OK", *said["ceph -s"].split("\n")[1:-1], "pgs: 1 active+clean"]
    assert "osd: 6 osds: 6 up, 6 in; " in said["ceph -s"] and "flags noout" in said["ceph -s"]
    assert said["ceph df"].startswith("TOTAL ") and "MAX AVAIL" in said["ceph df"]
    assert said["osd pool ls detail"].startswith("pool 2 '")
    assert isinstance(json.loads(session.command("df -f json")[1])["pools"], list)
    assert isinstance(json.loads(session.command("osd pool ls detail -f json")[1]), list)
    assert "equilibrium later" in said["equilibrium -h"]
