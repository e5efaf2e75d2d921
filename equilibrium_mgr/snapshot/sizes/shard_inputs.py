"""The inputs of the size model for every PG. Unknown figures are estimated and named.

An OSD that has not reported makes its PGs unknown, not empty: they count as the mean of their pool,
and are not moved.
"""
from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import immovable_reasons as reasons
from ..model import Pool
from ..reading import PgRecord
from .omap import OmapEstimate, is_unmeasured
from .shard_sizes import ShardInput

#: The record of a PG that the mgr's statistics do not have.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)


class InputRules(NamedTuple):
    """How records become inputs of the size model."""

    pools: Mapping[int, Pool]
    omap: Mapping[int, OmapEstimate]   # pool id → estimate, where the pool's statistics have omap
    omap_is_late: bool                 # pools' statistics have omap late, see omap.py
    means: Mapping[int, ShardInput]    # pool id → mean of its PGs, where unknown ones need it

    def known(self, pool: Pool, record: PgRecord,
              acting: Sequence[int]) -> Tuple[ShardInput, Optional[reasons.Immovable]]:
        """(input of a PG that OSDs have reported, why its size is not known)."""
        omap_bytes, unknown = record.omap_bytes, None
        estimate = self.omap.get(pool.id)
        if estimate is not None:
            omap_bytes = estimate.bytes_of(record)
            if estimate.is_unknown(record) or (
                    self.omap_is_late and is_unmeasured(record, self.omap_is_late)):
                unknown = reasons.OMAP_UNMEASURED
        elif not pool.erasure and is_unmeasured(record, self.omap_is_late):
            unknown = reasons.OMAP_UNMEASURED
        return ShardInput(pool.id, acting, -(-record.num_bytes // pool.data_shards), omap_bytes,
                          record.num_objects), unknown

    def of(self, pool: Pool, record: PgRecord,
           acting: Sequence[int]) -> Tuple[ShardInput, Optional[reasons.Immovable]]:
        """(input of any PG, why its size is not known; None where it is)."""
        if not record.is_unknown:
            return self.known(pool, record, acting)
        mean = self.means.get(pool.id)
        if mean is None:
            mean = ShardInput(pool.id, (), 0, 0, 0)
        return mean._replace(acting=acting), reasons.NO_STATISTICS
