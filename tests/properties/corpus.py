"""What is said of all random clusters together, and printed when the tests are through."""
from __future__ import annotations

from typing import Iterator, List, NamedTuple, Tuple

#: Clusters named one by one.
_SHOWN = 10
#: Of the bytes that a plan moves (ratio).
WASTED = 0.03


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

    aim: str
    moved_bytes: int
    needed_bytes: float


class Corpus:
    """Collects figures while the clusters pass."""

    def __init__(self) -> None:
        self.classes: List[ClassFigures] = []
        self.clusters: List[ClusterFigures] = []
        self.returnable: List[Tuple[int, int]] = []   # bytes of those that a plan moved
        # cluster, aim, and of its losses to the default's the highest and the lowest ratio
        self.compared: List[Tuple[int, str, float, float]] = []

    def realized(self) -> float:
        """The share of all utilization that could be taken off the fullest OSDs."""
        way = sum(max(0.0, f.start - f.bound) for f in self.classes)
        return sum(f.start - f.end for f in self.classes) / way if way else 1.0

    def bytes_efficiency(self, aim: str) -> float:
        """What the fullest OSDs had to give, by whole shards, against all that was moved."""
        some = [f for f in self.clusters if f.aim == aim]
        moved = sum(f.moved_bytes for f in some)
        return sum(f.needed_bytes for f in some) / moved if moved else 1.0

    def behind(self) -> List[ClassFigures]:
        """Neither 95 % of the way to the bound nor within one shard of it."""
        return [f for f in self.classes if f.realized < 0.95 and not f.near]

    def lines(self) -> Iterator[str]:
        if self.classes:
            yield f"random clusters: {self.realized():.4f} of the way to the bound"
        for f in self.behind()[:_SHOWN]:
            yield f"  behind: {f}"
        for aim in sorted({f.aim for f in self.clusters}):
            yield f"bytes efficiency: {aim} {self.bytes_efficiency(aim):.2f}"
        if self.returnable:
            returned, moved = self.returned_bytes()
            yield f"moved for nothing: {returned} of {moved} bytes"

    def returned_bytes(self) -> Tuple[int, int]:
        """What could have stayed of what was moved."""
        return (sum(returned for returned, _ in self.returnable),
                sum(moved for _, moved in self.returnable))

    def wasteful(self) -> int:
        """Plans of which more than that could have stayed."""
        return sum(returned > WASTED * moved for returned, moved in self.returnable)
