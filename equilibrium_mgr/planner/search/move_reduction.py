"""Reverts moves that turned out not to be needed."""
from __future__ import annotations

from typing import AbstractSet, Optional, Tuple

from ...runtime.time_slice import give_way
from ..state.constraints import SearchConstraints
from ..state.cost_model import CostModel
from ..state.placement_state import ShardMove
from ..state.shard_index import ShardIndex
from .joint_moves import JointMoves


def revert_unneeded_moves(costs: CostModel, shard_index: ShardIndex, joint_moves: JointMoves,
                          limits: SearchConstraints, price: float,
                          pgs: Optional[AbstractSet[int]] = None) -> None:
    """Returns displaced shards, or those of some PGs, to their initial OSDs where all limits hold
    and little is lost.

    `price` is that of a displaced byte (utilization): a byte that returns may cost as much.
    """
    placement = costs.placement
    displaced = shard_index.all_displaced(pgs)

    def pays(steps: Tuple[ShardMove, ...], size: int, group: int) -> bool:
        return (joint_moves.gain(steps, price) > 0.0
                and all(limits.fits(initial, size, group, -1) for _, _, initial in steps))
    for negative, pg, source, group in displaced:
        if not give_way():
            break
        if source not in placement.up[pg]:
            continue  # it has returned in a joint move
        for initial in placement.initial_osds(pg, source, group):
            steps = ((pg, source, initial),)
            if pays(steps, -negative, group) and placement.is_legal(pg, source, initial):
                placement.move(*steps[0])
                break
        else:
            together = joint_moves.return_moves(pg, source, placement.groups[group])
            if together and pays(together, -negative, group) and (
                    placement.is_legal_joint(together)):
                for step in together:
                    placement.move(*step)
