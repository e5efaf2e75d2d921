"""Apportions a pool's present totals of objects and omap to its PGs.

The totals are present figures. Those of single PGs are from the last full reading, up to an hour
old; for PGs whose OSDs had not reported then, or that were split or merged since, there are none.
The figures of all PGs add up to the totals.
"""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

#: A pool that has grown by more than this factor is apportioned by bytes alone: the few objects
#: that its PGs had say little about the many that have come since.
_MOST_GROWTH = 4.0


class PgFigures(NamedTuple):
    """Figures of one PG that only a full reading has."""

    num_objects: int
    omap_bytes: int
    omap_objects: int   # objects that have omap; -1 where not known


NOTHING = PgFigures(0, 0, -1)


class _Apportionment(NamedTuple):
    """The rule by which one of the totals is apportioned."""

    factor: Optional[float]   # by which a PG's last figure is multiplied; None: not by that
    rest: int                 # for the PGs without a figure, or for all where there is no factor
    rest_bytes: int           # bytes of these PGs
    rest_pgs: int

    def part(self, had: Optional[int], num_bytes: int) -> int:
        """The part of one PG. `had`: its last figure."""
        if had is not None and self.factor is not None:
            return int(had * self.factor)
        # by bytes, which are always known: where pg_num is no power of 2, PGs differ by half
        return (self.rest * num_bytes // self.rest_bytes if self.rest_bytes
                else self.rest // self.rest_pgs)


class PoolRule(NamedTuple):
    """The rules by which the present totals of one pool are apportioned to its PGs."""

    objects: _Apportionment
    omap: _Apportionment
    omap_objects: _Apportionment
    has_grown: bool
    tells_omap_objects: bool
    is_unchanged: bool   # the last full reading is still right

    def figures(self, full: Optional[PgFigures], num_bytes: int) -> PgFigures:
        """Present figures of a PG that has reported; 0 objects only where it is certainly empty."""
        if full is not None and self.is_unchanged and full.num_objects:
            return full
        found = self.objects.part(full.num_objects if full else None, num_bytes)
        was_empty = full is None or not full.num_objects
        if not found and (num_bytes or (self.has_grown and was_empty)):
            found = 1
        is_known = self.tells_omap_objects and (full is None or full.omap_objects >= 0)
        return PgFigures(
            found, self.omap.part(full.omap_bytes if full else None, num_bytes),
            self.omap_objects.part(full.omap_objects if full else None, num_bytes)
            if is_known else -1)


_AS_IT_WAS = _Apportionment(1.0, 0, 0, 1)
#: For a pool that has no statistics of its own.
NO_TOTALS = PoolRule(_AS_IT_WAS, _AS_IT_WAS, _AS_IT_WAS, False, False, True)


class PoolFigures:
    """Sums over the PGs of one pool that have reported: `add` them, then `rule`."""

    def __init__(self) -> None:
        self.pgs = 0   # of all, reported or not
        self._pgs = self._known = 0
        self._bytes = self._known_bytes = 0
        self._objects = self._omap_bytes = self._omap_objects = 0   # of the known PGs, as they were

    def add(self, full: Optional[PgFigures], num_bytes: int) -> None:
        """Adds one PG: its figures at the full reading, if there are any, and its bytes now."""
        self._pgs += 1
        self._bytes += num_bytes
        if full is not None:
            self._known += 1
            self._known_bytes += num_bytes
            self._objects += full.num_objects
            self._omap_bytes += full.omap_bytes
            self._omap_objects += max(0, full.omap_objects)

    def rule(self, totals: Optional[Mapping[str, Any]], resized: bool) -> PoolRule:
        """`totals`: the pool's `stat_sum` now; `resized`: its pg_num has changed since."""
        if totals is None:
            return NO_TOTALS
        objects = max(0, totals.get("num_objects", 0))
        tells = "num_objects_omap" in totals
        rules = (
            self._share(objects, self._objects, resized),
            self._share(max(0, totals.get("num_omap_bytes", 0)), self._omap_bytes, resized),
            self._share(max(0, totals.get("num_objects_omap", 0)), self._omap_objects, resized))
        return PoolRule(*rules, objects > self._objects, tells, all(
            rule.factor == 1.0 for rule in rules) and (tells or not self._omap_objects))

    def _share(self, total: int, had: int, resized: bool) -> _Apportionment:
        everyone = _Apportionment(None, total, self._bytes, max(1, self._pgs))
        if resized or not self._known:
            return everyone
        if total * self._known > _MOST_GROWTH * had * self._pgs:
            return everyone
        others = self._bytes - self._known_bytes, max(1, self._pgs - self._known)
        if self._known == self._pgs or had > total:
            return _Apportionment(total / had if had else 1.0, 0, *others)
        return _Apportionment(1.0, total - had, *others)
