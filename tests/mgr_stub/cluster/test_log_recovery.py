"""PGs whose log reaches back to their first object, moved by upmap, as seen on real daemons.

The acting sets, states and counts are those of 16.2.15 with ten OSDs (hosts of two).
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from tests.support.clusters import stub_states as clusters

REP = (2, "rep", 1, 3, 0, "")
def one_with_whole_log(up: List[int], objects: int) -> Dict[str, Any]:
    """A state with one PG whose log has all its writes."""
    return clusters.state([clusters.pg("2.0", up, objects=objects, log_start="0'0")], osds=10,
                          pools=[REP])


def shown(session: Any) -> Dict[str, Any]:
    return dict(session.mgr.get("pg_stats")["pg_stats"][0])


def test_state_is_degraded_until_the_first_object(make_session: Callable[..., Any]) -> None:
    """With norecover: no object is degraded, but the state is, and thus HEALTH_WARN."""
    state = one_with_whole_log([4, 6, 2], objects=201)
    session = make_session(state)
    session.command("sim log-recovery on")
    session.command("osd set norecover")
    session.command("osd pg-upmap-items 2.0 2 8")
    session.command("sim run 1m")
    record = shown(session)
    assert record["state"] == "active+recovering+undersized+degraded+remapped"
    assert record["stat_sum"]["num_objects_degraded"] == 0
    assert record["stat_sum"]["num_objects_misplaced"] == 201


@pytest.mark.parametrize("is_raised", [True, False])
def test_a_full_osd_stops_recovery(make_session: Callable[..., Any], is_raised: bool) -> None:
    """An acting or recovering OSD: `recovery_toofull` until the ratio is raised."""
    session = make_session(one_with_whole_log([4, 6, 2], objects=201))
    session.command("sim log-recovery on")
    if is_raised:
        session.command("sim osd full-ratios 0.001 0.001 0.001")
    else:
        usage = session.cluster.usage[6]
        usage.used = int(usage.total * 0.97)
    session.command("osd pg-upmap-items 2.0 2 8")
    session.command("sim run 10m")
    assert shown(session)["state"] == (
        "active+recovery_toofull+undersized+degraded+remapped")
    counts = shown(session)["stat_sum"]
    assert (counts["num_objects_degraded"], counts["num_objects_misplaced"]) == (201, 0)
    if is_raised:
        session.command("sim osd full-ratios 0.85 0.9 0.95")
        session.command("sim run 10m")
        assert shown(session)["state"] == "active+clean"
