"""Sessions and the command line of the stub."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List

import pytest

from mgr_stub.__main__ import main
from mgr_stub.clock import parse_span
from mgr_stub.console.session import Session
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run
from tests.support.clusters.stub_states import load_fake
from tests.support.tables import rows

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    return make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]))


def steps(session: Any) -> List[float]:
    """Seconds from the start to each round."""
    return [moment - session.clock.start for moment in session.module.steps]


def test_virtual_time_and_rounds(session: Any) -> None:
    assert steps(session) == [0]            # as a mgr starts serve() at once
    run(session, "sim run 5m")
    assert session.clock.elapsed() == 300
    assert steps(session) == [0, 60, 120, 180, 240, 300]
    run(session, "sim run 30s", "sim run 30s")
    assert steps(session)[-1] == 360


def test_requested_rounds(session: Any) -> None:
    run(session, "sim run 1s")
    assert steps(session) == [0]
    run(session, "config set mgr mgr/equilibrium/sleep_interval 10")
    assert steps(session) == [0, 1]             # config_notify set the wakeup
    assert session.clock.elapsed() == 1
    run(session, "sim run 20s")
    assert steps(session) == [0, 1, 11, 21]


def test_jobs_run_after_the_command(session: Any) -> None:
    assert session.command("equilibrium later") == (0, "later: planning\n", "")
    assert session.module.get_store("later") == "done"
    assert session.clock.elapsed() == 0


def test_run_idle_waits_for_what_moves(session: Any) -> None:
    assert run(session, "osd pg-upmap-items 2.0 2 4", "sim run idle")[1] == ""
    assert not session.simulation.backfill.moving()
    assert session.clock.elapsed() >= 120


def test_run_idle_is_bounded(session: Any) -> None:
    session.module.work = lambda: session.module.mon_command(
        {"prefix": "osd rm-pg-upmap-items", "pgid": "2.0"})
    run(session, "config set mgr mgr/equilibrium/sleep_interval 1d")
    assert session.command("sim run idle") == (
        -110, "", "the simulation is not idle after 60d0h")


def test_empty_lines_of_an_answer_are_dropped(session: Any) -> None:
    """As on real 16.2.15 and 20.2.4; a space is enough to keep a line."""
    words = ["equilibrium", "unannotated", "head\n\n\n  row\n \n", "\nend"]
    assert session.command_words(words) == (0, "head\n  row\n \nend\n", "")


@pytest.mark.parametrize("seconds, text", rows("""
90        90
90        90s
7200      2h
129600    1d12h
600       10 min
5400      1.5h
"""))
def test_time_spans(seconds: str, text: str) -> None:
    assert parse_span(text) == float(seconds)


class TestCommandLine:
    """`main` with the fake module in place of equilibrium."""

    @pytest.fixture(autouse=True)
    def fake(self, monkeypatch: Any) -> None:
        original = Session.from_state.__func__  # type: ignore[attr-defined]
        monkeypatch.setattr(Session, "from_state", classmethod(
            lambda cls, *args, **kw: original(cls, *args, load_module=load_fake, **kw)))

    def test_output_goes_where_it_belongs(self, capsys: Any) -> None:
        assert main(["-c", "equilibrium echo a", "-c", "ceph equilibrium echo b"]) == 0
        assert capsys.readouterr() == ('["a", 7, "plain"]\n["b", 7, "plain"]\n', "")

    def test_the_first_failing_line_gives_the_exit_code(self, capsys: Any) -> None:
        assert main(["-c", "equilibrium fail", "-c", "equilibrium echo a",
                     "-c", "sim nonsense"]) == 2
        out, err = capsys.readouterr()
        assert out == 'half an answer\n["a", 7, "plain"]\n'
        assert err.startswith("Error ENOENT: no such thing\n"
                              "Error EINVAL: 'sim nonsense' is not known")

    def test_missing_state_file(self, capsys: Any, tmp_path: Path) -> None:
        path = f"{tmp_path}/none.xz"
        assert main(["--state", path, "-c", "equilibrium echo a"]) == 2
        assert capsys.readouterr() == ("", f"Error ENOENT: {path}: no such state file\n")


def printed(*arguments: str, cwd: Path = ROOT, path: str = "") -> str:
    """What the program prints; it has to succeed, and nothing may stand on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "mgr_stub", *arguments], cwd=cwd, text=True, capture_output=True,
        timeout=120, env={**os.environ, "PYTHONHASHSEED": "random", "PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_demo_cluster_is_read_from_a_zip(tmp_path: Path) -> None:
    zips = [shutil.make_archive(str(tmp_path / name), "zip", ROOT, name)
            for name in ("mgr_stub", "equilibrium_mgr")]
    assert "automatic:" in printed(
        "-c", "equilibrium status", cwd=tmp_path, path=os.pathsep.join(zips))


def test_demo() -> None:
    out = printed()
    assert "$ ceph equilibrium on" in out
    highest = [float(row) for row in re.findall(r"^ *[\dhm]+[ms] +([\d.]+)% .*GiB", out, re.M)]
    assert highest[-1] < highest[0] - 10


def test_what_operators_type_first(session: Any) -> None:
    run(session, "osd set noout", "osd pg-upmap-items 2.0 2 osd.4")
    status, df, pools, usage, dump, osds = run(
        session, "ceph -s", "ceph df", "osd pool ls detail", "equilibrium -h", "osd dump",
        "osd df")
    assert status.startswith("health: HEALTH_OK\n")
    assert status.endswith("\npgs: 1 active+clean")
    assert "osd: 6 osds: 6 up, 6 in; " in status and "flags noout" in status
    assert df.startswith("TOTAL ") and "MAX AVAIL" in df
    assert pools.startswith("pool 2 '")
    assert "equilibrium later" in usage
    assert "pg_upmap_items 2.0 [2,4]" in dump
    assert osds.split()[0] == "ID"


def test_answers_in_json(session: Any) -> None:
    dump, osds, health, df, pools = map(json.loads, run(
        session, "osd dump --format json", "osd df -f json", "health --format=json",
        "df -f json", "osd pool ls detail -f json"))
    assert dump["epoch"] == 10 and len(osds["nodes"]) == 6
    assert health["status"] == "HEALTH_OK"
    assert len(df["pools"]) == len(pools) == 1


@pytest.mark.parametrize("line", [
    "osd set nonsense", "osd pg-upmap-items 2.0 2 x", "config set mgr a"])
def test_lines_that_are_refused(session: Any, line: str) -> None:
    assert session.command(line)[0] == -22


def test_pause_is_two_flags(session: Any) -> None:
    assert session.command("osd set pause")[2] == "pauserd,pausewr is set"
