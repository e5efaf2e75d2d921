"""The placement while it is being planned: what every OSD would hold after the moves so far."""
from __future__ import annotations

from bisect import bisect_left, insort
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from ..snapshot.model import Pg, Snapshot
from .options import PlanOptions, effective_fill_limit

_TOLERANCE = 1e-9


class Shard(NamedTuple):
    """One movable shard. Sorts largest first, then by PG, so that plans do not depend on chance."""

    negative_bytes: int
    pool: int
    ps: int
    position: int
    pgid: str


class Group(NamedTuple):
    """The shards that one pool places under one take: their ideal spread and who may hold them."""

    ideal: Dict[int, float]   # OSD → shards by weight
    counts: Dict[int, int]    # OSD → shards now
    room: Set[int]            # OSDs that may gain a shard, kept in line with the counts
    take: int


class _Spread:
    """Sums from which the variance of a class's utilisations follows in constant time."""

    def __init__(self) -> None:
        self.osds = 0
        self.total = 0.0
        self.squares = 0.0

    def add(self, utilization: float) -> None:
        self.osds += 1
        self.total += utilization
        self.squares += utilization * utilization

    def deviation(self, total_change: float = 0.0, squares_change: float = 0.0) -> float:
        """Sum of squared differences from the mean, after given changes of the two sums."""
        total = self.total + total_change
        return self.squares + squares_change - total * total / self.osds


class PlacementState:
    """Used bytes, shard counts and up sets in the target state, with cheap what-if questions."""

    def __init__(self, snapshot: Snapshot, options: PlanOptions) -> None:
        self.snapshot = snapshot
        self.fill_limit = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
        self.used: Dict[int, int] = {o.id: o.target_bytes for o in snapshot.osds.values()}
        self.size: Dict[int, int] = {o.id: o.size_bytes for o in snapshot.osds.values()
                                     if o.has_statistics}
        self.changed_up: Dict[str, Tuple[int, ...]] = {}
        self._moved: Set[Tuple[str, int]] = set()
        self._takers = {o.id for o in snapshot.osds.values() if o.cannot_take() is None}
        self._class_of = {o.id: o.device_class for o in snapshot.osds.values()}
        self._spread: Dict[str, _Spread] = {}
        self._groups: Dict[Tuple[int, int], Group] = {}
        self._shards: Dict[int, List[Shard]] = {osd: [] for osd in self.size}
        self._targets: Dict[int, List[Tuple[float, int]]] = {}
        self._count_spread()
        self._make_groups()
        self._place_shards(options)

    def utilization(self, osd: int) -> float:
        return self.used[osd] / self.size[osd]

    def up(self, pg: Pg) -> Tuple[int, ...]:
        return self.changed_up.get(pg.pgid, pg.up)

    def group_of(self, pg: Pg, position: int) -> Group:
        rule = self.snapshot.pools[pg.pool].rule
        assert rule is not None
        return self._groups[pg.pool, rule.block_index(position)]

    def shards_on(self, osd: int) -> Iterator[Tuple[Pg, int]]:
        """(PG, position) of the movable shards on an OSD, largest first."""
        for shard in self._shards[osd]:
            if (shard.pgid, shard.position) not in self._moved:
                yield self.snapshot.pgs[shard.pgid], shard.position

    def fullest(self, device_class: str) -> List[int]:
        """OSDs of a class that have movable shards, fullest first."""
        return sorted((osd for osd, shards in self._shards.items()
                       if shards and self._class_of[osd] == device_class),
                      key=lambda osd: (-self.utilization(osd), osd))

    def emptier_targets(self, group: Group, utilization: float) -> List[int]:
        """OSDs that may gain a shard of the group, emptiest first, all emptier than given."""
        targets = self._targets[group.take]
        end = bisect_left(targets, (utilization, -1))
        room = group.room  # asked of every target for every source: a set, as measured
        return [osd for _, osd in targets[:end] if osd in room]

    def may_lose(self, group: Group, osd: int) -> bool:
        """One shard less brings the OSD's count nearer to its ideal, or no further from it."""
        return group.counts.get(osd, 0) - group.ideal.get(osd, 0.0) >= 0.5 - _TOLERANCE

    def may_gain(self, group: Group, osd: int) -> bool:
        """One shard more brings the OSD's count nearer to its ideal, or no further from it."""
        ideal = group.ideal.get(osd)
        return ideal is not None and ideal - group.counts.get(osd, 0) >= 0.5 - _TOLERANCE

    def fits(self, osd: int, shard_bytes: int) -> bool:
        return self.used[osd] + shard_bytes <= self.fill_limit * self.size[osd]

    def lowers_variance(self, source: int, target: int, shard_bytes: int) -> bool:
        """Does the move lower the variance of utilisation, summed over the classes it touches?"""
        changes: Dict[str, List[float]] = {}
        for osd, delta in ((source, -shard_bytes), (target, shard_bytes)):
            before = self.utilization(osd)
            after = (self.used[osd] + delta) / self.size[osd]
            sums = changes.setdefault(self._class_of[osd], [0.0, 0.0])
            sums[0] += after - before
            sums[1] += after * after - before * before
        gain = 0.0
        for name, (total, squares) in changes.items():
            spread = self._spread[name]
            gain += spread.deviation() - spread.deviation(total, squares)
        return gain > _TOLERANCE * _TOLERANCE

    def legal(self, pg: Pg, position: int, target: int) -> bool:
        """May the shard go there by the pool's rule, and can upmap items express it?"""
        if target in pg.up:
            return False  # shards of one PG never follow each other
        pool = self.snapshot.pools[pg.pool]
        assert pool.rule is not None
        if target in pg.raw:
            home = pg.raw.index(target)
            if pool.erasure and home != position:
                return False
            if pool.rule.block_at(home) is not pool.rule.block_at(position):
                return False
        return pool.rule.allows(self.up(pg), position, target)

    def move(self, pg: Pg, position: int, target: int) -> None:
        """Moves one shard; the caller has checked that it may."""
        up = list(self.up(pg))
        source = up[position]
        group = self.group_of(pg, position)
        self._shift_bytes(source, -pg.shard_bytes)
        self._shift_bytes(target, pg.shard_bytes)
        group.counts[source] -= 1
        group.counts[target] = group.counts.get(target, 0) + 1
        for osd in (source, target):
            group.room.discard(osd)
            if self.may_gain(group, osd):
                group.room.add(osd)
        up[position] = target
        self.changed_up[pg.pgid] = tuple(up)
        self._moved.add((pg.pgid, position))

    def _shift_bytes(self, osd: int, delta: int) -> None:
        before = self.utilization(osd)
        self.used[osd] += delta
        after = self.utilization(osd)
        spread = self._spread[self._class_of[osd]]
        spread.total += after - before
        spread.squares += after * after - before * before
        for targets in self._targets.values():
            index = bisect_left(targets, (before, osd))
            if index < len(targets) and targets[index] == (before, osd):
                del targets[index]
                insort(targets, (after, osd))

    def _count_spread(self) -> None:
        for osd in self.size:
            self._spread.setdefault(self._class_of[osd], _Spread()).add(self.utilization(osd))

    def _make_groups(self) -> None:
        pg_counts: Dict[int, int] = {}
        for pg in self.snapshot.pgs.values():
            pg_counts[pg.pool] = pg_counts.get(pg.pool, 0) + 1
        for pool in self.snapshot.pools.values():
            if pool.rule is None:
                continue
            for index, block in enumerate(pool.rule.blocks):
                weights = self._weights_now(block.weights)
                total = sum(weights.values())
                shards = block.positions * pg_counts.get(pool.id, 0)
                ideal = {o: shards * w / total for o, w in weights.items()} if total else {}
                self._groups[pool.id, index] = Group(ideal, {}, set(), block.take)
                self._targets.setdefault(block.take, sorted(
                    (self.utilization(osd), osd) for osd in block.weights
                    if osd in self._takers))

    def _weights_now(self, weights: Dict[int, float]) -> Dict[int, float]:
        """CRUSH weight × reweight, as CRUSH itself would share the shards out."""
        osds = self.snapshot.osds
        return {osd: weight * (osds[osd].reweight if osds[osd].is_in else 0.0)
                for osd, weight in weights.items() if osd in osds}

    def _place_shards(self, options: PlanOptions) -> None:
        for pg in self.snapshot.pgs.values():
            pool = self.snapshot.pools[pg.pool]
            if pool.rule is None or len(pg.up) != pool.size:
                continue
            movable = (pg.immovable is None and pg.pgid not in options.rejected_pgs
                       and (options.pool_ids is None or pg.pool in options.pool_ids))
            ps = int(pg.pgid.split(".", 1)[1], 16)
            for position, osd in enumerate(pg.up):
                counts = self._groups[pg.pool, pool.rule.block_index(position)].counts
                counts[osd] = counts.get(osd, 0) + 1
                if movable and osd in self._shards:
                    self._shards[osd].append(
                        Shard(-pg.shard_bytes, pg.pool, ps, position, pg.pgid))
        for group in self._groups.values():
            group.room.update(osd for osd in group.ideal if self.may_gain(group, osd))
        for shards in self._shards.values():
            shards.sort()
