"""Reading and writing state files, valid and invalid ones."""

from __future__ import annotations

import errno
import gzip
import json
import lzma
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from mgr_stub.clock import DEFAULT_START, format_time, parse_timestamp
from mgr_stub.errors import StubError
from mgr_stub.simulation import statistics
from mgr_stub.state.cluster_builder import build_cluster
from mgr_stub.state.state_file import read_state, save_state
from tests.support.clusters import stub_states as clusters


def some_state() -> Dict[str, Any]:
    return clusters.state([clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [4, 1, 0])],
                          items=[("2.1", [(3, 4)])])


def write(path: Path, state: Any) -> str:
    text = json.dumps(state).encode()
    path.write_bytes(lzma.compress(text) if path.suffix == ".xz" else text)
    return str(path)


@pytest.mark.parametrize("name", ["state.json", "state.json.xz"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    cluster = build_cluster(read_state(write(tmp_path / name, some_state())), 16)
    out = str(tmp_path / ("again-" + name))
    save_state(cluster, out)
    saved = read_state(out)
    again = build_cluster(saved, 16)
    assert again.map == cluster.map
    assert {pgid: pg.raw for pgid, pg in again.pgs.items()} == {
        "2.0": (0, 1, 2), "2.1": (3, 1, 0)}
    assert saved["pg_dump"]["pg_map"]["osd_stats"] == some_state()["pg_dump"]["pg_map"]["osd_stats"]
    assert again.clock() == cluster.clock()


def test_saving_in_the_middle_of_a_backfill(tmp_path: Path,
                                            make_session: Callable[..., Any]) -> None:
    session = make_session(some_state())
    session.command("osd pg-upmap-items 2.0 2 5")
    session.command("sim run 6s")
    path = str(tmp_path / "moving.json.xz")
    assert session.command(f"sim save {path}") == (0, "", "")
    other = make_session(read_state(path))
    assert other.cluster.map.pg_temp == {"2.0": (0, 1, 2)}
    assert other.mgr.get("pg_status")["misplaced_objects"] == session.mgr.get(
        "pg_status")["misplaced_objects"]
    assert other.mgr.get("osd_stats") == session.mgr.get("osd_stats")
    for one in (session, other):
        one.command("sim run 1h")
        assert one.cluster.pgs["2.0"].held == (0, 1, 5)
    here, there = session.cluster.usage[5].used, other.cluster.usage[5].used
    assert there == pytest.approx(here, rel=1e-3)


@pytest.mark.parametrize("content, text", [
    (b"", "no state file"),
    (b"not json", "no state file"),
    (b"\xff\xfe\x00", "no state file"),
    (json.dumps(some_state()).encode()[:500], "a part of one"),
    (lzma.compress(json.dumps(some_state()).encode())[:300], "a part of one"),
    (gzip.compress(json.dumps(some_state()).encode())[:300], "a part of one"),
    (b"\x1f\x8bno gzip", "no state file"),
    (b"[1]", "this has None"),
    (b'{"stateversion": 2}', "this has 2"),
    (b"[" * 100000, "no state file"),
])
def test_bad_files(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(StubError) as caught:
        read_state(str(path))
    assert caught.value.code == -errno.EINVAL
    assert text in caught.value.message and "\n" not in caught.value.message


_MISSING = [
    ("osd_dump",), ("osd_dump", "pools"), ("osd_dump", "osds"), ("pg_dump",),
    ("pg_dump", "pg_map"), ("pg_dump", "pg_map", "pg_stats"), ("pg_dump", "pg_map", "osd_stats"),
    ("crush_dump",), ("crush_dump", "rules"), ("osd_dump", "pools", 0, "size"),
    ("osd_dump", "osds", 0, "weight"), ("pg_dump", "pg_map", "pg_stats", 0, "up"),
    ("pg_dump", "pg_map", "osd_stats", 0, "statfs"), ("crush_dump", "buckets", 0, "items"),
]


@pytest.mark.parametrize("keys, value", [
    *((keys, ...) for keys in _MISSING),
    (("osd_dump", "pools", 0, "size"), "three"),
    (("osd_dump", "pools", 0, "type"), None),
    (("osd_dump", "osds", 0, "weight"), []),
    (("pg_dump", "pg_map", "pg_stats", 0, "pgid"), "nonsense"),
    (("pg_dump", "pg_map", "pg_stats", 0, "pgid"), "77.0"),
    (("pg_dump", "pg_map", "pg_stats", 0, "up"), ["a"]),
    (("pg_dump", "pg_map", "pg_stats", 0, "stat_sum"), {"num_bytes": "many"}),
    (("pg_dump", "pg_map", "osd_stats", 0, "statfs"), {}),
    (("crush_dump", "buckets", 0, "items"), [{}]),
    (("osd_dump", "pg_upmap_items"), [{"pgid": "2.0"}]),
])
def test_missing_and_invalid_values(keys: Any, value: Any) -> None:
    """`...` takes the key away."""
    state = some_state()
    inner: Any = state
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    if value is ...:
        del inner[keys[-1]]
    with pytest.raises(StubError) as caught:
        build_cluster(state, 16)
    assert caught.value.code == -errno.EINVAL and "\n" not in caught.value.message
    assert value is not ... or str(keys[-1]) in caught.value.message


def test_minimal_state_file() -> None:
    state = some_state()
    state["osd_dump"] = {key: state["osd_dump"][key] for key in ("pools", "osds")}
    state["osd_dump"]["osds"] = [{"osd": osd, "weight": 0.5} for osd in range(7)]
    del state["timestamp"]
    cluster = build_cluster(state, 18)
    assert cluster.clock() == DEFAULT_START
    assert cluster.map.epoch == 1 and cluster.map.reweight(3) == 0.5
    assert cluster.map.dump(18)["osds"][0]["state"] == ["exists", "up"]
    assert [record["osd"] for record in statistics.osd_stats(cluster)] == list(range(6))


def test_reweights_may_be_whole_numbers() -> None:
    state = some_state()
    state["osd_dump"]["osds"][1].update(weight=1, state=["exists"])
    dump = build_cluster(state, 16).map.dump(16)
    assert isinstance(dump["osds"][1]["weight"], float)
    assert "up" in dump["osds"][1]["state"]


@pytest.mark.parametrize("text, moment", [
    ("2026-01-01T00:00:00", 1767225600.0), ("2026-01-01T00:00:00Z", 1767225600.0),
    ("2026-01-01T01:00:00.000000+0100", 1767225600.0), ("yesterday", DEFAULT_START),
    (None, DEFAULT_START)])
def test_timestamps(text: Any, moment: float) -> None:
    assert parse_timestamp(text) == moment
    assert format_time(moment) == "2026-01-01T00:00:00.000000+0000"
