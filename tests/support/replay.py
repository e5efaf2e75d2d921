"""Plans carried out on a snapshot by the tests themselves: what is where after each move."""
from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from statistics import pstdev
from typing import Dict, Iterable, List, Sequence, Tuple

from equilibrium_mgr.plan.model import Move, PgChange, Plan
from equilibrium_mgr.snapshot.model import Snapshot


class Replay:
    """The target state of a snapshot, changed move by move. Members of a PG are a set here."""

    def __init__(self, snapshot: Snapshot, moves: Iterable[Move] = ()) -> None:
        self.snapshot = snapshot
        self.used: Dict[int, int] = {o.id: o.target_bytes for o in snapshot.osds.values()}
        self.up: Dict[str, List[int]] = {pgid: list(pg.up) for pgid, pg in snapshot.pgs.items()}
        for move in moves:
            self.move(move)

    def move(self, move: Move) -> None:
        """One shard's way; it must be where it is said to come from."""
        up = self.up[move.pgid]
        assert move.source in up and move.target not in up, move
        assert move.bytes == self.snapshot.pgs[move.pgid].shard_bytes
        up[up.index(move.source)] = move.target
        self.used[move.source] -= move.bytes
        self.used[move.target] += move.bytes

    def utilization(self, osd: int) -> float:
        return self.used[osd] / self.snapshot.osds[osd].size_bytes

    def utilizations(self, name: str) -> Dict[int, float]:
        """Utilizations of the OSDs of a set that count: in, with statistics."""
        found = {}
        for osd in self.snapshot.osds.values():
            counts = osd.has_statistics and osd.is_in and not osd.drained
            if counts and self.snapshot.set_of(osd.id) == name:
                found[osd.id] = self.utilization(osd.id)
        return found

    def highest(self, name: str) -> float:
        return max(self.utilizations(name).values())

    def stddev(self, name: str) -> float:
        return pstdev(self.utilizations(name).values())


def largest_shard_on(replay: Replay, osd: int) -> int:
    """Bytes of the largest shard that an OSD holds; 0 where it holds none."""
    held = [pgid for pgid, up in replay.up.items() if osd in up]
    return max((replay.snapshot.pgs[pgid].shard_bytes for pgid in held), default=0)


def sets_of(snapshot: Snapshot, plan: Plan) -> List[str]:
    """The OSD sets that a plan takes bytes from."""
    return sorted({snapshot.set_of(move.source) for move in plan.moves})


def by_change(plan: Plan) -> List[Tuple[PgChange, List[Move]]]:
    """Every change with its moves; they must stand side by side and in the changes' order."""
    groups: List[Tuple[PgChange, List[Move]]] = []
    left = list(plan.moves)
    for change in plan.changes:
        mine = left[:change.shards]
        left = left[change.shards:]
        assert mine and {move.pgid for move in mine} == {change.pgid}
        groups.append((change, mine))
    assert not left
    return groups


def changed_bytes(changes: Iterable[PgChange]) -> int:
    return sum(change.shards * change.shard_bytes for change in changes)


def first_part(plan: Plan, share: float) -> Tuple[PgChange, ...]:
    """The first changes that have at least this share of the plan's bytes."""
    part: List[PgChange] = []
    for change in plan.changes:
        if changed_bytes(part) >= share * plan.bytes:
            break
        part.append(change)
    return tuple(part)


def follow_up(snapshot: Snapshot, changes: Sequence[PgChange]) -> Snapshot:
    """The snapshot once some changes are through: nothing of them is in flight any more."""
    pgs, items = dict(snapshot.pgs), dict(snapshot.upmap_items)
    used = dict.fromkeys(snapshot.osds, 0)
    for change in changes:
        pg = pgs[change.pgid]
        assert pg.up == change.up_before and pg.raw == change.raw
        pgs[change.pgid] = pg._replace(up=change.up_after, acting=change.up_after)
        items.pop(change.pgid, None)
        if change.items:
            items[change.pgid] = change.items
        for osd in set(change.up_before) - set(change.up_after):
            used[osd] -= pg.shard_bytes
        for osd in set(change.up_after) - set(change.up_before):
            used[osd] += pg.shard_bytes
    osds = {osd.id: osd._replace(used_bytes=osd.used_bytes + used[osd.id])
            for osd in snapshot.osds.values()}
    return snapshot._replace(pgs=pgs, upmap_items=items, osds=osds)


def typical_shard(snapshot: Snapshot, name: str) -> float:
    """Half of the bytes of an OSD set are in shards of at most this size."""
    sizes = []
    for pg in snapshot.pgs.values():
        mine = [osd for osd in pg.up if osd in snapshot.osds and snapshot.set_of(osd) == name]
        sizes += [pg.shard_bytes] * len(mine)
    sizes.sort()
    passed = list(accumulate(sizes))
    return float(sizes[bisect_left(passed, passed[-1] / 2)]) if sizes else 0.0


def median_size(snapshot: Snapshot, name: str) -> int:
    sizes = sorted(osd.size_bytes for osd in snapshot.osds.values()
                   if snapshot.set_of(osd.id) == name and osd.has_statistics)
    return sizes[len(sizes) // 2]
