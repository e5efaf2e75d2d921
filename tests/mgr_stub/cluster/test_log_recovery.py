"""PGs whose log reaches back to their first object, moved by upmap, as seen on real daemons.

The acting sets, states and counts are those of 16.2.15 with ten OSDs (hosts of two).
"""

from __future__ import annotations

from typing import Any, Callable, Tuple

import pytest

from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run


@pytest.fixture
def session(make_session: Callable[..., Any]) -> Any:
    """Of one PG whose log has all its writes."""
    pg = clusters.pg("2.0", [4, 6, 2], objects=201, log_start="0'0")
    made = make_session(clusters.state([pg], osds=10))
    run(made, "sim log-recovery on")
    return made


def shown(session: Any) -> Tuple[str, int, int]:
    """The PG's state, its degraded and its misplaced objects."""
    record = session.mgr.get("pg_stats")["pg_stats"][0]
    sums = record["stat_sum"]
    return record["state"], sums["num_objects_degraded"], sums["num_objects_misplaced"]


def test_state_is_degraded_until_the_first_object(session: Any) -> None:
    """With norecover: no object is degraded, but the state is, and thus HEALTH_WARN."""
    run(session, "osd set norecover", "osd pg-upmap-items 2.0 2 8", "sim run 1m")
    assert shown(session) == ("active+recovering+undersized+degraded+remapped", 0, 201)


TOO_FULL = ("active+recovery_toofull+undersized+degraded+remapped", 201, 0)


def test_a_ratio_that_is_exceeded_stops_recovery_until_it_is_raised(session: Any) -> None:
    run(session, "sim osd full-ratios 0.001 0.001 0.001", "osd pg-upmap-items 2.0 2 8",
        "sim run 10m")
    assert shown(session) == TOO_FULL
    run(session, "sim osd full-ratios 0.85 0.9 0.95", "sim run 10m")
    assert shown(session) == ("active+clean", 0, 0)


def test_a_full_osd_stops_recovery(session: Any) -> None:
    usage = session.cluster.usage[6]
    usage.used = int(usage.total * 0.97)
    run(session, "osd pg-upmap-items 2.0 2 8", "sim run 10m")
    assert shown(session) == TOO_FULL
