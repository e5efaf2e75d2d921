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
from ..state.target_index import ShardIndex, TargetIndex
from .joint_moves import JointMoves
from .repair import OverfullOsd, Repair

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


class Evacuation:
    """Moves shards off the drained OSDs as far as it can. Used once."""

    def __init__(self, costs: CostModel, targets: TargetIndex, shard_index: ShardIndex,
                 joint_moves: JointMoves) -> None:
        self._costs = costs
        self._placement = costs.placement
        self._targets = targets
        self._joint_moves = joint_moves
        self._repair = Repair(
            costs, targets, shard_index, joint_moves,
            SearchConstraints(costs.placement, ()), costs.weights.tightening_price)

    def run(self) -> None:
        """Makes the moves, or as many as it can until it is told to end."""
        placement = self._placement
        drained = drained_osds(placement)
        for step in (self._return, self._move_away):
            for _, pg, source in sorted((-placement.pg_bytes[pg], pg, osd)
                                        for osd in drained for pg in placement.shards[osd]):
                if not give_way(placement.moves_made):
                    return
                step(pg, source)
        goal = OverfullOsd(tuple(i for i, takes in enumerate(placement.is_target) if takes),
                           0.0, 0.0)
        for source in drained:
            while placement.shards[source] and give_way(placement.moves_made):
                found = (self._joint_moves.best(source, 0.0, -inf)
                         or self._repair.ejection_chain(source, goal))
                if found is None:
                    break
                for move in found.steps:
                    placement.move(*move)

    def _return(self, pg: int, source: int) -> None:
        """Returns a shard to where CRUSH has it, unless that would make it the fullest OSD of all,
        and fuller than its own goal."""
        placement, size = self._placement, self._placement.pg_bytes[pg]
        for number, target in placement.pinned.get(source, ()):
            if number != pg or target < 0 or not placement.has_room(target, size) or (
                    not placement.is_legal(pg, source, target)):
                continue
            if (placement.used_bytes[target] + size) / placement.size_bytes[target] <= max(
                    self._costs.bound_utilization[target],
                    max(placement.utilization(i)
                        for i, takes in enumerate(placement.is_target) if takes)):
                placement.move(pg, source, target)
                return

    def _move_away(self, pg: int, source: int) -> None:
        """Moves a shard to the target where the objective loses least."""
        placement, costs = self._placement, self._costs
        size, group = placement.pg_bytes[pg], placement.group_of(pg, source)
        best: Optional[Tuple[float, int]] = None
        seen = 0
        for _, target in piecewise(self._targets.candidates(group, source), _TARGETS_A_PIECE):
            if not placement.has_room(target, size) or not placement.is_legal(pg, source, target):
                continue
            gain = (costs.utilization_gain(source, target, size)
                    - costs.count_loss_on_enter(group, target))
            if best is None or gain > best[0]:
                best = gain, target
            seen += 1
            if seen >= _TARGETS:
                break
        if best is not None:
            placement.move(pg, source, best[1])


def stuck_shards(placement: PlacementState, options: PlanOptions) -> Tuple[StuckShards, ...]:
    """The shards on drained OSDs that the plan has no other place for, by OSD and reason; of a PG
    that must not be moved for now the reason is that."""
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
            if why == codes.REJECTED and pg.pgid in options.cooling_pgs:
                why = codes.COOLDOWN
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
