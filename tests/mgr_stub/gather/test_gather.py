"""`gather`: what it asks, what is in the file, and one sentence where that fails."""

from __future__ import annotations

import copy
import gzip
import json
import lzma
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub import gather
from mgr_stub.__main__ import main
from mgr_stub.console.session import Session
from tests.support.secrets import ADDRESS, SECRETS, with_secrets
from tests.support.tables import rows

from .conftest import Ceph


def output_of(path: Path, capsys: Any, *lines: str) -> str:
    """The output of these lines for the cluster of a file."""
    capsys.readouterr()
    words = ["--state", str(path)]
    for line in lines:
        words += ["-c", line]
    assert main(words) == 0
    return str(capsys.readouterr().out)


def plan_of(path: Path, capsys: Any) -> str:
    """Without its first line."""
    out = output_of(path, capsys, "equilibrium optimize p", "equilibrium show p")
    return out.partition("\n")[2]


def sets_of(stats: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The up and acting sets of records of PGs."""
    return {pg["pgid"]: (pg["up"], pg["acting"]) for pg in stats}


@pytest.mark.parametrize("name, unpack", [
    ("a.json.xz", lzma.decompress), ("a.json.gz", gzip.decompress), ("a.json", bytes)])
def test_commands_are_named_and_the_file_plans(ceph: Ceph, capsys: Any, name: str,
                                               unpack: Callable[[bytes], bytes]) -> None:
    assert ceph.gather(name) == 0
    out, path = capsys.readouterr().out, ceph.out / name
    assert re.findall(r"^\S+ \S+ \S+ (.*) --format", out, re.M) == ceph.asked
    assert "10 OSDs, 3 pools, 49 PGs at osdmap epoch" in out.splitlines()[-1]
    assert os.listdir(ceph.out) == [name]
    epoch = json.loads(unpack(path.read_bytes()))["osd_dump"]["epoch"]
    assert plan_of(path, capsys).splitlines()[0].endswith(f"osdmap epoch {epoch}:")


def test_the_page_says_that_it_is_from_a_file_and_of_when(ceph: Ceph, capsys: Any) -> None:
    stamp = ceph.state()["timestamp"]
    page = output_of(ceph.out / "read.json", capsys, "equilibrium report")
    assert f"(from a state file of {stamp[:10]} {stamp[11:16]} UTC)" in page
    assert "simulated" not in page


def test_release_and_options_are_those_of_the_cluster(ceph: Ceph) -> None:
    assert ceph.gather() == 0
    session = Session.from_state(str(ceph.out / "state.json"), release=None)
    assert f"ceph version {session.cluster.release}." in json.dumps(ceph.answers["versions"])
    core = session.simulation.config.core
    assert core("osd.3", "osd_max_backfills") == 7
    assert core("osd.4", "osd_max_backfills") == 2
    assert core("mgr", "mon_max_pg_per_osd") == 400
    session.close()


def test_up_sets_are_of_the_osdmap(ceph: Ceph) -> None:
    """Whatever the PGs have reported."""
    wanted = sets_of(ceph.pgs())
    assert wanted == sets_of(ceph.reported)
    for pg in ceph.reported:
        pg["up"] = pg["acting"] = [0, 1, 2]
    assert sets_of(ceph.pgs()) == wanted


def test_where_crush_cannot_be_computed(ceph: Ceph, capsys: Any) -> None:
    for bucket in ceph.answers["osd crush dump"]["buckets"]:
        bucket["alg"] = "new"
    assert sets_of(ceph.pgs()) == sets_of(ceph.reported)
    assert "up sets are those that PGs have reported" in capsys.readouterr().out


# -- anonymous ------------------------------------------------------------------------------------

SECRET_OPTIONS = """
client.secret         osd_max_backfills                    3
mgr.secret            osd_max_backfills                    3
mon.secret            osd_max_backfills                    3
osd                   osd_max_backfills                    3                       host:secret-h0
osd                   osd_max_backfills                    3                       class:secretssd
mgr                   mgr/equilibrium/pools                a~secret~pool-2
mgr                   mgr/dashboard/secret/server_addr     ADDRESS
global                log_file                             /var/log/secret.log
"""


def with_all_secrets(answers: Dict[str, Any]) -> Dict[str, Any]:
    """The answers with names of every kind, the sections of options and masks among them."""
    text = json.dumps(answers).replace('"hdd"', '"ssd"').replace("~hdd", "~ssd")
    changed = json.loads(text.replace("127.0.0.1", ADDRESS))
    with_secrets({"osd_dump": changed["osd dump"], "crush_dump": changed["osd crush dump"]})
    for section, name, value, mask in rows(SECRET_OPTIONS.replace("ADDRESS", ADDRESS)):
        changed["config dump"].append(
            {"section": section, "name": name, "value": value, "mask": mask, "level": "basic",
             "can_update_at_runtime": True})
    pg_map = changed["pg dump"]["pg_map"]
    for one in pg_map["osd_stats"]:
        one["alerts"] = ["secret device"]
    pg_map["pg_stats"][0]["secret"] = "secret"
    return changed


def test_anonymous_tells_no_names(ceph: Ceph, capsys: Any) -> None:
    ceph.answers = with_all_secrets(ceph.answers)
    named, nameless = ceph.out / "named.json", ceph.out / "nameless.json"
    assert ceph.gather("named.json") == 0 and ceph.gather("nameless.json", "--anonymous") == 0
    text = nameless.read_text()
    for word in SECRETS:
        assert word in named.read_text()
        where = text.find(word)
        assert where < 0, text[max(0, where - 80):where + 80]
    assert plan_of(named, capsys).replace("secretssd", "nvmeclass00") == plan_of(nameless, capsys)


# -- what fails -----------------------------------------------------------------------------------

def fails(ceph: Ceph, capsys: Any, text: str, name: str = "state.json") -> None:
    """One sentence, another exit code than 0, and no file."""
    before = sorted(os.listdir(ceph.out))
    assert ceph.gather(name) > 0
    err = capsys.readouterr().err
    assert err.startswith("Error E") and err.count("\n") == 1 and text in err, err
    assert sorted(os.listdir(ceph.out)) == before


#: The command, its script, and words of the message.
FAILURES = """
pg dump         echo 'Error EACCES: access denied: does your client key have mgr caps?' >&2; exit 13
  mgr caps?; the key needs: mon 'allow r' mgr 'allow r'
osd dump          echo a; echo; echo '[errno 2] error connecting to the cluster' >&2; exit 1
  'ceph osd dump' fails: [errno 2] error connecting to the cluster
versions        echo 'Error initializing: ObjectNotFound(error calling conf_read_file)' >&2; exit 1
  conf_read_file)NO_KEY
versions          echo '-1 auth: unable to find a keyring on /etc/ceph/keyring' >&2; NO_RADOS
  'ceph versions' fails: [errno 13] RADOS permission denied (error connecting to the cluster)NO_KEY
osd dump          exit 5
  'ceph osd dump' fails: no message
pg dump           echo RAW STORAGE
  does not answer in JSON: 'RAW STORAGE'
osd crush dump    exit 0
  does not answer in JSON: ''
osd crush dump    echo '{}'
  in another form than Ceph 16 to 20 do:
pg dump           echo '{"pg_stats": []}'
  in another form
pg dump           echo '[]'
  in another form
osd crush dump    sed 's/: 0, .weight.:/: -1, "weight":/' 'osd crush dump'   # a circle
  in another form
pg dump           sed 's/omap_bytes.: [0-9]*/omap_bytes": 1e999/g' 'pg dump'
  in another form
pg dump           printf '%100000s' | tr ' ' '['
  does not answer in JSON: '[[
versions          kill -9 $$
  'ceph versions' fails
config dump       exec sleep 60
  'ceph config dump' has not answered within 0.5 s
""".replace("NO_KEY", gather._NO_KEY).replace("NO_RADOS", (
    "echo '[errno 13] RADOS permission denied (error connecting to the cluster)' >&2; exit 13"))


@pytest.mark.parametrize("ceph", [16], indirect=True)
@pytest.mark.parametrize("command, script, text", re.findall(
    r"^(\S.*?) {2,}(.*)\n +(.*)$", FAILURES, re.M))
def test_what_fails(ceph: Ceph, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: str,
                    script: str, text: str) -> None:
    if "sleep" in script:
        monkeypatch.setattr(gather, "TIMEOUT", 0.5)
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
    step = first = 1
    if command == "osd dump":   # of a pair of osdmaps the later one counts
        step = 2
        first += "pools" in keys
    ceph.answers[f"{command}.{first}"] = changed
    assert ceph.gather() == 0 and ceph.asked.count("pg dump") == 2
    for number in range(2 * step, 20, step):
        ceph.answers[f"{command}.{number}"] = changed
    fails(ceph, capsys, text, "other.json")


@pytest.mark.parametrize("ceph", [16], indirect=True)
def test_what_the_file_lacks_is_said(ceph: Ceph, capsys: Any) -> None:
    pg_map = ceph.answers["pg dump"]["pg_map"]
    del pg_map["pool_statfs"]
    for pg in ceph.reported:
        del pg["stat_sum"]["num_objects_omap"]
    ceph.reported[3]["state"] = "unknown"
    pg_map["osd_stats"][2]["kb"] = 0
    ceph.answers["versions"]["osd"] = {"ceph version 15.2.17 (8a82819) octopus (stable)": 10}
    assert ceph.gather() == 0
    said = capsys.readouterr().out
    for text in ("1 PGs are unknown", "1 OSDs that are in have no statistics",
                 "how much each pool takes", "which objects have omap", "a daemon runs Ceph 15"):
        assert said.count(text) == 1, text
    plan_of(ceph.out / "state.json", capsys)
