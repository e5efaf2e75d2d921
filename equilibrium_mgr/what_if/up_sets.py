"""Up sets after a failure: what CRUSH gives then, and what the monitor leaves of the upmap items.

The rules are those of OSDMap::_apply_upmap and OSDMap::check_pg_upmaps (Ceph 16 to 20).
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..crush.upmap_check import UpmapCheck
from ..snapshot.model import Pg, Pool, Snapshot, UpmapItems
from ..snapshot.upmap_items import apply_items
from .failure import is_in

Osds = Tuple[int, ...]


class UpSetsAfter:
    """The up sets of PGs once some OSDs are out."""

    def __init__(self, snapshot: Snapshot, failed: FrozenSet[int]) -> None:
        self._snapshot = snapshot
        self._failed = failed
        self._checks: Dict[int, UpmapCheck] = {}
        self._some_down = any(not osd.up and not self._is_out(osd.id)
                              for osd in snapshot.osds.values())

    def up(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """The up set of a PG that is to have `items`.

        `mapped`: as the mgr maps it under the failure, with the items that it has now, none
        cleaned. Some rules leave OSDs in it that are out (chooseleaf of type osd, where all below
        a bucket are): these have failed, so they are not up.
        """
        up = self._mapped(pg, mapped, items)
        if self._failed.isdisjoint(up):
            return up
        if self._snapshot.pools[pg.pool].erasure:
            return tuple(NO_OSD if osd in self._failed else osd for osd in up)
        return tuple(osd for osd in up if osd not in self._failed)

    def _mapped(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        now = self._snapshot.upmap_items.get(pg.pgid, ())
        if not (now or items):
            return mapped
        pool = self._snapshot.pools[pg.pool]
        raw = self._raw(pg, mapped, now)
        if self._some_down and _lacks_the_same(pool, pg.up, mapped):
            # an OSD that is down does not show, so whether the monitor keeps the items is unknown
            return apply_items(raw, items, self._is_out)
        return self._cleaned(pool, raw, items)

    def _is_out(self, osd: int) -> bool:
        return osd in self._failed or not is_in(self._snapshot, osd)

    def _raw(self, pg: Pg, mapped: Osds, items: UpmapItems) -> Osds:
        """What CRUSH alone gives under the failure: it keeps what it chose before and is in."""
        raw = list(mapped)
        for source, target in reversed(items):
            if target in raw and source not in raw and source in pg.raw and (
                    not self._is_out(source)):
                raw[raw.index(target)] = source
        return tuple(raw)

    def _cleaned(self, pool: Pool, raw: Osds, items: UpmapItems) -> Osds:
        """The up set once the monitor has cleaned the items, epoch by epoch."""
        while items:
            up = apply_items(raw, items, self._is_out)
            if self._rejection(pool, up) is not None:
                return raw
            kept = tuple((source, target) for source, target in items
                         if source in raw and not self._is_out(target))
            if kept == items:
                return up
            items = kept
        return raw

    def _rejection(self, pool: Pool, up: Sequence[int]) -> Optional[str]:
        """Why the monitor cancels items that lead to this up set."""
        rule = self._snapshot.crush.rules.get(pool.rule_id)
        if rule is None:
            return "the rule is gone"
        if any(map(self._is_out, up)):
            return "an OSD is out"
        if pool.id not in self._checks:
            self._checks[pool.id] = UpmapCheck(self._snapshot.crush, rule, pool.size)
        return self._checks[pool.id].rejection(up)


def _lacks_the_same(pool: Pool, up: Osds, mapped: Osds) -> bool:
    """True where shards have no OSD, and none of them had one before: other holes than these are
    CRUSH's."""
    if not pool.erasure:
        return len(mapped) < pool.size
    holes = {position for position, osd in enumerate(mapped) if osd == NO_OSD}
    return bool(holes) and holes <= {
        position for position, osd in enumerate(up) if osd == NO_OSD}
