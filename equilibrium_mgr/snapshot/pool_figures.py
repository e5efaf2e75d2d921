"""A pool's present totals shared out among its PGs.

The totals (objects, omap) are of now, what single PGs had is from the last full reading, up to an
hour old; of some PGs it tells nothing, because their OSDs had not reported then, or because they
were split or merged since. All figures of the PGs together come to the totals.
"""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

#: A pool that has grown by more than this factor is shared out anew: what few objects its PGs had
#: tells little of the many that have come since.
_MOST_GROWTH = 4.0


class PgFigures(NamedTuple):
    """What only a full reading tells about one PG."""

    num_objects: int
    omap_bytes: int
    omap_objects: int   # objects that have omap; -1 where not told


NOTHING = PgFigures(0, 0, -1)


class _Apportionment(NamedTuple):
    """How one of the totals is shared out."""

    factor: Optional[float]   # of what a PG had; None: that tells nothing
    rest: int                 # for the PGs of which nothing is known


class PoolFigures:
    """First `add` for every PG that has reported, then `share_out`, then `figures`."""

    def __init__(self) -> None:
        self._pgs = self._known = 0
        self._bytes = self._known_bytes = 0
        self._objects = self._omap_bytes = self._omap_objects = 0   # of the known PGs, as they were
        self._apportionments = (_Apportionment(1.0, 0), _Apportionment(1.0, 0), _Apportionment(1.0, 0))
        self._has_grown = False
        self._tells_omap_objects = False
        self._is_unchanged = True     # what is known of PGs still holds

    def add(self, full: Optional[PgFigures], num_bytes: int) -> None:
        """One PG: what it had at the full reading, if that is known, and its bytes of now."""
        self._pgs += 1
        self._bytes += num_bytes
        if full is not None:
            self._known += 1
            self._known_bytes += num_bytes
            self._objects += full.num_objects
            self._omap_bytes += full.omap_bytes
            self._omap_objects += max(0, full.omap_objects)

    def share_out(self, totals: Optional[Mapping[str, Any]], resized: bool) -> None:
        """`totals`: the pool's `stat_sum` of now; `resized`: its PGs are not those of before."""
        if totals is None:   # the pool has no statistics of its own
            return
        objects = max(0, totals.get("num_objects", 0))
        self._has_grown = objects > self._objects
        self._tells_omap_objects = "num_objects_omap" in totals
        self._apportionments = (
            self._apportionment(objects, self._objects, resized),
            self._apportionment(max(0, totals.get("num_omap_bytes", 0)), self._omap_bytes, resized),
            self._apportionment(max(0, totals.get("num_objects_omap", 0)), self._omap_objects, resized))
        self._is_unchanged = (all(rule.factor == 1.0 for rule in self._apportionments)
                          and (self._tells_omap_objects or not self._omap_objects))

    def figures(self, full: Optional[PgFigures], num_bytes: int) -> PgFigures:
        """Of a PG that has reported. It has no objects only where it is known to be empty."""
        if full is not None and self._is_unchanged and full.num_objects:
            return full
        objects, omap, omap_objects = self._apportionments
        found = self._part(objects, full.num_objects if full else None, num_bytes)
        if not found and (num_bytes or (self._has_grown and (full is None or not full.num_objects))):
            found = 1
        told = self._tells_omap_objects and (full is None or full.omap_objects >= 0)
        return PgFigures(
            found, self._part(omap, full.omap_bytes if full else None, num_bytes),
            self._part(omap_objects, full.omap_objects if full else None, num_bytes) if told else -1)

    def _apportionment(self, total: int, had: int, resized: bool) -> _Apportionment:
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
        # by bytes, which are known at once: between two powers of 2 PGs differ by half
        return rule.rest * num_bytes // whole if whole else rule.rest // pgs
