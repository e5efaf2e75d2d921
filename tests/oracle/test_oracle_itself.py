"""The oracle against itself: CRUSH, the monitor's cleaning and the strict check must agree."""

from __future__ import annotations

import random
from typing import Counter, Dict, List, Tuple

from .maps.cluster import MappedCluster
from .maps.gathered_state import gathered_state
from .maps.random_moves import (
    Move, pairs_for, random_moves, strictly_legal, survivors, wanted_up, whole)
from .strict_rule import StrictRules


def test_what_crush_gives_passes_the_strict_check(cluster: MappedCluster) -> None:
    rules = StrictRules(cluster.crush_dump)
    for pgid, pg in cluster.pgs.items():
        pool = cluster.pool_spec(pgid)
        if whole(cluster, pgid) and not pool.irregular:
            rule_id = cluster.spec.topology.rule_id(pool.rule)
            assert rules.fault(rule_id, pool.size, (), pg.raw, pool.k > 0) is None, pgid


def test_strictly_legal_moves_survive_unless_the_rule_is_rejected(
        cluster: MappedCluster, tally: Counter[str]) -> None:
    rules = StrictRules(cluster.crush_dump)
    rng = random.Random(cluster.spec.name)
    legal: Dict[str, Tuple[int, ...]] = {}
    for move in _moves(cluster, rng, 1000):
        up = wanted_up(cluster, move)
        if cluster.pool_spec(move.pgid).irregular:
            continue
        if (strictly_legal(cluster, rules, move.pgid, up)
                and pairs_for(cluster.pgs[move.pgid].raw, up) is not None):
            legal[move.pgid] = up
    for pgid, survived in survivors(cluster, legal).items():
        assert survived != cluster.pool_spec(pgid).rejected, (pgid, legal[pgid])
    tally["strictly legal moves"] += len(legal)


def test_state_holds_what_the_tools_say(cluster: MappedCluster) -> None:
    state = gathered_state(cluster)
    for record in state["pg_dump"]["pg_map"]["pg_stats"]:
        assert tuple(record["up"]) == cluster.pgs[record["pgid"]].up
    used = [stats["kb_used"] / stats["kb"] for stats in state["pg_dump"]["pg_map"]["osd_stats"]]
    assert 0.5 < max(used) < 0.9


def _moves(cluster: MappedCluster, rng: random.Random, count: int) -> List[Move]:
    return [move for move in random_moves(cluster, rng, count) if whole(cluster, move.pgid)]
