"""Evacuation: shards leave the OSDs that are being drained, before anything is evened out.

1. Shards that upmap items brought there return to where CRUSH has them.
2. The others leave by single moves, the largest first, to where the objective loses least.
3. Where no single move exists, all shards that a PG has in a bucket leave together, or another
   shard makes room (an ejection chain).

Targets keep their fill limit and their share of weights; nothing else is asked of them, since an
operator wants it.
"""
from __future__ import annotations

from math import inf
from typing import Dict, List, Optional, Tuple

from ...plan.model import StuckShards
from ...plan.options import PlanOptions
from ...runtime.time_slice import give_way, piecewise
from ...snapshot import reason_codes as codes
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import PlacementState, pg_refusal
from ..state.target_index import TargetIndex
from .joint_moves import JointMoves
from .relief import OverfullOsd, Relief

#: Legal targets examined for a shard before the best of them is taken.
_TARGETS = 6
#: Targets asked before it gives way again: a millisecond.
_TARGETS_A_PIECE = 100
#: PGs looked at before it gives way again: a millisecond.
_PGS_A_PIECE = 1000


#: Why a shard cannot leave, what an operator can change first: the first code that refuses one of
#: its targets counts. What is not named here is too few failure domains.
_LIFTABLE = (codes.OSD_EXCLUDED, codes.FILL_LIMIT, codes.REWEIGHT, codes.PG_COUNT,
             codes.UPMAP_ITEMS, codes.EXCHANGE)


def drained_osds(placement: PlacementState) -> List[int]:
    """Indices of the OSDs that are being drained and may give shards."""
    osds = placement.snapshot.osds
    return [i for i, osd in enumerate(placement.osd_ids)
            if osds[osd].drained and placement.is_source[i]]


def evacuate(costs: CostModel, targets: TargetIndex, joint_moves: JointMoves,
             relief: Relief, limits: SearchConstraints) -> None:
    """Moves shards off the drained OSDs as far as it can, or until it is told to end. `limits`,
    which `relief` has as well, are no others than those of the OSDs."""
    placement = costs.placement
    drained = drained_osds(placement)
    for is_return in (True, False):
        for _, pg, source in sorted((-placement.pg_bytes[pg], pg, osd)
                                    for osd in drained for pg in placement.shards[osd]):
            if not give_way(placement.moves_made):
                return
            target = (_return_target if is_return else _best_target)(costs, targets, pg, source)
            if target is not None:
                placement.move(pg, source, target)
    goal = OverfullOsd(tuple(i for i, takes in enumerate(placement.is_target) if takes), 0.0, 0.0)
    for source in drained:
        while placement.shards[source] and give_way(placement.moves_made):
            found = (joint_moves.best(source, 0.0, limits, -inf)
                     or relief.ejection_chain(source, goal))
            if found is None:
                break
            for move in found.steps:
                placement.move(*move)


def _return_target(costs: CostModel, _targets: TargetIndex, pg: int, source: int) -> Optional[int]:
    """Where CRUSH has a shard, unless that would make it the fullest OSD of all, and fuller than
    its own goal."""
    placement = costs.placement
    size = placement.pg_bytes[pg]
    for number, target in placement.pinned.get(source, ()):
        if number != pg or target < 0 or not placement.has_room(target, size) or (
                not placement.is_legal(pg, source, target)):
            continue
        if (placement.used_bytes[target] + size) / placement.size_bytes[target] <= max(
                costs.bound_utilization[target],
                max(placement.utilization(i)
                    for i, takes in enumerate(placement.is_target) if takes)):
            return target
    return None


def _best_target(costs: CostModel, targets: TargetIndex, pg: int, source: int) -> Optional[int]:
    """The target of a shard where the objective loses least."""
    placement = costs.placement
    size, group = placement.pg_bytes[pg], placement.group_of(pg, source)
    best: Optional[Tuple[float, int]] = None
    seen = 0
    for _, target in piecewise(targets.candidates(group, source), _TARGETS_A_PIECE):
        if not placement.has_room(target, size) or not placement.is_legal(pg, source, target):
            continue
        gain = (costs.utilization_gain(source, target, size)
                - costs.count_loss_on_enter(group, target))
        if best is None or gain > best[0]:
            best = gain, target
        seen += 1
        if seen >= _TARGETS:
            break
    return None if best is None else best[1]


def stuck_shards(placement: PlacementState, options: PlanOptions) -> Tuple[StuckShards, ...]:
    """The shards on drained OSDs that the plan has no other place for, by OSD and reason."""
    snapshot = placement.snapshot
    drained = snapshot.drained_osds
    found: Dict[Tuple[int, str], List[Tuple[str, int]]] = {}   # (OSD id, code) → (pgid, bytes)
    for i in drained_osds(placement):
        for number in placement.shards[i]:
            code = _refusal_of_all(placement, number, i)
            if code is not None:
                found.setdefault((placement.osd_ids[i], code), []).append(
                    (placement.pgs[number].pgid, placement.pg_bytes[number]))
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE) if drained else ():
        if not drained.isdisjoint(pg.up):
            why = (codes.RULE_UNKNOWN if snapshot.pools[pg.pool].rule is None
                   else pg_refusal(pg, options))
            for osd in drained.intersection(pg.up):
                if why is not None:
                    found.setdefault((osd, why), []).append((pg.pgid, pg.shard_bytes))
    return tuple(StuckShards(osd, code, len(shards), sum(size for _, size in shards),
                             min(pgid for pgid, _ in shards))
                 for (osd, code), shards in sorted(found.items()))


def _refusal_of_all(placement: PlacementState, pg: int, source: int) -> Optional[str]:
    """The reason for which no OSD takes a shard; None where one would: the search had no time."""
    group = placement.groups[placement.group_of(pg, source)]
    seen = set()
    for target in piecewise(group.osds, _TARGETS_A_PIECE):
        if target != source:
            code = (placement.refusal(pg, source, target)
                    or placement.room_refusal(target, placement.pg_bytes[pg]))
            if code is None:
                return None
            seen.add(code)
    return next((code for code in _LIFTABLE if code in seen), codes.FAILURE_DOMAIN)
