"""The inputs of the size model for every PG. Unknown figures are estimated and named.

An OSD that has not reported makes its PGs unknown, not empty: they count as the mean of their pool,
and are not moved.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Sequence

from ...runtime.checkpoints import Checkpoint, with_checkpoints
from ...runtime.row_store import Rows
from .. import immovable_reasons as reasons
from ..model import Pool, pool_of
from ..reading import PgRecord, Reading
from .omap import OmapEstimate, OmapFit, is_reported_late, is_unmeasured
from .shard_sizes import ShardInput

_PGS_A_PIECE = 200   # between two checkpoints: about a millisecond

#: The record of a PG that the mgr's statistics do not have.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)


class ShardInputs(NamedTuple):
    """`inputs`: pgid → input; `unknown`: pgid → why its size is not known."""

    inputs: Rows[ShardInput]
    unknown: Dict[str, str]


def shard_inputs(reading: Reading, pools: Mapping[int, Pool], reported: FrozenSet[int],
                 acting_of: Mapping[str, Sequence[int]], checkpoint: Checkpoint,
                 uncompacted: Mapping[int, int] = {}) -> ShardInputs:
    """The inputs of all PGs, without those of pools that are gone.

    `reported`: OSDs that have statistics. `acting_of`: pgid → acting set where it may differ from
    the up set. `uncompacted`: pool id → omap bytes in its statistics that no PG holds any more.
    """
    omap = _omap_estimates(reading, reported, acting_of, checkpoint, uncompacted)
    reported_late = is_reported_late(reading.osd_map)
    inputs: Rows[ShardInput] = Rows(ShardInput)
    unknown: Dict[str, str] = {}
    for pgid, up in with_checkpoints(reading.up.items(), _PGS_A_PIECE, checkpoint):
        pool = pools.get(pool_of(pgid))
        if pool is None:
            continue
        record = reading.records.get(pgid, NO_RECORD)
        if record.is_unknown:
            unknown[pgid] = reasons.NO_STATISTICS
            continue
        omap_bytes, estimate = record.omap_bytes, omap.get(pool.id) if omap else None
        if estimate is not None:
            omap_bytes = estimate.bytes_of(record)
            if estimate.is_unknown(record) or (
                    reported_late and is_unmeasured(record, reported_late)):
                unknown[pgid] = reasons.OMAP_UNMEASURED
        elif not pool.erasure and is_unmeasured(record, reported_late):
            unknown[pgid] = reasons.OMAP_UNMEASURED
        inputs[pgid] = ShardInput(
            pool.id, acting_of.get(pgid) or tuple(up), -(-record.num_bytes // pool.data_shards),
            omap_bytes, record.num_objects)
    if reasons.NO_STATISTICS in unknown.values():
        means = _means(inputs, unknown, checkpoint)
        for pgid in [p for p, reason in unknown.items() if reason == reasons.NO_STATISTICS]:
            pool_id = pool_of(pgid)
            inputs[pgid] = means.get(pool_id, ShardInput(pool_id, (), 0, 0, 0))._replace(
                acting=acting_of.get(pgid) or tuple(reading.up[pgid]))
    return ShardInputs(inputs, unknown)


def _omap_estimates(reading: Reading, reported: FrozenSet[int],
                    acting_of: Mapping[str, Sequence[int]], checkpoint: Checkpoint,
                    uncompacted: Mapping[int, int]) -> Dict[int, OmapEstimate]:
    """Pool id → estimate of its omap, where its own statistics have it."""
    fit = OmapFit(reading.pool_stats, uncompacted)
    up_sets = reading.up.items() if fit.pools else ()
    for pgid, up in with_checkpoints(up_sets, _PGS_A_PIECE, checkpoint):
        pool_id = pool_of(pgid)
        record = reading.records.get(pgid)
        if pool_id in fit.pools and record is not None:
            acting = acting_of.get(pgid) or up
            fit.add(pool_id, record, sum([osd in reported for osd in acting]))
    return fit.fit()


def _means(inputs: Mapping[str, ShardInput], unknown: Mapping[str, str],
           checkpoint: Checkpoint) -> Dict[int, ShardInput]:
    """Pool id → mean of its PGs that were reported; pools without any are left out."""
    wanted = {pool_of(pgid) for pgid in unknown}
    known: Dict[int, List[int]] = {}
    for shard in with_checkpoints(inputs.values(), _PGS_A_PIECE, checkpoint):
        if shard.pool in wanted:
            sums = known.setdefault(shard.pool, [0, 0, 0, 0])
            sums[0] += 1
            sums[1] += max(0, shard.data_bytes)
            sums[2] += max(0, shard.omap_bytes)
            sums[3] += max(0, shard.objects)
    return {pool: ShardInput(pool, (), data // pgs, omap // pgs, objects // pgs)
            for pool, (pgs, data, omap, objects) in known.items()}
