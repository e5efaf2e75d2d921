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
from tests.support.clusters.crush_cluster import raw_of
from tests.support.tables import rows


def some_state() -> Dict[str, Any]:
    return clusters.state([clusters.pg("2.0", [0, 1, 2]), clusters.pg("2.1", [4, 1, 0])],
                          items=[("2.1", [(3, 4)])])


TEXT = json.dumps(some_state()).encode()


@pytest.mark.parametrize("pack, name", [(bytes, "state.json"), (lzma.compress, "state.json.xz")])
def test_round_trip(tmp_path: Path, pack: Callable[[bytes], bytes], name: str) -> None:
    path, out = tmp_path / name, tmp_path / f"again-{name}"
    path.write_bytes(pack(TEXT))
    cluster = build_cluster(read_state(str(path)), 16)
    save_state(cluster, str(out))
    saved = read_state(str(out))
    again = build_cluster(saved, 16)
    assert again.map == cluster.map
    assert raw_of(again) == {"2.0": (0, 1, 2), "2.1": (3, 1, 0)}
    assert saved["pg_dump"]["pg_map"]["osd_stats"] == some_state()["pg_dump"]["pg_map"]["osd_stats"]
    assert again.clock() == cluster.clock()


@pytest.mark.parametrize("text, content", [
    ("no state file", b""),
    ("no state file", b"not json"),
    ("no state file", b"\xff\xfe\x00"),
    ("no state file", b"\x1f\x8bno gzip"),
    ("no state file", b"[" * 100000),
    ("a part of one", TEXT[:500]),
    ("a part of one", lzma.compress(TEXT)[:300]),
    ("a part of one", gzip.compress(TEXT)[:300]),
    ("this has None", b"[1]"),
    ("this has 2", b'{"stateversion": 2}')])
def test_bad_files(tmp_path: Path, text: str, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(StubError) as caught:
        read_state(str(path))
    assert caught.value.code == -errno.EINVAL
    assert text in caught.value.message and "\n" not in caught.value.message


@pytest.mark.parametrize("where, value", rows("""
osd_dump
osd_dump pools
osd_dump osds
pg_dump
pg_dump pg_map
pg_dump pg_map pg_stats
pg_dump pg_map osd_stats
crush_dump
crush_dump rules
osd_dump pools 0 size
osd_dump osds 0 weight
pg_dump pg_map pg_stats 0 up
pg_dump pg_map osd_stats 0 statfs
crush_dump buckets 0 items
osd_dump pools 0 size                  "three"
osd_dump pools 0 type                  null
osd_dump osds 0 weight                 []
pg_dump pg_map pg_stats 0 pgid         "nonsense"
pg_dump pg_map pg_stats 0 pgid         "77.0"
pg_dump pg_map pg_stats 0 up           ["a"]
pg_dump pg_map pg_stats 0 stat_sum     {"num_bytes": "many"}
pg_dump pg_map osd_stats 0 statfs      {}
crush_dump buckets 0 items             [{}]
osd_dump pg_upmap_items                [{"pgid": "2.0"}]
"""))
def test_missing_and_invalid_values(where: str, value: str) -> None:
    """Without a value the key is taken away."""
    state = inner = some_state()
    *path, last = where.split()
    for word in path:
        inner = inner[int(word)] if isinstance(inner, list) else inner[word]
    if value:
        inner[last] = json.loads(value)
    else:
        del inner[last]
    with pytest.raises(StubError) as caught:
        build_cluster(state, 16)
    assert caught.value.code == -errno.EINVAL and "\n" not in caught.value.message
    assert value or last in caught.value.message


def test_minimal_state_file() -> None:
    state = some_state()
    osds = [{"osd": osd, "weight": 0.5} for osd in range(7)]
    state["osd_dump"] = {"pools": state["osd_dump"]["pools"], "osds": osds}
    del state["timestamp"]
    cluster = build_cluster(state, 18)
    assert cluster.clock() == DEFAULT_START
    assert cluster.map.epoch == 1 and cluster.map.reweight(3) == 0.5
    assert cluster.map.dump(18)["osds"][0]["state"] == ["exists", "up"]
    assert [record["osd"] for record in statistics.osd_stats(cluster)] == [0, 1, 2, 3, 4, 5]


def test_reweights_may_be_whole_numbers() -> None:
    state = some_state()
    state["osd_dump"]["osds"][1].update(weight=1, state=["exists"])
    osd = build_cluster(state, 16).map.dump(16)["osds"][1]
    assert isinstance(osd["weight"], float) and "up" in osd["state"]


@pytest.mark.parametrize("text, moment", [
    ("2026-01-01T00:00:00", 1767225600.0), ("2026-01-01T00:00:00Z", 1767225600.0),
    ("2026-01-01T01:00:00.000000+0100", 1767225600.0), ("yesterday", DEFAULT_START),
    (None, DEFAULT_START)])
def test_timestamps(text: Any, moment: float) -> None:
    assert parse_timestamp(text) == moment
    assert format_time(moment) == "2026-01-01T00:00:00.000000+0000"
