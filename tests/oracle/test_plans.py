"""Plans of the package before the real osdmaptool: kept by the monitor, mapped as predicted."""

from __future__ import annotations

from typing import Counter


from .ceph_tools import ITEM_NONE
from .maps.binary_osdmap import merge_items
from .maps.cluster import MappedCluster, Verdict, judge_plan, with_items
from .maps.gathered_state import write_state
from .maps.random_moves import pairs_for, whole
from .planner_seam import Planned, open_session, plan


def test_plan_is_kept_and_maps_as_predicted(cluster: MappedCluster, tally: Counter[str]) -> None:
    planned = _plan(cluster, 0)
    _check(cluster, planned)
    _count(tally, planned)
    if cluster.spec.movable:
        assert planned.moves > 0, "nothing was moved"


def test_plan_on_top_of_a_plan(cluster: MappedCluster, tally: Counter[str]) -> None:
    """The first plan applied, then PGs of other sizes: items are shortened and taken away."""
    if cluster.spec.prior_share:
        return  # has upmap items already
    first = _plan(cluster, 0)
    applied = with_items(cluster, merge_items(cluster.items, first.items))
    assert applied.items == merge_items(cluster.items, first.items)
    second = _plan(applied, 1)
    _check(applied, second)
    _count(tally, second)


def _plan(cluster: MappedCluster, age: int) -> Planned:
    with open_session(write_state(cluster, age)) as session:
        return plan(session)


def _count(tally: Counter[str], planned: Planned) -> None:
    tally.update({"plans": 1, "moves": planned.moves, "changed PGs": len(planned.items),
                  "items taken away": list(planned.items.values()).count([])})


def _check(cluster: MappedCluster, planned: Planned) -> None:
    assert set(planned.items) == set(planned.predicted_up)
    verdict = judge_plan(cluster, planned.items)
    _check_mapping(cluster, planned, verdict)
    for pgid in planned.items:
        _check_form(cluster, planned, pgid)
        _check_rule(cluster, planned, pgid)
    _check_rejected(cluster, planned)


def _check_mapping(cluster: MappedCluster, planned: Planned, verdict: Verdict) -> None:
    """The monitor keeps every entry; each PG maps as predicted, the others as before."""
    for pgid, left in verdict.cleaned.items():
        assert pgid not in planned.items, (
            f"{pgid}: of {planned.items[pgid]} the monitor leaves {left}")
    for pgid, pg in verdict.pgs.items():
        assert pg.up == planned.predicted_up.get(pgid, cluster.pgs[pgid].up), pgid


def _check_form(cluster: MappedCluster, planned: Planned, pgid: str) -> None:
    """At most size pairs, each from in raw, no to in raw or twice, something changes."""
    pairs, raw = planned.items[pgid], cluster.pgs[pgid].raw
    up = planned.predicted_up[pgid]
    assert len(pairs) <= cluster.pool_spec(pgid).size, (pgid, pairs)
    assert set(up) != set(cluster.pgs[pgid].up), (pgid, "nothing moves")
    assert pairs == pairs_for(raw, up), (pgid, pairs, raw)   # None where a target is in raw
    assert len(dict(pairs)) == len(pairs), (pgid, pairs)


def _check_rule(cluster: MappedCluster, planned: Planned, pgid: str) -> None:
    """The new up set could have come from the rule, on OSDs fit to take a shard."""
    up = planned.predicted_up[pgid]
    assert whole(cluster, pgid) and ITEM_NONE not in up, f"{pgid}: a short PG was moved"
    fault = cluster.fault(pgid, up)
    assert fault is None, f"{pgid}: {fault}"
    for osd in set(up) - set(cluster.pgs[pgid].up):
        assert cluster.usable(osd), (pgid, osd)


def _check_rejected(cluster: MappedCluster, planned: Planned) -> None:
    """Nothing is planned where the monitor cancels everything, and the plan says why."""
    refused = [pgid for pgid in cluster.pgs if cluster.pool_spec(pgid).rejected]
    assert not set(refused) & set(planned.items)
    counted = sum(count for reason, count in planned.dump["skipped"].items()
                  if "monitor" in reason or "breaks its CRUSH rule" in reason)
    assert counted >= len([pgid for pgid in refused if whole(cluster, pgid)])
