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
    rest: int                 # for the PGs without a figure


class PoolFigures:
    """Apportions the totals of one pool: `add` every PG that has reported, then `apportion`, then
    read `figures`."""

    def __init__(self) -> None:
        self._pgs = self._known = 0
        self._bytes = self._known_bytes = 0
        self._objects = self._omap_bytes = self._omap_objects = 0   # of the known PGs, as they were
        self._shares = (_Apportionment(1.0, 0), _Apportionment(1.0, 0), _Apportionment(1.0, 0))
        self._has_grown = False
        self._tells_omap_objects = False
        self._is_unchanged = True   # the last full reading is still right

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

    def apportion(self, totals: Optional[Mapping[str, Any]], resized: bool) -> None:
        """`totals`: the pool's `stat_sum` now; `resized`: its pg_num has changed since."""
        if totals is None:   # the pool has no statistics of its own
            return
        objects = max(0, totals.get("num_objects", 0))
        self._has_grown = objects > self._objects
        self._tells_omap_objects = "num_objects_omap" in totals
        self._shares = (
            self._share(objects, self._objects, resized),
            self._share(max(0, totals.get("num_omap_bytes", 0)), self._omap_bytes, resized),
            self._share(max(0, totals.get("num_objects_omap", 0)), self._omap_objects, resized))
        self._is_unchanged = (all(rule.factor == 1.0 for rule in self._shares)
                          and (self._tells_omap_objects or not self._omap_objects))

    def figures(self, full: Optional[PgFigures], num_bytes: int) -> PgFigures:
        """Present figures of a PG that has reported; 0 objects only where it is certainly empty."""
        if full is not None and self._is_unchanged and full.num_objects:
            return full
        objects, omap, omap_objects = self._shares
        found = self._part(objects, full.num_objects if full else None, num_bytes)
        was_empty = full is None or not full.num_objects
        if not found and (num_bytes or (self._has_grown and was_empty)):
            found = 1
        is_known = self._tells_omap_objects and (full is None or full.omap_objects >= 0)
        return PgFigures(
            found, self._part(omap, full.omap_bytes if full else None, num_bytes),
            self._part(omap_objects, full.omap_objects if full else None, num_bytes)
            if is_known else -1)

    def _share(self, total: int, had: int, resized: bool) -> _Apportionment:
        if resized or not self._known:
            return _Apportionment(None, total)
        if total * self._known > _MOST_GROWTH * had * self._pgs:
            return _Apportionment(None, total)
        if self._known == self._pgs or had > total:
            return _Apportionment(total / had if had else 1.0, 0)
        return _Apportionment(1.0, total - had)

    def _part(self, rule: _Apportionment, had: Optional[int], num_bytes: int) -> int:
        if had is not None and rule.factor is not None:
            return int(had * rule.factor)
        everyone = rule.factor is None
        pgs = self._pgs if everyone else self._pgs - self._known
        whole = self._bytes if everyone else self._bytes - self._known_bytes
        # by bytes, which are always known: where pg_num is no power of 2, PGs differ by half
        return rule.rest * num_bytes // whole if whole else rule.rest // pgs
