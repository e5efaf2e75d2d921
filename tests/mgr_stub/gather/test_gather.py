"""`gather`: what it asks, what is in the file, and one sentence where that fails."""

from __future__ import annotations

import copy
import gzip
import json
import lzma
import os
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub import gather
from mgr_stub.__main__ import main
from mgr_stub.console.session import Session
from tests.support.secrets import ADDRESS, SECRETS, with_secrets

from .conftest import Ceph


def plan_of(path: Path, capsys: Any) -> List[str]:
    capsys.readouterr()
    assert main(["--state", str(path), "-c", "equilibrium optimize p",
                 "-c", "equilibrium show p"]) == 0
    lines: List[str] = capsys.readouterr().out.splitlines()[1:]
    return lines


@pytest.mark.parametrize("name, unpack", [
    ("a.json.xz", lzma.decompress), ("a.json.gz", gzip.decompress), ("a.json", bytes)])
def test_commands_are_named_and_the_file_plans(ceph: Ceph, capsys: Any, name: str,
                                               unpack: Callable[[bytes], bytes]) -> None:
    assert ceph.gather(name) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 3)[3].rpartition(" --format")[0] for line in shown[:-1]] == ceph.asked
    assert "10 OSDs, 3 pools, 49 PGs at osdmap epoch" in shown[-1]
    assert os.listdir(ceph.out) == [name]
    epoch = json.loads(unpack((ceph.out / name).read_bytes()))["osd_dump"]["epoch"]
    assert plan_of(ceph.out / name, capsys)[0].endswith(f"osdmap epoch {epoch}:")


def test_the_page_says_that_it_is_from_a_file_and_of_when(ceph: Ceph, capsys: Any) -> None:
    stamp = ceph.state()["timestamp"]
    assert main(["--state", str(ceph.out / "read.json"), "-c", "equilibrium report"]) == 0
    page = capsys.readouterr().out
    assert f"(from a state file of {stamp[:10]} {stamp[11:16]} UTC)" in page
    assert "simulated" not in page


def test_release_and_options_are_those_of_the_cluster(ceph: Ceph) -> None:
    assert ceph.gather() == 0
    session = Session.from_state(str(ceph.out / "state.json"), release=None)
    assert f"ceph version {session.cluster.release}." in json.dumps(ceph.answers["versions"])
    config = session.simulation.config
    assert config.core("osd.3", "osd_max_backfills") == 7
    assert config.core("osd.4", "osd_max_backfills") == 2
    assert config.core("mgr", "mon_max_pg_per_osd") == 400
    session.close()


def test_up_sets_are_of_the_osdmap(ceph: Ceph) -> None:
    """Whatever the PGs have reported."""
    wanted = {pg["pgid"]: (pg["up"], pg["acting"])
              for pg in ceph.state()["pg_dump"]["pg_map"]["pg_stats"]}
    reported = ceph.answers["pg dump"]["pg_map"]["pg_stats"]
    assert wanted == {pg["pgid"]: (pg["up"], pg["acting"]) for pg in reported}
    for pg in reported:
        pg["up"] = pg["acting"] = [0, 1, 2]
    state = ceph.state()
    assert wanted == {pg["pgid"]: (pg["up"], pg["acting"])
                      for pg in state["pg_dump"]["pg_map"]["pg_stats"]}


def test_where_crush_cannot_be_computed(ceph: Ceph, capsys: Any) -> None:
    for bucket in ceph.answers["osd crush dump"]["buckets"]:
        bucket["alg"] = "new"
    reported = ceph.answers["pg dump"]["pg_map"]["pg_stats"]
    state = ceph.state()
    assert "up sets are those that PGs have reported" in capsys.readouterr().out
    assert [pg["up"] for pg in state["pg_dump"]["pg_map"]["pg_stats"]] == [
        pg["up"] for pg in reported]


# -- anonymous ------------------------------------------------------------------------------------

def with_all_secrets(answers: Dict[str, Any]) -> Dict[str, Any]:
    """The answers with names of every kind, the sections of options and masks among them."""
    text = json.dumps(answers).replace('"hdd"', '"ssd"').replace("~hdd", "~ssd")
    changed = json.loads(text.replace("127.0.0.1", ADDRESS))
    with_secrets({"osd_dump": changed["osd dump"], "crush_dump": changed["osd crush dump"]})
    option = {"name": "osd_max_backfills", "value": "3", "level": "basic", "mask": "",
              "can_update_at_runtime": True}
    changed["config dump"] += [{**option, **other} for other in (
        {"section": "client.secret"}, {"section": "mgr.secret"}, {"section": "mon.secret"},
        {"section": "osd", "mask": "host:secret-h0"}, {"section": "osd", "mask": "class:secretssd"},
        {"section": "mgr", "name": "mgr/equilibrium/pools", "value": "a~secret~pool-2"},
        {"section": "mgr", "name": "mgr/dashboard/secret/server_addr", "value": ADDRESS},
        {"section": "global", "name": "log_file", "value": "/var/log/secret.log"})]
    for one in changed["pg dump"]["pg_map"]["osd_stats"]:
        one["alerts"] = ["secret device"]
    changed["pg dump"]["pg_map"]["pg_stats"][0]["secret"] = "secret"
    return changed


def test_anonymous_tells_no_names(ceph: Ceph, capsys: Any) -> None:
    ceph.answers = with_all_secrets(ceph.answers)
    assert ceph.gather("named.json") == 0 and ceph.gather("nameless.json", "--anonymous") == 0
    named, nameless = ((ceph.out / f"{one}.json").read_text() for one in ("named", "nameless"))
    assert all(word in named for word in SECRETS)
    for word in SECRETS:
        where = nameless.find(word)
        assert where < 0, nameless[max(0, where - 80):where + 80]
    lines = [plan_of(ceph.out / f"{one}.json", capsys) for one in ("named", "nameless")]
    assert [line.replace("secretssd", "nvmeclass00") for line in lines[0]] == lines[1]


# -- what fails -----------------------------------------------------------------------------------

def fails(ceph: Ceph, capsys: Any, text: str, name: str = "state.json") -> None:
    """One sentence, another exit code than 0, and no file."""
    before = sorted(os.listdir(ceph.out))
    assert ceph.gather(name) > 0
    err = capsys.readouterr().err
    assert err.startswith("Error E") and err.count("\n") == 1 and text in err, err
    assert sorted(os.listdir(ceph.out)) == before


DENIED = """echo 'Error EACCES: access denied: does your client key have mgr caps?' >&2; exit 13"""


@pytest.mark.parametrize("ceph", [16], indirect=True)
@pytest.mark.parametrize("command, script, text", [
    ("pg dump", DENIED, "mgr caps?; the key needs: mon 'allow r' mgr 'allow r'"),
    ("osd dump", "echo a; echo; echo '[errno 2] error connecting to the cluster' >&2; exit 1",
     "'ceph osd dump' fails: [errno 2] error connecting to the cluster"),
    ("versions", "echo 'Error initializing cluster client: ObjectNotFound(error calling"
     " conf_read_file)' >&2; exit 1", f"conf_read_file){gather._NO_KEY}"),
    ("versions", "echo '-1 auth: unable to find a keyring on /etc/ceph/keyring' >&2;"
     " echo '[errno 13] RADOS permission denied (error connecting to the cluster)' >&2; exit 13",
     f"'ceph versions' fails: [errno 13] RADOS permission denied (error connecting to the cluster)"
     f"{gather._NO_KEY}"),
    ("osd dump", "exit 5", "'ceph osd dump' fails: no message"),
    ("pg dump", "echo RAW STORAGE", "does not answer in JSON: 'RAW STORAGE'"),
    ("osd crush dump", "exit 0", "does not answer in JSON: ''"),
    ("osd crush dump", "echo '{}'", "in another form than Ceph 16 to 20 do: "),
    ("pg dump", "echo '{\"pg_stats\": []}'", "in another form"),
    ("pg dump", "echo '[]'", "in another form"),
    ("osd crush dump", "sed 's/: 0, .weight.:/: -1, \"weight\":/' 'osd crush dump'",
     "in another form"),   # a circle
    ("pg dump", "sed 's/omap_bytes.: [0-9]*/omap_bytes\": 1e999/g' 'pg dump'", "in another form"),
    ("pg dump", "printf '%100000s' | tr ' ' '['", "does not answer in JSON: '[["),
    ("versions", "kill -9 $$", "'ceph versions' fails"),
    ("config dump", "exec sleep 60", "'ceph config dump' has not answered within 0.5 s"),
])
def test_what_fails(ceph: Ceph, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: str,
                    script: str, text: str) -> None:
    monkeypatch.setattr(gather, "TIMEOUT", 0.5 if "sleep" in script else 60)
    ceph.behaves(command, script)
    fails(ceph, capsys, text)


@pytest.mark.parametrize("ceph", [16], indirect=True)
class TestWhereItRuns:
    """The host and its files."""

    def test_no_ceph(self, ceph: Ceph, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(ceph.out))
        fails(ceph, capsys, "there is no command 'ceph' here")

    def test_the_file_exists(self, ceph: Ceph, capsys: Any) -> None:
        (ceph.out / "state.json").write_text("mine")
        fails(ceph, capsys, "exists already")
        assert (ceph.out / "state.json").read_text() == "mine"
        assert not (ceph.folder / "asked").exists()

    def test_no_such_folder(self, ceph: Ceph, capsys: Any) -> None:
        fails(ceph, capsys, "no file can be made in", "nowhere/state.json")

    def test_the_disk_is_full(self, ceph: Ceph, capsys: Any) -> None:
        os.symlink("/dev/full", ceph.out / "state.json.part")
        assert ceph.gather() == 28
        assert "state.json: cannot be written: No space left" in capsys.readouterr().err
        assert os.listdir(ceph.out) == []

    def test_interrupted(self, ceph: Ceph, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt
        monkeypatch.setattr("subprocess.run", interrupt)
        fails(ceph, capsys, "interrupted")


# -- a cluster that changes, or lacks something ---------------------------------------------------

@pytest.mark.parametrize("ceph", [16], indirect=True)
@pytest.mark.parametrize("command, keys, value, text", [
    ("osd dump", ["crush_version"], 1, "the CRUSH map is being changed"),
    ("osd dump", ["pools", 1, "pg_num"], 99, "pools are being created, split or merged"),
    ("pg dump", ["pg_ready"], False, "has not received the statistics of all PGs")])
def test_a_cluster_in_between(ceph: Ceph, capsys: Any, command: str, keys: List[Any], value: Any,
                              text: str) -> None:
    """It is read again, until it stands still for a moment: here as the second try ends."""
    inner = changed = copy.deepcopy(ceph.answers[command])
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    step = 1 + (command == "osd dump")   # of a pair of osdmaps the later one counts
    (ceph.folder / f"{command}.{1 if 'crush_version' in keys else step}").write_text(
        json.dumps(changed))
    assert ceph.gather() == 0 and ceph.asked.count("pg dump") == 2
    for number in range(2 * step, 20, step):
        (ceph.folder / f"{command}.{number}").write_text(json.dumps(changed))
    fails(ceph, capsys, text, "other.json")


@pytest.mark.parametrize("ceph", [16], indirect=True)
def test_what_the_file_lacks_is_said(ceph: Ceph, capsys: Any) -> None:
    pg_map = ceph.answers["pg dump"]["pg_map"]
    del pg_map["pool_statfs"]
    for pg in pg_map["pg_stats"]:
        del pg["stat_sum"]["num_objects_omap"]
    pg_map["pg_stats"][3]["state"] = "unknown"
    pg_map["osd_stats"][2]["kb"] = 0
    ceph.answers["versions"]["osd"] = {"ceph version 15.2.17 (8a82819) octopus (stable)": 10}
    assert ceph.gather() == 0
    said = capsys.readouterr().out
    for text in ("1 PGs are unknown", "1 OSDs that are in have no statistics",
                 "how much each pool takes", "which objects have omap", "a daemon runs Ceph 15"):
        assert said.count(text) == 1, text
    plan_of(ceph.out / "state.json", capsys)
