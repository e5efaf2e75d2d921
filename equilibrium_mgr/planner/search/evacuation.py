"""Evacuation: shards leave the OSDs that are being drained, before anything is evened out.

1. Shards that upmap items brought there return to where CRUSH has them.
2. The others leave by single moves, the largest first, to where the objective loses least.
3. Where no single move exists, all shards that a PG has in a bucket leave together, or another
   shard makes room (an ejection chain).

Targets keep their fill limit and their share of weights; nothing else is asked of them, since an
operator wants it.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, List, Optional, Tuple

from ...plan.model import StuckShards
from ...plan.options import PlanOptions
from ...runtime.time_slice import give_way, piecewise
from ...snapshot import reason_codes as codes
from ...snapshot.model import Pg, Snapshot
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import PlacementState, ShardMove, pg_refusal
from ..state.shard_index import ShardIndex
from ..state.target_index import TargetIndex
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
        drained = drained_osds(self._placement)
        for step in (self._return, self._move_away, self._move_together):
            for pg, source in self._shards(drained):
                if not give_way(self._placement.moves_made):
                    return
                step(pg, source)
        for source in drained:
            self._make_room(source)

    def _shards(self, drained: List[int]) -> List[Tuple[int, int]]:
        """(PG, OSD) of the shards that are to leave, the largest first."""
        placement = self._placement
        found = [(-placement.pg_bytes[pg], pg, osd)
                 for osd in drained for pg in placement.shards[osd]]
        return [(pg, osd) for _, pg, osd in sorted(found)]

    # -- upmap items -----------------------------------------------------------------------------

    def _return(self, pg: int, source: int) -> None:
        """Returns a shard to its raw OSD, unless that would make it the fullest of all."""
        placement = self._placement
        size = placement.pg_bytes[pg]
        for target in self._raw_osds(pg, source):
            if placement.has_room(target, size) and placement.is_legal(pg, source, target) and (
                    self._stays_below_fullest(target, size)):
                placement.move(pg, source, target)
                return

    def _raw_osds(self, pg: int, source: int) -> Iterator[int]:
        """Yields the OSDs that CRUSH gives the PG and that upmap items took from it."""
        placement = self._placement
        up, raw = placement.up[pg], placement.raw_up[pg]
        if source in raw:
            return
        position = up.index(source)
        group = placement.groups[placement.group_of(pg, source)]
        if group.pool.erasure:
            span = slice(position, position + 1)
        else:
            span = slice(group.block.start, group.block.start + group.block.positions)
        for osd in raw[span]:
            if osd >= 0 and osd not in up:
                yield osd

    def _stays_below_fullest(self, target: int, size: int) -> bool:
        """True where the target ends no fuller than the fullest OSD, or than its own goal."""
        placement = self._placement
        after = (placement.used_bytes[target] + size) / placement.size_bytes[target]
        return after <= max(self._costs.bound_utilization[target], max(
            placement.utilization(i) for i, takes in enumerate(placement.is_target) if takes))

    # -- moves -----------------------------------------------------------------------------------

    def _move_away(self, pg: int, source: int) -> None:
        """Moves a shard to the target where the objective loses least."""
        placement, costs = self._placement, self._costs
        size, group = placement.pg_bytes[pg], placement.group_of(pg, source)
        best: Optional[Tuple[float, int]] = None
        seen = 0
        for number, (_, target) in enumerate(self._targets.candidates(group, source)):
            if number % _TARGETS_A_PIECE == 0:
                give_way()
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

    def _move_together(self, pg: int, source: int) -> None:
        """Moves all shards that a PG has in the OSD's bucket to another bucket."""
        placement = self._placement
        if source not in placement.up[pg]:
            return   # a joint move of another shard has taken it along
        group = placement.groups[placement.group_of(pg, source)]
        if group.joint is None:
            return
        best: Optional[Tuple[float, Tuple[ShardMove, ...]]] = None
        for steps in self._joint_moves.of_shard(pg, source, group):
            if all(placement.has_room(target, placement.pg_bytes[pg])
                   for _, _, target in steps) and placement.is_legal_joint(steps):
                gain = self._joint_moves.gain(steps, 0.0)
                if best is None or gain > best[0]:
                    best = gain, steps
        for move in best[1] if best is not None else ():
            placement.move(*move)

    def _make_room(self, source: int) -> None:
        """Moves shards to OSDs that pass on others for them."""
        placement = self._placement
        goal = OverfullOsd(tuple(i for i, takes in enumerate(placement.is_target) if takes),
                           0.0, 0.0)
        while placement.shards[source] and give_way(placement.moves_made):
            chain = self._repair.ejection_chain(source, goal)
            if chain is None:
                return
            for step in chain.steps:
                placement.move(*step)


def stuck_shards(placement: PlacementState, options: PlanOptions) -> Tuple[StuckShards, ...]:
    """The shards on drained OSDs that the plan has no other place for, by OSD and reason; of a PG
    that must not be moved for now the reason is that."""
    found: Dict[Tuple[int, str], List[str]] = {}
    sizes: Counter[Tuple[int, str]] = Counter()
    for osd, code, pgid, size in _stuck(placement, options):
        found.setdefault((osd, code), []).append(pgid)
        sizes[osd, code] += size
    return tuple(StuckShards(osd, code, len(pgids), sizes[osd, code], min(pgids))
                 for (osd, code), pgids in sorted(found.items()))


def _stuck(placement: PlacementState, options: PlanOptions) -> Iterator[Tuple[int, str, str, int]]:
    """Yields (OSD id, reason code, pgid, bytes) of each."""
    snapshot = placement.snapshot
    drained = snapshot.drained_osds
    if not drained:
        return
    for i in drained_osds(placement):
        for pg in placement.shards[i]:
            refusal = _refusal_of_all(placement, pg, i)
            if refusal is not None:
                yield (placement.osd_ids[i], refusal, placement.pgs[pg].pgid,
                       placement.pg_bytes[pg])
    for pg_now in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        for osd in () if drained.isdisjoint(pg_now.up) else drained.intersection(pg_now.up):
            code = _kept_where_it_is(snapshot, pg_now, options)
            if code is not None:
                yield osd, code, pg_now.pgid, pg_now.shard_bytes


def _kept_where_it_is(snapshot: Snapshot, pg: Pg, options: PlanOptions) -> Optional[str]:
    """Code of the reason for which a PG cannot be moved at all, or None."""
    if snapshot.pools[pg.pool].rule is None:
        return codes.RULE_UNKNOWN
    code = pg_refusal(pg, options)
    return codes.COOLDOWN if code == codes.REJECTED and pg.pgid in options.cooling_pgs else code


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
            # the option is the reason where the rule would have it
            if code != codes.OSD_EXCLUDED or _rule_allows(placement, pg, source, target):
                seen.add(code)
    return next((code for code in _LIFTABLE if code in seen), codes.FAILURE_DOMAIN)


def _rule_allows(placement: PlacementState, pg: int, source: int, target: int) -> bool:
    """True where the CRUSH rule would let a shard be on a target."""
    up, group = placement.up[pg], placement.groups[placement.group_of(pg, source)]
    if group.domain_of is not None:
        wanted = group.domain_of[target]
        return all(group.domain_of[osd] != wanted for osd in up if osd != source)
    ids, rule = placement.osd_ids, group.pool.rule
    return rule is not None and rule.allows([ids[osd] for osd in up], up.index(source), ids[target])
