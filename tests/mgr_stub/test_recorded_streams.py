"""Recorded streams of events on real clusters, replayed on the simulator.

New ones: `python3 -m tests.ceph.conformance.play MAJOR STEPS SEED FILE`, and of OSDs that return
`python3 -m tests.ceph.conformance.test_return MAJOR FILE`.
"""

from __future__ import annotations

from pathlib import Path
from typing import List

import pytest

from tests.ceph.conformance.recording import Recording, replay
from tests.support.few import few

FOLDER = Path(__file__).resolve().parents[1] / "ceph" / "conformance" / "recorded"


def _seed(path: Path) -> int:
    """Of the stream: both releases have low and high ones."""
    return int(path.name[:-len(".json.xz")].partition("-seed")[2])


@pytest.mark.parametrize("path", few(sorted(FOLDER.glob("*-seed*.xz"), key=_seed), 2),
                         ids=lambda path: path.name[:-len(".json.xz")])
def test_as_the_real_cluster(path: Path) -> None:
    said: List[str] = []
    result = replay(Recording.load(path), said.append)
    assert result.events >= 20 and result.values >= 15_000
    assert not result.unknown, "\n".join(said)


@pytest.mark.parametrize("major", [16, 20])
def test_osds_that_return(major: int) -> None:
    said: List[str] = []
    result = replay(Recording.load(FOLDER / f"ceph{major}-return.json.xz"), said.append)
    assert result.events >= 12 and result.values >= 6000
    assert not result.unknown, "\n".join(said)


def test_difference_is_reported() -> None:
    recording = Recording.load(FOLDER / "ceph16-seed9.json.xz")
    pg = recording.steps[0]["view"]["pgs"]["2.0"]
    pg["acting"] = list(reversed(pg["acting"]))
    del recording.steps[1:]
    said: List[str] = []
    assert [one.place for one in replay(recording, said.append).unknown] == ["pgs.2.0.acting"]
    assert "pgs.2.0.acting" in said[1] and pg["state"] in said[1]
