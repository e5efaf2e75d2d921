"""What is said of all random clusters together, and printed when the tests are through."""
from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Tuple

#: Clusters named one by one.
_SHOWN = 10


class ClassFigures(NamedTuple):
    """One device class of one cluster. Utilizations are ratios."""

    cluster: int
    name: str
    start: float
    end: float
    bound: float          # of what can be moved: the rest stays where it is
    shard: float          # what the largest shard on the fullest OSD adds to its utilization

    @property
    def realized(self) -> float:
        """The share of the way to the bound; 1 where there is none to go."""
        way = self.start - self.bound
        return 1.0 if way < 1e-9 else (self.start - self.end) / way

    @property
    def near(self) -> bool:
        """Whether no whole shard is left between the fullest OSD and the bound."""
        return self.end - self.bound <= self.shard


class ClusterFigures(NamedTuple):
    """One cluster. `needed_bytes` no plan that ends as low moves less than."""

    cluster: int
    aim: str
    moved_bytes: int
    needed_bytes: float
    room_before: float    # of all pools
    room_after: float
    worst_room: float     # the pool with data that lost most: new free space ÷ old


class Corpus:
    """Collects figures while the clusters pass."""

    def __init__(self) -> None:
        self.classes: List[ClassFigures] = []
        self.clusters: Dict[int, ClusterFigures] = {}
        self.rounds: Dict[int, int] = {}       # cluster → plans until nothing was left to do
        self.examined: Dict[int, float] = {}   # cluster → candidates per search, shard and OSD
        self.worth: Dict[int, bool] = {}       # cluster → the plan is worth its bytes
        self.worth_again: Dict[Tuple[int, int], bool] = {}  # the same, of the n-th plan
        self.at_once: Dict[int, bool] = {}     # cluster → its moves cannot all be sent at once

    def realized(self) -> float:
        """The share of all utilization that could be taken off the fullest OSDs."""
        way = sum(max(0.0, f.start - f.bound) for f in self.classes)
        return sum(f.start - f.end for f in self.classes) / way if way else 1.0

    def bytes_efficiency(self, aim: str) -> float:
        """What the fullest OSDs had to give, by whole shards, against all that was moved."""
        some = [f for f in self.clusters.values() if f.aim == aim]
        moved = sum(f.moved_bytes for f in some)
        return sum(f.needed_bytes for f in some) / moved if moved else 1.0

    def behind(self) -> List[ClassFigures]:
        """Neither 95 % of the way to the bound nor within one shard of it."""
        return [f for f in self.classes if f.realized < 0.95 and not f.near]

    def lines(self) -> Iterator[str]:
        if self.classes:
            yield "random clusters: %.1f %% of the way to the bound, %d classes, %d behind" % (
                100 * self.realized(), len(self.classes), len(self.behind()))
            for f in self.behind()[:_SHOWN]:
                yield "  cluster %d, %s: %.4f -> %.4f, bound %.4f, a shard is %.4f" % (
                    f.cluster, f.name, f.start, f.end, f.bound, f.shard)
        if self.clusters:
            yield "bytes efficiency: %s; pools' room %+.1f %%" % (
                ", ".join("%s %.2f" % (aim, self.bytes_efficiency(aim)) for aim in sorted(
                    {f.aim for f in self.clusters.values()})), 100 * self._room_gained())
            losers = [f for f in self.clusters.values() if f.worst_room < 0.99]
            yield "a pool with data loses more than 1 %% of its room in %d clusters%s; %s" % (
                len(losers), "".join(", %d: %.3f" % (f.cluster, f.worst_room)
                                     for f in losers[:_SHOWN]),
                "all pools together lose in %d" % len(
                    [f for f in self.clusters.values() if f.room_after < f.room_before]))
        if self.rounds:
            yield "plans until rest: %s" % ", ".join(
                "%d: %d" % (n, list(self.rounds.values()).count(n))
                for n in sorted(set(self.rounds.values())))
        if self.examined:
            yield f"candidates per search, shard and OSD: at most {max(self.examined.values()):.1f}"
        for name, worth in (("first", list(self.worth.values())),
                            ("further", list(self.worth_again.values()))):
            if worth:
                yield "%d of %d %s plans are not worth their bytes by the planner's own count" % (
                    worth.count(False), len(worth), name)
        if self.at_once:
            yield "%d of %d plans must not be sent all at once" % (
                sum(self.at_once.values()), len(self.at_once))

    def _room_gained(self) -> float:
        before = sum(f.room_before for f in self.clusters.values())
        return sum(f.room_after for f in self.clusters.values()) / max(1.0, before) - 1.0
