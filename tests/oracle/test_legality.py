"""Single random moves: what the package calls legal the monitor keeps, and CRUSH could have made.

And the other way round: what is legal by the tests' own check the package does not refuse.
"""

from __future__ import annotations

import random
from typing import Counter, Dict, List, Optional, Tuple

from .maps.binary_osdmap import Items
from .maps.cluster import MappedCluster, judge_plan
from .maps.gathered_state import write_state
from .maps.random_moves import (
    Move, pairs_for, random_moves, settled, strictly_legal, wanted_up, whole)
from .planner_seam import Judgment, PackageLegality, open_session

ROUNDS = 3  # every PG of the cluster is moved once in each


def test_raw_mapping_is_recovered(cluster: MappedCluster, tally: Counter[str]) -> None:
    taken = _package(cluster).snapshot
    for pgid, pg in cluster.pgs.items():
        if whole(cluster, pgid) and taken.pgs[pgid].raw != pg.raw:
            # where CRUSH may choose an OSD twice it cannot always be told: left alone then
            assert cluster.pool_spec(pgid).irregular and taken.pgs[pgid].immovable, (
                pgid, pg, cluster.items.get(pgid), taken.pgs[pgid])
        elif pgid in cluster.items:
            tally["raw mappings recovered"] += 1


def test_legality_of_random_moves(cluster: MappedCluster, tally: Counter[str]) -> None:
    package = _package(cluster)
    rng = random.Random("moves of " + cluster.spec.name)
    for _ in range(ROUNDS):
        moves = random_moves(cluster, rng, len(cluster.pgs))
        allowed, refused = {}, []
        for move in moves:
            judged = package.judge(*move)
            if judged:
                allowed[move.pgid] = move, judged
            else:
                refused.append(move)
        _check_allowed(cluster, allowed)
        _check_refused(cluster, refused)
        tally.update({"moves judged": len(moves), "called legal": len(allowed)})


def _package(cluster: MappedCluster) -> PackageLegality:
    with open_session(write_state(cluster)) as session:
        return PackageLegality(session)


def _check_allowed(cluster: MappedCluster, allowed: Dict[str, Tuple[Move, Judgment]]) -> None:
    verdict = judge_plan(cluster, {pgid: judged.items for pgid, (_, judged) in allowed.items()})
    for pgid, (move, judged) in allowed.items():
        text = f"{move} with {cluster.pgs[pgid]} -> {judged}"
        assert pgid not in verdict.cleaned, "the monitor cancels " + text
        assert verdict.pgs[pgid].up == judged.up, "not as predicted: " + text
        assert strictly_legal(cluster, pgid, judged.up), "CRUSH never gives " + text
        gained = set(judged.up) - set(cluster.pgs[pgid].up)
        assert gained == {move.target}, "another shard moves: " + text
    for pgid in set(cluster.pgs) - set(allowed):
        assert verdict.pgs[pgid].up == cluster.pgs[pgid].up, pgid


def _check_refused(cluster: MappedCluster, refused: List[Move]) -> None:
    """None of the refused moves is one that the rule, the monitor and upmap items allow."""
    legal: Dict[str, Move] = {}
    items: Items = {}
    for move in refused:
        pairs = _legal_pairs(cluster, move)
        if pairs is not None:
            legal[move.pgid], items[move.pgid] = move, pairs
    verdict = judge_plan(cluster, items)
    for pgid, move in legal.items():
        kept = pgid not in verdict.cleaned and move.target in verdict.pgs[pgid].up
        assert not kept, f"the package refuses {move} of {cluster.pgs[pgid]}"


def _legal_pairs(cluster: MappedCluster, move: Move) -> Optional[List[Tuple[int, int]]]:
    pool, pg = cluster.pool_spec(move.pgid), cluster.pgs[move.pgid]
    if pool.irregular or not whole(cluster, move.pgid):
        return None  # left alone, and rightly
    if not strictly_legal(cluster, move.pgid, pg.up):
        return None  # present items break the rule: repairing that is another matter
    wanted = wanted_up(cluster, move)
    if not pool.k:
        wanted = settled(cluster, move.pgid, wanted)
    if not strictly_legal(cluster, move.pgid, wanted):
        return None
    return pairs_for(pg.raw, wanted)
