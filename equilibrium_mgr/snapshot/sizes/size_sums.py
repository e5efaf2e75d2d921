"""Sums over PGs from which sizes are fitted.

All are whole numbers, so that the sums are the same in whatever order PGs are added.
"""
from __future__ import annotations

from typing import Collection, Dict, Mapping, Optional, Sequence, Tuple

from ..model import Pool
from ..reading import PgRecord
from .omap import OmapEstimate, OmapSums
from .osd_factors import ShardRatios
from .shard_sizes import ShardInput


_PARTS = 1000   # of one: factors are summed up as whole numbers of these


class _PoolSums:
    """Sums over the PGs of one pool."""

    def __init__(self) -> None:
        self.omap = OmapSums()
        self.pgs = 0             # that were reported, as what follows
        self.data_bytes = 0
        self.objects = 0
        self.omap_bytes = 0      # as estimated
        #: thousandths of bytes of the shards on OSDs with statistics, as usual OSDs would have them
        self.logical_bytes = 0
        self.coming_bytes = 0    # the same of shards that are being copied, once they are whole
        self.lacking_bytes = 0   # those of `logical_bytes` that may not be there: PGs in recovery
        self.silent_shards = 0   # on such OSDs, of PGs that were not reported

    def mean(self, pool: int) -> Optional[ShardInput]:
        """The mean PG; None where none was reported."""
        if not self.pgs:
            return None
        return ShardInput(pool, (), self.data_bytes // self.pgs, self.omap_bytes // self.pgs,
                          self.objects // self.pgs)


class SizeSums:
    """`devices`: OSDs with statistics."""

    def __init__(self, devices: Collection[int], shard_ratios: ShardRatios = ShardRatios()) -> None:
        self._pools: Dict[int, _PoolSums] = {}
        self._factors, self._positions = shard_ratios.factors, shard_ratios.positions
        self.own_bytes: Dict[int, int] = dict.fromkeys(devices, 0)   # by OSD, as what follows
        self.objects: Dict[int, int] = dict.fromkeys(devices, 0)
        self.explained_bytes: Dict[int, int] = dict.fromkeys(devices, 0)

    def add_record(self, pool: Pool, record: PgRecord, acting: Sequence[int],
                   up: Sequence[int]) -> None:
        """Adds what does not depend on estimates."""
        sums = self._pools.get(pool.id)
        if sums is None:
            sums = self._pools[pool.id] = _PoolSums()
        own = self.own_bytes
        copies = sum([osd in own for osd in acting])
        sums.omap.add(record, copies)
        if record.is_unknown:
            sums.silent_shards += copies
            return
        data_bytes = -(-record.num_bytes // pool.data_shards)
        sums.pgs += 1
        sums.data_bytes += max(0, data_bytes)
        sums.objects += max(0, record.num_objects)
        allocation = self._factors.allocation.get(pool.id)
        logical = data_bytes * (_PARTS * copies if allocation is None else sum(
            [int(_PARTS * allocation.get(osd, 1.0)) for osd in acting if osd in own]))
        sums.logical_bytes += logical
        if acting is not up:
            sums.coming_bytes += data_bytes * _PARTS * len(set(up).difference(acting))
        if "recover" in record.state or "degraded" in record.state:
            sums.lacking_bytes += logical

    def add_omap(self, shard: ShardInput) -> None:
        """Adds the estimated omap of a PG that was reported."""
        self._pools[shard.pool].omap_bytes += max(0, shard.omap_bytes)

    def add_shards(self, shard: ShardInput, allocation_ratio: float, measured: float) -> None:
        """Adds the shards of a PG to the OSDs that hold them."""
        data, omap = int(shard.data_bytes * allocation_ratio), shard.omap_bytes
        own, objects = data + omap, shard.objects
        bytes_of, objects_of = self.own_bytes, self.objects
        is_uneven = bool(self._factors.osds) or shard.pool in self._positions
        for position, osd in enumerate(shard.acting):
            if osd in bytes_of:
                bytes_of[osd] += (
                    self._part(data, omap, shard.pool, position, osd) if is_uneven else own)
                objects_of[osd] += objects
                if measured:
                    self.explained_bytes[osd] += int(shard.objects * measured)

    def _part(self, data: int, omap: int, pool: int, position: int, osd: int) -> int:
        """Bytes of the shard at one position, of a PG whose mean shard has `data` and `omap`; these
        may be below 0, and are rounded alike."""
        ratios, drive = self._positions.get(pool, ()), self._factors.drives.get(osd, 1.0)
        ratio = self._factors.of_shard(pool, osd) * (
            ratios[position] if position < len(ratios) else 1.0)
        return int(data * ratio + omap * drive)

    def omap_estimates(self, allocated: Mapping[int, int]) -> Dict[int, OmapEstimate]:
        """Pool id → estimate. `allocated`: pool id → raw bytes by the pool's statistics."""
        return {pool: self._pools[pool].omap.estimate(count) if pool in self._pools
                else OmapEstimate() for pool, count in allocated.items()}

    def allocation_ratios(self, allocated: Mapping[int, int],
                          left: Mapping[int, int]) -> Dict[int, Tuple[float, float, float]]:
        """Pool id → bytes allocated per logical byte, at least, as it seems, and at most.
        `allocated`: pool id → raw bytes, the sum over the OSDs that have reported, so that only
        their shards count; `left`: bytes that may be in these and that no PG holds any more. Nor is
        it known how much of what is being copied is there, by backfill or by log recovery."""
        ratios: Dict[int, Tuple[float, float, float]] = {}
        for pool, count in allocated.items():
            sums = self._pools.get(pool)
            if sums is None:
                continue
            mean = sums.mean(pool)
            silent = sums.silent_shards * mean.data_bytes if mean is not None else 0
            logical = sums.logical_bytes + _PARTS * silent
            if logical > 0:
                least = max(1, count - left.get(pool, 0))
                ratios[pool] = (_PARTS * least / (logical + sums.coming_bytes),
                                _PARTS * count / logical,
                                _PARTS * count / max(1, logical - sums.lacking_bytes))
        return ratios

    def means(self, pools: Collection[int]) -> Dict[int, ShardInput]:
        """Pool id → its mean PG; pools without any that was reported are left out."""
        found: Dict[int, ShardInput] = {}
        for pool in pools:
            sums = self._pools.get(pool)
            mean = sums.mean(pool) if sums is not None else None
            if mean is not None:
                found[pool] = mean
        return found
