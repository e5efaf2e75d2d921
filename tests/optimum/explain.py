"""What keeps the plan of one seed from its optima: the fewest moves that would be better."""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterator, List, Sequence, Tuple

from tests.optimum.clusters import optimum_cluster
from tests.optimum.comparison import Figures, figures_of
from tests.optimum.nearest import Nearest
from tests.optimum.optima import Optima
from tests.optimum.problem import Node, Part, parts_of, up_sets
from tests.optimum.reachable import Limits
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan

_MOST_MOVES = 7

#: Space that differs by a smaller ratio is not called more.
_WORTH_NAMING = 1e-3


def explained(seed: int, aim: str) -> List[str]:
    """Lines about each part of a seed's cluster where the plan is not at the optima."""
    kind, cluster = optimum_cluster(seed)
    snapshot = cluster.snapshot()
    ups: Dict[str, Sequence[int]] = {pgid: pg.up for pgid, pg in snapshot.pgs.items()}
    plan = make_plan(snapshot, PlanOptions(aim=aim))
    ups.update({change.pgid: change.up_after for change in plan.changes})
    allowed = {pool.id: up_sets(cluster.crush, pool) for pool in snapshot.pools.values()}
    lines = [f"seed {seed}, {kind}, aim {aim}: {len(plan.moves)} moves,"
             f" {plan.bytes / GIB:.1f} GiB"]
    for part in parts_of(snapshot, cluster.crush):
        lines += _of_part(part, ups, allowed)
    return lines


def _of_part(part: Part, ups: Dict[str, Sequence[int]],
             allowed: Dict[int, FrozenSet[FrozenSet[int]]]) -> List[str]:
    optima, planned = Optima(part), figures_of(part, ups)
    nearest = Nearest(part, ups, _MOST_MOVES)
    lines = [f"planned: {_figures(planned)}; least maximum {optima.least_max():.4f}, greatest space"
             f" {optima.most_space().total / GIB:.1f} GiB", f"  {_tree(part.root)}"]
    lines += [f"  shards {number}: pool {one.pool}, {len(one.pgs)} PGs × {one.shards},"
              f" {one.shard_bytes / GIB:.2f} GiB" for number, one in enumerate(part.classes)]
    for osd in sorted(part.size_bytes):
        used = part.base_bytes[osd] + sum(
            n * one.shard_bytes for n, one in zip(nearest.own[osd], part.classes))
        lines.append(f"  osd.{osd}: {part.size_bytes[osd] / GIB:.0f} GiB,"
                     f" {used / part.size_bytes[osd]:.4f}, shards {nearest.own[osd]}")
    return lines + [_nearest(nearest, title, limits, allowed)
                    for title, limits in _better(part, optima, planned)]


def _better(part: Part, optima: Optima, planned: Figures) -> Iterator[Tuple[str, Limits]]:
    """What would be better than the plan, as limits."""
    least = optima.least_max()
    if least < planned.max_utilization:
        below = optima.next_max_below(planned.max_utilization)
        yield "a lower maximum", Limits(below, optima.no_space)
        if optima.least_max(planned.free_bytes) <= below:
            yield "a lower maximum, no pool with less space", Limits(below, planned.free_bytes)
        yield "the least maximum", Limits(least, optima.no_space)
    here = Limits(planned.max_utilization, planned.free_bytes)
    for number, free in enumerate(planned.free_bytes):
        wanted = free * (1 + _WORTH_NAMING)
        most = optima.most_free(number, here)
        if most is not None and most > wanted:
            yield (f"more space for pool {part.pools[number]}, none worse",
                   here._replace(free_bytes=(*planned.free_bytes[:number], wanted,
                                             *planned.free_bytes[number + 1:])))
    space = optima.most_space(planned.max_utilization)
    if space.total > planned.space * (1 + _WORTH_NAMING):
        yield "the greatest space at this maximum", Limits(planned.max_utilization,
                                                           space.free_bytes)


def _nearest(nearest: Nearest, title: str, limits: Limits,
             allowed: Dict[int, FrozenSet[FrozenSet[int]]]) -> str:
    counts = nearest.counts(limits)
    if counts is None:
        return f"{title}: more than {_MOST_MOVES} moves"
    moves = nearest.moves(counts, allowed)
    if moves is None:
        return f"{title}: {nearest.move_count(counts)} moves or more, of no PGs that were found"
    ups = dict(nearest.ups)
    for move in moves:
        ups[move.pgid] = ups[move.pgid] - {move.source} | {move.target}
    result = figures_of(nearest.part, {pgid: sorted(up) for pgid, up in ups.items()})
    return (f"{title}: {len(moves)} moves to {_figures(result)}: " + ", ".join(
        f"{m.pgid} ({m.shard_bytes / GIB:.2f} GiB) {m.source}->{m.target}" for m in moves))


def _figures(figures: Figures) -> str:
    free = " + ".join(f"{free / GIB:.1f}" for free in figures.free_bytes)
    return f"maximum {figures.max_utilization:.4f}, space {free} GiB"


def _tree(node: Node) -> str:
    if not node.children:
        return f"osd.{min(node.osds)}"
    return f"{node.type_name}({', '.join(_tree(child) for child in node.children)})"
