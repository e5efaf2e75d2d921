"""What the size model needs of every PG, with what is unknown estimated and named.

An OSD that has not reported makes its PGs unknown, not empty: they count as their pool's mean, and
are not moved.
"""
from __future__ import annotations

from typing import Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence

from . import reasons
from .model import Pool
from .omap import NO_OMAP, OmapFit, is_unmeasured
from .paced import paced
from .reading import PgRecord, Reading
from .sizes import ShardInput

_PGS_A_PIECE = 200   # between two pauses: about a millisecond

#: Of a PG that the mgr's statistics do not have at all.
NO_RECORD = PgRecord(0, 0, 0, "", 1.0, 0)


class ShardInputs(NamedTuple):
    """`of`: pgid → input; `unknown`: pgid → why its size cannot be told."""

    of: Dict[str, ShardInput]
    unknown: Dict[str, str]


def shard_inputs(reading: Reading, pools: Mapping[int, Pool], reported: FrozenSet[int],
                 acting_of: Mapping[str, Sequence[int]],
                 pause: Callable[[], object]) -> ShardInputs:
    """PGs of pools that are gone are left out. `reported`: OSDs that have statistics."""
    unknown: Dict[str, str] = {}
    fit = OmapFit(reading.pool_stats)
    for pgid, up in paced(reading.up.items(), _PGS_A_PIECE, pause):
        pool_id = int(pgid.split(".", 1)[0])
        record = reading.records.get(pgid, NO_RECORD)
        if record.is_unknown:
            unknown[pgid] = reasons.NO_STATISTICS
        elif fit.wants(pool_id):
            acting = acting_of.get(pgid) or up
            fit.add(pool_id, record, sum([osd in reported for osd in acting]))
    omap = fit.fit()
    means = _means(reading, unknown, pause) if unknown else {}
    inputs: Dict[str, ShardInput] = {}
    for pgid, up in paced(reading.up.items(), _PGS_A_PIECE, pause):
        pool = pools.get(int(pgid.split(".", 1)[0]))
        if pool is None:
            unknown.pop(pgid, None)
            continue
        record = reading.records.get(pgid, NO_RECORD)
        if pgid in unknown:
            record = means.get(pool.id, record)
        elif not pool.erasure and is_unmeasured(record, omap.get(pool.id, NO_OMAP)):
            unknown[pgid] = reasons.OMAP_UNMEASURED
        inputs[pgid] = ShardInput(
            pool.id, acting_of.get(pgid) or tuple(up), -(-record.num_bytes // pool.data_shards),
            omap.get(pool.id, NO_OMAP).bytes_of(record), record.num_objects)
    return ShardInputs(inputs, unknown)


def _means(reading: Reading, unknown: Mapping[str, str],
           pause: Callable[[], object]) -> Dict[int, PgRecord]:
    """Pool → the mean of its PGs that have been reported; none where there is none."""
    known: Dict[int, List[int]] = {}
    for pgid, record in paced(reading.records.items(), _PGS_A_PIECE, pause):
        if pgid not in unknown and pgid in reading.up:
            sums = known.setdefault(int(pgid.split(".", 1)[0]), [0, 0, 0, 0, 0])
            sums[0] += 1
            sums[1] += max(0, record.num_bytes)
            sums[2] += max(0, record.num_objects)
            sums[3] += max(0, record.omap_bytes)
            sums[4] += record.omap_objects
    return {pool: PgRecord(size // pgs, objects // pgs, omap // pgs, "", 1.0, 0,
                           max(-1, with_omap // pgs))
            for pool, (pgs, size, objects, omap, with_omap) in known.items()}
