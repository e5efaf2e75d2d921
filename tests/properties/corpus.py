"""What is said of all random clusters together, and printed when the tests are through."""
from __future__ import annotations

from collections import Counter
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
    free_before: float    # bytes, of all pools
    free_after: float
    least_free_kept: float  # the pool with data that lost most: new free space ÷ old


class Corpus:
    """Collects figures while the clusters pass."""

    def __init__(self) -> None:
        self.classes: List[ClassFigures] = []
        self.clusters: Dict[int, ClusterFigures] = {}
        self.rounds: Dict[int, int] = {}       # cluster → plans until nothing was left to do
        self.examined: Dict[int, float] = {}   # cluster → candidates per search, shard and OSD
        self.scores: Dict[int, bool] = {}      # cluster → the plan raises the score
        self.scores_again: Dict[Tuple[int, int], bool] = {}  # the same, of the n-th plan
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
            yield (f"random clusters: {100 * self.realized():.1f} % of the way to the bound,"
                   f" {len(self.classes)} classes, {len(self.behind())} behind")
            for f in self.behind()[:_SHOWN]:
                yield (f"  cluster {f.cluster}, {f.name}: {f.start:.4f} -> {f.end:.4f},"
                       f" bound {f.bound:.4f}, a shard is {f.shard:.4f}")
        if self.clusters:
            yield from self._bytes_and_space()
        if self.rounds:
            counts = Counter(self.rounds.values())
            plans = ", ".join(f"{n}: {counts[n]}" for n in sorted(counts))
            yield f"plans until nothing is left to do: {plans}"
        if self.examined:
            yield f"candidates per search, shard and OSD: at most {max(self.examined.values()):.1f}"
        for name, rises in (("first", list(self.scores.values())),
                            ("further", list(self.scores_again.values()))):
            if rises:
                yield (f"{rises.count(False)} of {len(rises)} {name} plans do not raise the"
                       " score")
        if self.at_once:
            yield (f"{sum(self.at_once.values())} of {len(self.at_once)} plans must not be sent"
                   " all at once")

    def _bytes_and_space(self) -> Iterator[str]:
        figures = list(self.clusters.values())
        efficiency = ", ".join(f"{aim} {self.bytes_efficiency(aim):.2f}"
                               for aim in sorted({f.aim for f in figures}))
        yield (f"bytes efficiency: {efficiency};"
               f" pools' free space {100 * self._free_space_gained():+.1f} %")
        losers = [f for f in figures if f.least_free_kept < 0.99]
        shown = "".join(f", {f.cluster}: {f.least_free_kept:.3f}" for f in losers[:_SHOWN])
        lost = sum(f.free_after < f.free_before for f in figures)
        yield (f"a pool with data loses more than 1 % of its free space in {len(losers)}"
               f" clusters{shown}; all pools together lose in {lost}")

    def _free_space_gained(self) -> float:
        before = sum(f.free_before for f in self.clusters.values())
        return sum(f.free_after for f in self.clusters.values()) / max(1.0, before) - 1.0
