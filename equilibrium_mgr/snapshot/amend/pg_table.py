"""The PGs of a snapshot, amended from one look to the next.

A PG is built anew where its report, up set, acting set or upmap items have changed, where it was
not at rest at the last look, where its pool's figures are clearly others, and where something has
changed that any PG depends on (`Surroundings`).
"""
from __future__ import annotations

from typing import Collection, Dict, List, Optional, Set, Tuple

from ...runtime.amended_map import AmendedRows
from ...runtime.row_store import Rows
from ...runtime.time_slice import piecewise
from ..in_flight import InFlightTracker
from ..model import Pg, pool_of
from ..pools import CopyCounts
from .leftovers import Leftovers
from .look import Look, changed_pgs, changed_pools
from .metadata import metadata_ratio
from .pg_builder import PgBuilder, PgNotes
from .pg_totals import PgTotals
from .resize import Row, resized
from .sizes_kept import KeptSizes, SizeRules

_PGS_A_PIECE = 200   # before it gives way again: about a millisecond


class PgTable:
    """The PGs of the last look: `update` with each look, then read `pgs`, `totals` and `copies`."""

    def __init__(self) -> None:
        self.tracker = InFlightTracker()
        self.leftovers = Leftovers()
        self._sizes = KeptSizes()
        self._look: Optional[Look] = None   # the last one; None where all is to be built
        self._notes = PgNotes()
        self._pgids: Dict[int, List[str]] = {}   # pool id → its PGs
        self.pgs: AmendedRows[Pg] = AmendedRows(Pg, {})
        self.totals = PgTotals()
        self.copies = CopyCounts()      # of PGs that are not at rest
        self.is_amended = False         # the last update has amended what was there

    def copy(self) -> PgTable:
        """One that remembers the same of the cluster's past, and builds all PGs at its next
        update."""
        copied = PgTable()
        copied.tracker, copied.leftovers = self.tracker.copy(), self.leftovers.copy()
        copied._sizes = self._sizes.copy()
        return copied

    @property
    def last_look(self) -> Optional[Look]:
        """The look of the last update; None before the first and after one that failed."""
        return self._look

    @property
    def silent(self) -> Collection[str]:
        """pgids of the PGs that no OSD has reported."""
        return self._notes.silent

    def update(self, look: Look) -> None:
        """Builds what has changed since the last update."""
        last, self._look = self._look, None
        changed = changed_pgs(last, look) if last is not None else None
        self.is_amended = last is not None and changed is not None
        self.tracker.begin(look.reading)
        self.copies = CopyCounts()
        if last is None or changed is None:
            self._build_all(look, last)
        else:
            self._amend(look, last, changed)
        self.tracker.end()
        self.leftovers.update(look, self.totals, self.pgs)
        self._look = look

    def _build_all(self, look: Look, last: Optional[Look]) -> None:
        known, notes = self.pgs, self._notes
        if last is None or last.surroundings.placement != look.surroundings.placement:
            known, notes.faults = AmendedRows(Pg, {}), {}
        notes.restless, notes.silent = set(), set()
        self.totals = PgTotals()
        pgids, self._pgids = self._known_pgids(look)
        self._sizes.start(look)
        self._sizes.fit(None, look, pgids, self._pgids, self.leftovers)
        builder = self._builder(look, last)
        pgs: Rows[Pg] = Rows(Pg)
        for pgid in piecewise(pgids, _PGS_A_PIECE):
            pg, omap_bytes = builder.build(pgid, known.get(pgid))
            pgs[pgid] = pg
            self.totals.add(pg, look.pools[pg.pool], omap_bytes, 1)
        notes.faults = {pgid: why for pgid, why in notes.faults.items() if pgid in pgs}
        self.pgs = pgs.frozen()

    def _known_pgids(self, look: Look) -> Tuple[List[str], Dict[int, List[str]]]:
        """PGs whose pool is known, all of them and by pool id."""
        pgids: List[str] = []
        by_pool: Dict[int, List[str]] = {}
        for pgid in piecewise(look.reading.up, _PGS_A_PIECE):
            pool = pool_of(pgid)
            if pool in look.pools:
                pgids.append(pgid)
                by_pool.setdefault(pool, []).append(pgid)
        return pgids, by_pool

    def metadata_ratios(self, look: Look) -> Dict[int, float]:
        """Pool id → metadata and omap of its shards ÷ all their bytes, of the pools of which data
        alone takes more or less, by sizes as a full build of the look has them."""
        sizes, (pgids, by_pool) = self._sizes.copy(), self._known_pgids(look)
        sizes.start(look)
        sizes.fit(None, look, pgids, by_pool, self.leftovers)
        return {pool: metadata_ratio(look, sizes.rules, by_pool.get(pool, ()))
                for pool in look.surroundings.shard_ratios.pools if pool in look.pools}

    def _amend(self, look: Look, last: Look, changed: Set[str]) -> None:
        changed.update(self._notes.silent)
        changed = {pgid for pgid in changed if pgid in self.pgs}
        rules = self._sizes.rules
        fitted = self._sizes.fit(last, look, changed, self._pgids, self.leftovers)
        dirty = self._notes.restless.union(
            fitted, *[self._pgids.get(pool, ()) for pool in changed_pools(last, look)])
        builder = self._builder(look, last)
        rows: Dict[str, Row] = {}
        for pgid in piecewise(dirty, _PGS_A_PIECE):
            old = self.pgs[pgid]
            pg, omap_bytes = builder.build(pgid, old)
            old_omap = _omap_bytes(last, pgid, rules) if pgid in fitted else omap_bytes
            if pg != old:
                rows[pgid] = tuple(pg)
            if pg != old or omap_bytes != old_omap:
                self.totals.add(old, last.pools[old.pool], old_omap, -1)
                self.totals.add(pg, look.pools[pg.pool], omap_bytes, 1)
        if self._sizes.rules.factors != rules.factors:
            self._resize(look, dirty, rows)
        self.pgs = self.pgs.amended_rows(rows)

    def _resize(self, look: Look, built: Collection[str], rows: Dict[str, Row]) -> None:
        """Adds to `rows` the PGs that other factors alone give another size. `built`: those that
        have been built anew."""
        found = resized(self.pgs, self._pgids, built, look, self._sizes.rules)
        self.totals.grow(found.grown)
        rows.update(found.rows)

    def _builder(self, look: Look, last: Optional[Look]) -> PgBuilder:
        return PgBuilder(look, last, self._sizes.rules, self._notes, self.tracker,
                         self.leftovers, self.copies)


def _omap_bytes(look: Look, pgid: str, rules: SizeRules) -> int:
    """Omap bytes of one shard of a PG, as they were at a look."""
    shard, _ = rules.inputs.of(look.pools[pool_of(pgid)], look.record(pgid), look.acting_set(pgid))
    return shard.omap_bytes
