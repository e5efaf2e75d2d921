"""The simulator behaves as Ceph does: one stream of events on ten real OSDs and in mgr_stub.

    python -m pytest tests/ceph/conformance --ceph=16,20 --conformance-steps 60 --conformance-seed 7

A short stream by default; with --conformance-steps as long as it takes.
"""

from __future__ import annotations

import math

import pytest

from ..conftest import FIGURES
from ..release import RELEASES
from .play import LEAST_EVENTS, play

SHORT_STEPS, SHORT_SECONDS = 30, 130.0
"""Of the stream in the usual test run; what ends first ends it."""


def test_same_events_same_cluster(major: int, request: pytest.FixtureRequest) -> None:
    config = request.config
    steps, seconds = config.getoption("--conformance-steps"), math.inf
    if not steps:
        steps, seconds = SHORT_STEPS, SHORT_SECONDS
    seed = config.getoption("--conformance-seed")
    result = play(RELEASES[major], steps, seed, seconds=seconds,
                  keep=config.getoption("--ceph-keep"))
    config.stash[FIGURES].append(
        f"Ceph {RELEASES[major].version}: conformance with seed {seed}: {result}")
    assert result.events >= LEAST_EVENTS
    assert not result.unknown, "\n".join(map(str, result.unknown[:50]))
