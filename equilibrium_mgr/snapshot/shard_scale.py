"""How the shards of a PG differ in size, by OSD and by position: fitted from look to look."""
from __future__ import annotations

from typing import AbstractSet, Callable, Dict, FrozenSet, Mapping, Tuple

from ..runtime.time_slice import piecewise
from .acting_sets import acting_sets
from .model import Pool, pool_of
from .reading import PgRecord, Reading
from .sizes.osd_factors import NO_FACTORS, OsdFactors, ShardRatios, fit_osd_factors
from .sizes.position_ratios import ALIKE, PoolObjects, PositionRatios, layout_of

#: Seconds between two fits: those of OSDs go over all pools of each, those by position over the PGs
#: of pools that have such sizes.
_FIT_SECONDS = 600.0
_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond
_NO_FIGURES: Mapping[str, int] = {}
_NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)
#: Metadata that differs by less than this ratio of a shard's bytes is kept.
_SAME_METADATA = 0.005
#: Ratios without metadata → pool id → metadata ÷ all bytes of its shards, see ShardRatios.
MetadataOf = Callable[[ShardRatios], Mapping[int, float]]


class ShardScale:
    """`fit` with each reading; what is as good as before is kept, so that PGs stay as they are."""

    def __init__(self) -> None:
        self._factors: OsdFactors = NO_FACTORS
        self._positions: Dict[int, PositionRatios] = {}      # pool id → those of optimized pools
        self._metadata: Dict[int, float] = {}                # as ShardRatios has it
        self._fitted_at: Dict[int, float] = {}   # pool id → seconds since the epoch
        #: of the last fit of OSDs: which had reported, and seconds since the epoch
        self._osds_fitted: Tuple[FrozenSet[int], float] = (frozenset(), float("-inf"))

    def copy(self) -> ShardScale:
        """One that remembers the same."""
        copied = ShardScale()
        copied._factors, copied._osds_fitted = self._factors, self._osds_fitted
        copied._positions, copied._fitted_at = dict(self._positions), dict(self._fitted_at)
        copied._metadata = self._metadata
        return copied

    @property
    def shard_ratios(self) -> ShardRatios:
        """As they were fitted last."""
        return ShardRatios(self._factors, {
            pool: found.ratios for pool, found in self._positions.items() if found.ratios},
            self._metadata)

    def fit_anew(self) -> None:
        """Has the OSDs' factors fitted with the next reading."""
        self._osds_fitted = self._osds_fitted[0], float("-inf")

    def fit(self, reading: Reading, pools: Mapping[int, Pool],
            metadata_of: MetadataOf) -> Dict[int, Pool]:
        """The pools with the ratios of their shards' sizes, where these are not all alike."""
        before, is_fitted = self._factors, self._fit_positions(reading, pools)
        # of an OSD that is out the mgr has zeros
        reported = frozenset([stats["osd"] for stats in reading.osd_stats
                              if (stats.get("statfs") or _NO_FIGURES).get("total", 0) > 0])
        if self._osds_fitted[0] != reported or _is_due(self._osds_fitted[1], reading.taken_at):
            is_fitted, self._osds_fitted = True, (reported, reading.taken_at)
            self._fit_osds(reading, before)
        if is_fitted and self._has_other_metadata(metadata_of):
            self._fit_osds(reading, before)
        shard_ratios = self.shard_ratios
        found: Dict[int, Pool] = dict(pools)
        for number, pool in pools.items() if self._factors.osds or shard_ratios.positions else ():
            ratios = self._factors.beside_osd(number, self._metadata.get(number, 0.0))
            positions = shard_ratios.at_positions(number)
            if ratios or positions:
                found[number] = pool._replace(osd_ratios=ratios, position_ratios=positions)
        return found

    def _fit_osds(self, reading: Reading, kept: OsdFactors) -> None:
        self._factors = fit_osd_factors(reading.pool_statfs, reading.osd_stats, kept,
                                        self._metadata)

    def _has_other_metadata(self, metadata_of: MetadataOf) -> bool:
        """Asks for the metadata where it matters; True where it is not what it was."""
        shard_ratios, found = self.shard_ratios, {}
        for pool, ratio in metadata_of(shard_ratios).items() if shard_ratios.pools else ():
            kept = self._metadata.get(pool, 0.0)
            ratio = kept if abs(ratio - kept) <= _SAME_METADATA else round(ratio, 3)
            if ratio:
                found[pool] = ratio
        before, self._metadata = self._metadata, found
        return before != found

    def _fit_positions(self, reading: Reading, pools: Mapping[int, Pool]) -> bool:
        """True where any have been fitted anew."""
        wanted = {number for number, pool in pools.items() if pool.is_optimized}
        for known in (self._positions, self._fitted_at):
            for number in known.keys() - wanted:
                del known[number]
        now = reading.taken_at
        due = {number for number in wanted
               if _is_due(self._fitted_at.get(number, float("-inf")), now)}
        if not due:
            return False
        for number, ratios in self._ratios(reading, pools, due).items():
            self._fitted_at[number] = now
            if not self._positions.get(number, ALIKE).is_kept(ratios):
                self._positions[number] = ratios
        return True

    def _ratios(self, reading: Reading, pools: Mapping[int, Pool],
                due: AbstractSet[int]) -> Dict[int, PositionRatios]:
        """Pool id → ratios by position, fitted anew."""
        dumps = {dump["pool"]: dump for dump in reading.osd_map["pools"]}
        objects = {number: PoolObjects(layout_of(dumps[number], pools[number].data_shards))
                   for number in sorted(due)}
        acting = acting_sets(reading)
        for pgid in piecewise(reading.up, _PGS_A_PIECE):
            of_pool = objects.get(pool_of(pgid))
            if of_pool is not None:
                record = reading.records.get(pgid, _NO_RECORD)
                of_pool.add(acting.get(pgid) or reading.up[pgid], record.num_bytes,
                            record.num_objects)
        stored: Dict[int, Dict[int, int]] = {number: {} for number in objects}
        for pool, osd, _, count in piecewise(reading.pool_statfs, _PGS_A_PIECE):
            if pool in stored:
                stored[pool][osd] = count
        return {number: of_pool.ratios(stored[number]) for number, of_pool in objects.items()}


def _is_due(fitted_at: float, now: float) -> bool:
    """True where the last fit was long ago, or the clock has been set back."""
    return not 0.0 <= now - fitted_at < _FIT_SECONDS
