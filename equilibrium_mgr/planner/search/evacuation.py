"""Evacuation: shards leave the OSDs that are being drained, before anything is evened out.

1. Shards that upmap items brought to a drained OSD return to their CRUSH mapping.
2. The others leave by single moves, the largest first, at the least loss of the objective.
3. If a shard has no single move, all shards of its PG in the bucket leave together, or another
   shard makes room (an ejection chain).

Targets keep their fill limit, the share of their weights, and the limits of PGs and upmap items. No
limit of evenness or of the free space of pools holds, because an operator wants the drain.
"""
from __future__ import annotations

from collections import defaultdict
from itertools import compress, count
from math import inf
from typing import Dict, Iterable, List, Optional, Tuple

from ...plan.model import StuckShards
from ...plan.options import PlanOptions
from ...runtime.time_slice import give_way, piecewise
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import PlacementState, pg_refusal
from ..state.target_index import TargetIndex
from .joint_moves import JointMoves
from .relief import OverfullOsd, Relief

#: Legal targets examined for a shard.
_TARGETS = 6
#: Targets, and PGs, between two yields: a millisecond.
_TARGETS_A_PIECE = 100
_PGS_A_PIECE = 1000

#: Reasons why a shard cannot leave, first the reasons that an operator can remove most easily. The
#: first of them that rejects one of the targets counts. All others are "too few failure domains".
_LIFTABLE = (codes.OSD_EXCLUDED, codes.FILL_LIMIT, codes.REWEIGHT, codes.PG_COUNT,
             codes.UPMAP_ITEMS, codes.EXCHANGE)


def drained_osds(placement: PlacementState) -> List[int]:
    """Returns the indices of the OSDs that are being drained and may give shards."""
    osds = placement.snapshot.osds
    return [i for i, osd in enumerate(placement.osd_ids)
            if osds[osd].drained and placement.is_source[i]]


def _targets_of(placement: PlacementState) -> Iterable[int]:
    """Returns the OSDs that may take shards."""
    return compress(count(), placement.is_target)


def evacuate(costs: CostModel, targets: TargetIndex, joint_moves: JointMoves,
             relief: Relief, limits: SearchConstraints) -> None:
    """Moves shards off the drained OSDs as far as possible, or until `give_way` asks the work to
    end.

    `limits`: only those of the OSDs. `relief` has to have the same.
    """
    placement = costs.placement
    drained = drained_osds(placement)
    for find_target in (_return_target, _best_target):
        shards: List[Tuple[int, int, int]] = []   # (-bytes, PG, OSD)
        for osd in drained:
            shards += [(-placement.pg_bytes[pg], pg, osd) for pg in placement.shards[osd]]
        for _, pg, source in sorted(shards):
            if not give_way(placement.moves_made):
                return
            target = find_target(costs, targets, pg, source)
            if target is not None:
                placement.move(pg, source, target)
    goal = OverfullOsd(tuple(_targets_of(placement)), 0.0, 0.0)
    for source in drained:
        while placement.shards[source] and give_way(placement.moves_made):
            found = (joint_moves.best(source, 0.0, limits, -inf)
                     or relief.ejection_chain(source, goal))
            if found is None:
                break
            for move in found.steps:
                placement.move(*move)


def _return_target(costs: CostModel, _targets: TargetIndex, pg: int, source: int) -> Optional[int]:
    """Returns the OSD of the shard's CRUSH mapping.

    None if upmap items have not brought the shard, or it may not or cannot return. None also if it
    would make that OSD the fullest of all targets, and fuller than its bound.
    """
    placement = costs.placement
    size = placement.pg_bytes[pg]
    for number, target in placement.pinned.get(source, ()):
        if number != pg or target < 0 or not placement.has_room(target, size):
            continue
        if not placement.is_legal(pg, source, target):
            continue
        highest = max(map(placement.utilization, _targets_of(placement)))
        reached = (placement.used_bytes[target] + size) / placement.size_bytes[target]
        if reached <= max(costs.bound_utilization[target], highest):
            return target
    return None


def _best_target(costs: CostModel, targets: TargetIndex, pg: int, source: int) -> Optional[int]:
    """Returns the best target of a shard by the objective, without the cost of moves; None if no
    OSD may take it."""
    placement = costs.placement
    size = placement.pg_bytes[pg]
    group = placement.group_of(pg, source)
    best: Optional[int] = None
    best_gain = -inf
    seen = 0
    for _, target in piecewise(targets.candidates(group, source), _TARGETS_A_PIECE):
        if not placement.has_room(target, size) or not placement.is_legal(pg, source, target):
            continue
        gain = (costs.utilization_gain(source, target, size)
                - costs.count_loss_on_enter(group, target))
        if gain > best_gain:
            best = target
            best_gain = gain
        seen += 1
        if seen >= _TARGETS:
            break
    return best


#: (OSD id, code) → (pgid, bytes) of shards
_Stuck = Dict[Tuple[int, str], List[Tuple[str, int]]]


def stuck_shards(placement: PlacementState, options: PlanOptions) -> Tuple[StuckShards, ...]:
    """Returns the shards that the plan leaves on drained OSDs because no other OSD takes them, by
    OSD and reason."""
    found: _Stuck = defaultdict(list)
    for i in drained_osds(placement):
        for number in placement.shards[i]:
            code = _refusal_of_all(placement, number, i)
            if code is not None:
                found[placement.osd_ids[i], code].append(
                    (placement.pgs[number].pgid, placement.pg_bytes[number]))
    if placement.snapshot.drained_osds:
        _add_immovable(found, placement.snapshot, options)
    stuck: List[StuckShards] = []
    for (osd, code), shards in sorted(found.items()):
        total = sum([size for _, size in shards])
        example = min([pgid for pgid, _ in shards])
        stuck.append(StuckShards(osd, code, len(shards), total, example))
    return tuple(stuck)


def _add_immovable(found: _Stuck, snapshot: Snapshot, options: PlanOptions) -> None:
    """Adds the shards on drained OSDs whose PGs may not move at all."""
    drained = snapshot.drained_osds
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        if drained.isdisjoint(pg.up):
            continue
        why = pg_refusal(pg, options)
        if snapshot.pools[pg.pool].rule is None:
            why = codes.RULE_UNKNOWN
        if why is not None:
            for osd in drained.intersection(pg.up):
                found[osd, why].append((pg.pgid, pg.shard_bytes))


def _refusal_of_all(placement: PlacementState, pg: int, source: int) -> Optional[str]:
    """Returns the reason why no OSD takes a shard, or None if an OSD would: the search had no
    time."""
    group = placement.groups[placement.group_of(pg, source)]
    seen = set()
    for target in piecewise(group.osds, _TARGETS_A_PIECE):
        if target != source:
            code = (placement.refusal(pg, source, target)
                    or placement.room_refusal(target, placement.pg_bytes[pg]))
            if code is None:
                return None
            seen.add(code)
    for code in _LIFTABLE:
        if code in seen:
            return code
    return codes.FAILURE_DOMAIN
