"""Single random moves: what the package calls legal the monitor keeps, and CRUSH could have made.

And the other way round: what is legal by the tests' own check the package does not refuse.
"""

from __future__ import annotations

import random
from typing import Counter, Dict, List, Optional, Tuple

from .maps.binary_osdmap import Items, merge_items
from .maps.cluster import MappedCluster, judge
from .maps.gathered_state import write_state
from .maps.random_moves import (
    Move, pairs_for, random_moves, settled, strictly_legal, wanted_up, whole)
from .planner_seam import Judgment, PackageLegality, open_session
from .strict_rule import StrictRules

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
        said = {move.pgid: package.judge(move.pgid, move.position, move.target)
                for move in moves}
        _check_allowed(cluster, {move.pgid: (move, judged) for move in moves
                                 for judged in [said[move.pgid]] if judged})
        _check_refused(cluster, [move for move in moves if not said[move.pgid]])
        tally.update({"moves judged": len(moves),
                      "called legal": sum(1 for judged in said.values() if judged)})


def _package(cluster: MappedCluster) -> PackageLegality:
    session = open_session(write_state(cluster))
    try:
        return PackageLegality(session)
    finally:
        session.close()


def _check_allowed(cluster: MappedCluster, allowed: Dict[str, Tuple[Move, Judgment]]) -> None:
    rules = StrictRules(cluster.crush_dump)
    items = merge_items(cluster.items, {pgid: judged.items
                                        for pgid, (_, judged) in allowed.items()})
    verdict = judge(cluster, items)
    for pgid, (move, judged) in allowed.items():
        text = f"{move} with {cluster.pgs[pgid]} -> {judged}"
        assert pgid not in verdict.cleaned, "the monitor cancels " + text
        assert verdict.pgs[pgid].up == judged.up, "not as predicted: " + text
        assert strictly_legal(cluster, rules, pgid, judged.up), "CRUSH never gives " + text
        gained = set(judged.up) - set(cluster.pgs[pgid].up)
        assert gained == {move.target}, "another shard moves: " + text
    for pgid in set(cluster.pgs) - set(allowed):
        assert verdict.pgs[pgid].up == cluster.pgs[pgid].up, pgid


def _check_refused(cluster: MappedCluster, refused: List[Move]) -> None:
    """None of the refused moves is one that the rule, the monitor and upmap items allow."""
    rules = StrictRules(cluster.crush_dump)
    legal: Dict[str, Move] = {}
    items: Items = {}
    for move in refused:
        pairs = _legal_pairs(cluster, rules, move)
        if pairs is not None:
            legal[move.pgid], items[move.pgid] = move, pairs
    verdict = judge(cluster, merge_items(cluster.items, items))
    for pgid, move in legal.items():
        kept = pgid not in verdict.cleaned and move.target in verdict.pgs[pgid].up
        assert not kept, f"the package refuses {move} of {cluster.pgs[pgid]}"


def _legal_pairs(cluster: MappedCluster, rules: StrictRules,
                 move: Move) -> Optional[List[Tuple[int, int]]]:
    pool, pg = cluster.pool_spec(move.pgid), cluster.pgs[move.pgid]
    if pool.irregular or not whole(cluster, move.pgid):
        return None  # left alone, and rightly
    if not strictly_legal(cluster, rules, move.pgid, pg.up):
        return None  # present items break the rule: repairing that is another matter
    wanted = wanted_up(cluster, move)
    if not pool.k:
        wanted = settled(cluster, rules, move.pgid, wanted)
    if not strictly_legal(cluster, rules, move.pgid, wanted):
        return None
    return pairs_for(pg.raw, wanted)
