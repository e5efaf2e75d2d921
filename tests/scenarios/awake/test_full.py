"""A full OSD does not wait for an operator's series of changes: an upmap is sent within 90 s.

As the test of the same subject on real daemons, which take too long for many lengths of a series.
"""
from __future__ import annotations

from pathlib import Path
from typing import Iterator, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

from .. import clusters
from ..drive import command, watched
from ..rules.awake_rule import NothingSleeps

RELIEF_SECONDS = 90.0
WATCHED_SECONDS = 600.0
PAUSE_SECONDS = 20.0
"""Between two changes: another comes before the last would count as settled."""
SLEEP_SECONDS = 2
"""Between two rounds, as on the real daemons: this is about what is waited for beside rounds."""
BELOW_FULLEST = 0.04
"""Full becomes the OSD's utilization less this ratio."""
SWELLING = 1.2
"""By so much the OSD is to hold more than the others, which have room."""
_CLUSTERS = (("random", 4), ("demo", 0), ("random", 7), ("random", 9))
_MINUTES = (0.0, 0.6, 1.4, 3.0, 6.0, 11.0)
_CASES = [(*cluster, minutes) for minutes in _MINUTES for cluster in _CLUSTERS]


def changes_of(session: Session) -> Iterator[str]:
    """Yields an operator's changes of two OSDs, one at a time, without an end."""
    usage = session.cluster.usage
    first, second = sorted(usage, key=lambda osd: usage[osd].utilization)[:2]
    weight = session.cluster.crush.osd_weight(second)
    while True:
        yield f"sim osd out {first}"
        yield f"sim osd crush-reweight {second} {0.9 * weight:.3f}"
        yield f"sim osd in {first}"
        yield f"sim osd crush-reweight {second} {weight:.3f}"


@pytest.mark.parametrize("case", few(_CASES, 0))
def test_a_full_osd_does_not_wait_for_a_series_of_changes(
        case: Tuple[str, int, float], tmp_path: Path) -> None:
    name, seed, minutes = case
    session = clusters.session_of(name, seed, tmp_path)
    watch = watched(session)
    for line in ("sim backfill rate 1G", "equilibrium on"):
        command(session, line)
    session.host.run_for(4 * 3600.0)   # balanced
    command(session, f"config set mgr mgr/equilibrium/sleep_interval {SLEEP_SECONDS}")
    changes = changes_of(session)
    _change_for(session, 60.0 * minutes, changes)
    usage = session.cluster.usage
    fullest = max(usage, key=lambda osd: usage[osd].utilization)
    command(session, f"sim osd allocation {SWELLING} {fullest}")
    full = usage[fullest].utilization - BELOW_FULLEST
    command(session, f"sim osd full-ratios {full - 0.02:.4f} {full - 0.01:.4f} {full:.4f}")
    watch.sleep = NothingSleeps(session, RELIEF_SECONDS, pace_seconds=5.0)
    _change_for(session, WATCHED_SECONDS, changes)
    session.close()
    assert not watch.broken


def _change_for(session: Session, seconds: float, changes: Iterator[str]) -> None:
    end = session.clock.now + seconds
    while session.clock.now < end:
        command(session, next(changes))
        session.host.run_for(PAUSE_SECONDS)
