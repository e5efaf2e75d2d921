"""Sizes of the shards of an EC-optimized pool by position, fitted from what OSDs report.

Without that flag all shards of a PG are equally large. With it (since Ceph 20) an object's bytes
fill chunk after chunk, and what is missing in its last stripe is not padded: parity is as large as
the first shard, and the other data shards of a small object hold nothing (20.2.4: of 10,000 B, 4+2,
stripe unit 16 KiB, 12,288 B at positions 0, 4 and 5). Only what was written since the flag was set
is so, which is why sizes are fitted (least squares, from what BlueStore has stored for the pool on
each OSD) and computed by the mean object alone where too few OSDs tell.
"""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..acting_sets import nonprimary_shards
from .osd_factors import exact_ratio

#: A shard of an object takes whole pages of so many bytes.
_PAGE = 4096
#: The fit is used where there are so many OSDs for each data shard, and where it explains what they
#: store to this ratio of it.
_OSDS_A_SHARD = 2
_EXPLAINED = 0.1
#: Ratios that differ by less than this are kept.
_SAME = 0.03
#: Sizes that differ by less than this ratio are alike.
_ALIKE = 0.02


class Layout:
    """How a pool cuts its objects: `data_shards` of `size` positions, in stripes of bytes."""

    def __init__(self, data_shards: int, size: int, stripe_width: int,
                 later: Iterable[int] = ()) -> None:
        """`later`: positions of all data shards but the first; the first positions unless given."""
        self.data_shards = data_shards
        self.size = size
        self.stripe_width = stripe_width
        positions = sorted(later) or range(1, data_shards)
        self._kinds = {position: kind for kind, position in enumerate(positions, start=1)
                       if kind < data_shards}

    def kind(self, position: int) -> int:
        """The data shard that a position is as large as: parity as the first."""
        return self._kinds.get(position, 0)

    def object_bytes(self, size: float) -> List[int]:
        """Bytes of an object of `size` bytes at each data shard (Ceph's ECUtil.h: ro_offset)."""
        whole, rest = divmod(int(size), self.stripe_width) if self.stripe_width else (0, 0)
        chunk = self.stripe_width // self.data_shards
        return [-(-(whole * chunk + max(0, min(chunk, rest - kind * chunk))) // _PAGE) * _PAGE
                for kind in range(self.data_shards)]

    def ratios(self, by_kind: Sequence[float]) -> Tuple[float, ...]:
        """Position → its bytes ÷ the mean of all; empty where they are alike."""
        sizes = [by_kind[self.kind(position)] for position in range(self.size)]
        mean = sum(sizes) / len(sizes)
        if mean <= 0.0 or max(sizes) - min(sizes) <= _ALIKE * mean:
            return ()
        return tuple([exact_ratio(size / mean) for size in sizes])


class PositionRatios(NamedTuple):
    """How the shards of one pool differ in size by position."""

    ratios: Tuple[float, ...]   # bytes ÷ the mean of all; empty where they are alike
    #: from what OSDs have stored, not from the mean object alone, which does not tell what was
    #: written before the flag
    is_fitted: bool

    def is_kept(self, newer: PositionRatios) -> bool:
        """True where newer ones are as good, or worse: while much moves, or OSDs are missing, these
        do not tell what they told before."""
        return (self.is_fitted and not newer.is_fitted) or (
            self.is_fitted == newer.is_fitted and _is_same(self.ratios, newer.ratios))


#: Of a pool without objects.
ALIKE = PositionRatios((), False)


class PoolObjects:
    """Objects of one pool by OSD and position: `add` its PGs, then `ratios`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._objects: Dict[int, List[int]] = {}   # OSD → objects by data shard
        self._bytes = self._count = 0              # logical bytes and objects of all PGs

    def add(self, acting: Sequence[int], num_bytes: int, objects: int) -> None:
        """Adds a PG."""
        self._bytes += num_bytes
        self._count += objects
        for position, osd in enumerate(acting[:self._layout.size]):
            row = self._objects.get(osd)
            if row is None:
                row = self._objects[osd] = [0] * self._layout.data_shards
            row[self._layout.kind(position)] += objects

    def ratios(self, stored: Mapping[int, int]) -> PositionRatios:
        """`stored`: OSD → bytes that it has stored of the pool."""
        if not self._count:
            return ALIKE
        by_formula = self._layout.object_bytes(self._bytes / self._count)
        found = self._fit(stored, by_formula)
        return PositionRatios(self._layout.ratios(by_formula if found is None else found),
                              found is not None)

    def _fit(self, stored: Mapping[int, int], likely: Sequence[float]) -> Optional[List[float]]:
        """Bytes of an object at each data shard; None where the OSDs do not tell."""
        rows = [(row, stored[osd]) for osd, row in sorted(self._objects.items()) if osd in stored]
        if len(rows) < _OSDS_A_SHARD * self._layout.data_shards or not any(s for _, s in rows):
            return None
        solved = _least_squares(rows, likely)
        if solved is None:
            return None
        # data shards are written in their order: none is larger than the one before it
        for kind in range(len(solved)):
            solved[kind] = max(0.0, min([solved[kind], *solved[:kind]]))
        missed = sum(abs(count - sum(map(_product, row, solved))) for row, count in rows)
        return solved if missed <= _EXPLAINED * sum(count for _, count in rows) else None


def _is_same(kept: Sequence[float], fitted: Sequence[float]) -> bool:
    return len(kept) == len(fitted) and all(
        abs(one - other) <= _SAME for one, other in zip(kept, fitted))


def layout_of(pool: Mapping[str, Any], data_shards: int) -> Layout:
    """Of a pool's dump in the osdmap."""
    return Layout(data_shards, pool["size"], int(pool.get("stripe_width", 0)),
                  nonprimary_shards(pool))


def _product(one: float, other: float) -> float:
    return one * other


def _least_squares(rows: Sequence[Tuple[Sequence[int], int]],
                   likely: Sequence[float]) -> Optional[List[float]]:
    """The solution of the normal equations by Gaussian elimination, drawn a little towards what is
    likely, so that shards that OSDs do not tell apart have the sizes that they most likely have."""
    count = len(likely)
    pull = 1e-4 * sum(value * value for row, _ in rows for value in row) / count
    matrix = [[float(sum(row[i] * row[j] for row, _ in rows)) + (pull if i == j else 0.0)
               for j in range(count)]
              + [float(sum(row[i] * stored for row, stored in rows)) + pull * likely[i]]
              for i in range(count)]
    for column in range(count):
        pivot = max(range(column, count), key=lambda i: abs(matrix[i][column]))
        if abs(matrix[pivot][column]) <= 0.0:
            return None
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        for i in range(count):
            if i != column:
                ratio = matrix[i][column] / matrix[column][column]
                matrix[i] = [value - ratio * other
                             for value, other in zip(matrix[i], matrix[column])]
    return [matrix[i][count] / matrix[i][i] for i in range(count)]
