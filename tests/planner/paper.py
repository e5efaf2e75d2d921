"""The paper's algorithm word by word, without any shortcut: slow, and what the planner must equal.

After every move everything is computed again from the snapshot and the moves so far.
"""
from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from equilibrium_mgr.planner.plan import Move
from equilibrium_mgr.snapshot.model import Pg, Snapshot
from equilibrium_mgr.snapshot.upmap import items_for, settle_replicated

Step = Tuple[str, int, int]   # (pgid, source, target)
_EPSILON = 1e-9


class Placement:
    """The snapshot after some moves."""

    def __init__(self, snapshot: Snapshot, moves: Sequence[Step]) -> None:
        self.snapshot = snapshot
        self.used = {o.id: float(o.target_bytes) for o in snapshot.osds.values()}
        self.up = {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()}
        self.moved = set()
        for pgid, source, target in moves:
            shard = snapshot.pgs[pgid].shard_bytes
            self.used[source] -= shard
            self.used[target] += shard
            position = self.up[pgid].index(source)
            self.up[pgid][position] = target
            self.moved.add((pgid, position))

    def utilization(self, osd: int) -> float:
        return self.used[osd] / self.snapshot.osds[osd].size_bytes

    def variance(self, device_class: str) -> float:
        ratios = [self.utilization(o.id) for o in self.snapshot.osds.values()
                  if o.device_class == device_class and o.has_statistics]
        mean = sum(ratios) / len(ratios)
        return sum((ratio - mean) ** 2 for ratio in ratios) / len(ratios)

    def count(self, pool: int, block: int, osd: int) -> int:
        rule = self.snapshot.pools[pool].rule
        assert rule is not None
        return sum(1 for pgid, up in self.up.items() if self.snapshot.pgs[pgid].pool == pool
                   for i, o in enumerate(up) if o == osd and rule.block_index(i) == block)

    def ideal(self, pool: int, block: int, osd: int) -> float:
        """Shards under the take x weight of the OSD / weights of all OSDs under the take."""
        rule = self.snapshot.pools[pool].rule
        assert rule is not None
        weights = {o: w * self.snapshot.osds[o].reweight
                   for o, w in rule.blocks[block].weights.items()}
        pgs = sum(1 for pg in self.snapshot.pgs.values() if pg.pool == pool)
        return pgs * rule.blocks[block].positions * weights[osd] / sum(weights.values())


def paper_moves(snapshot: Snapshot, device_class: str, sources: int = 25,
                rejected: Sequence[str] = ()) -> List[Step]:
    """All moves for one class, in order."""
    moves: List[Step] = []
    while True:
        step = next_step(snapshot, device_class, moves, sources, rejected)
        if step is None:
            return moves
        moves.append(step)


def next_step(snapshot: Snapshot, device_class: str, moves: Sequence[Step], sources: int,
              rejected: Sequence[str]) -> Optional[Step]:
    now = Placement(snapshot, moves)
    osds = [o.id for o in snapshot.osds.values()
            if o.device_class == device_class and o.has_statistics]
    fullest = sorted(osds, key=lambda o: (-now.utilization(o), o))[:sources]
    for source in fullest:
        for pg, position in shards_on(now, source, rejected):
            for target in sorted(osds, key=lambda o: (now.utilization(o), o)):
                if acceptable(now, pg, position, source, target, device_class, moves):
                    return pg.pgid, source, target
    return None


def shards_on(now: Placement, source: int,
              rejected: Sequence[str]) -> Iterator[Tuple[Pg, int]]:
    """Largest first; a shard that has moved once stays."""
    found = []
    for pg in now.snapshot.pgs.values():
        if pg.immovable is None and pg.pgid not in rejected:
            for position, osd in enumerate(now.up[pg.pgid]):
                if osd == source and (pg.pgid, position) not in now.moved:
                    ps = int(pg.pgid.split(".")[1], 16)
                    found.append((-pg.shard_bytes, pg.pool, ps, position, pg))
    for _, _, _, position, pg in sorted(found, key=lambda f: f[:4]):
        yield pg, position


def acceptable(now: Placement, pg: Pg, position: int, source: int, target: int,
               device_class: str, moves: Sequence[Step]) -> bool:
    snapshot = now.snapshot
    osd = snapshot.osds[target]
    if osd.cannot_take() or now.utilization(target) >= now.utilization(source):
        return False
    limit = (snapshot.backfillfull_ratio - 0.02) * osd.size_bytes
    if now.used[target] + pg.shard_bytes > limit or not expressible(now, pg, position, target):
        return False
    rule = snapshot.pools[pg.pool].rule
    assert rule is not None
    if not rule.allows(now.up[pg.pgid], position, target):
        return False
    block = rule.block_index(position)
    for holder, change in ((source, -1), (target, 1)):
        off = now.count(pg.pool, block, holder) - now.ideal(pg.pool, block, holder)
        if abs(off + change) > abs(off) + _EPSILON:
            return False
    after = Placement(snapshot, list(moves) + [(pg.pgid, source, target)])
    return after.variance(device_class) < now.variance(device_class)


def expressible(now: Placement, pg: Pg, position: int, target: int) -> bool:
    """Can upmap items say it? And no shard follows another of its PG."""
    if target in pg.up or target in now.up[pg.pgid]:
        return False
    pool = now.snapshot.pools[pg.pool]
    wanted = list(now.up[pg.pgid])
    wanted[position] = target
    assert pool.rule is not None
    settled = tuple(wanted) if pool.erasure else settle_replicated(pg.raw, wanted, pool.rule)
    try:
        items_for(pg.raw, settled)
    except ValueError:
        return False
    return True


def steps(moves: Sequence[Move]) -> List[Step]:
    return [(move.pgid, move.source, move.target) for move in moves]


def of_class(snapshot: Snapshot, moves: Sequence[Step]) -> Dict[str, List[Step]]:
    """The moves by the device class of their source, in order."""
    found: Dict[str, List[Step]] = {}
    for step in moves:
        found.setdefault(snapshot.osds[step[1]].device_class, []).append(step)
    return found
