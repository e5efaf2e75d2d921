"""Counters of client operations as OSDs report them, by PG and by pool.

Seen on 16.2.15 and 20.2.4 (tests/ceph/conformance/test_operations.py):

- Each operation that modifies an object adds one to the PG's version, and its parts to `num_write`.
- The reads since a PG's last write are its primary's own knowledge. `num_read` falls when another
  OSD leads, and rises again if the first one returns before the next write. Some PGs did not do so,
  on both releases; here each does.
- A split divides the counters equally among a PG and its children, which take over its version.
  The scrub that follows it, or a merge, sets the counters to 0, because scrubs count no operations.

Not simulated: a part of the reads is also lost when a member that does not lead goes away. Clients
do not wait for inactive PGs. Children do not report later than their parent, and all PGs are
scrubbed at once after a split.

A load costs nothing while nobody reads the counters: they are its integral up to the reading.
"""
from __future__ import annotations

from operator import add, neg
from typing import Any, Dict, Tuple

from .cluster import Cluster
from .load import Counts, Load
from .pg import OPERATIONS, Pg

_NOTHING: Counts = (0, 0, 0, 0, 0)


def counts_of(cluster: Cluster, pg: Pg) -> Counts:
    """Returns the counters of a PG now."""
    load = cluster.loads.get(pg.pool_id)
    if load is None:
        return pg.operations
    return _sum(pg.operations, _part(cluster, load, pg))


def _part(cluster: Cluster, load: Load, pg: Pg) -> Counts:
    """Returns what a load has done to a PG so far."""
    return tuple(load.share(count, pg.order[1]) for count in load.done(cluster.clock.now))


def _sum(one: Counts, other: Counts) -> Counts:
    return tuple(map(add, one, other))


def of_pool(cluster: Cluster, pool_id: int, at_start: Dict[str, Any]) -> Dict[str, int]:
    """Returns the pool's counters in `stat_sum` now; `at_start`: its `stat_sum` in the file."""
    counts = cluster.operations.get(pool_id, _NOTHING)
    load = cluster.loads.get(pool_id)
    if load is not None:
        counts = _sum(counts, load.done(cluster.clock.now))
    return {name: int(at_start.get(name, 0)) + count for name, count in zip(OPERATIONS, counts)}


def count(cluster: Cluster, pg: Pg, counts: Counts) -> None:
    """Adds operations to the counters of a PG and its pool; negative ones are taken away."""
    pg.forget_reports()
    pg.operations = _sum(pg.operations, counts)
    of_pool_so_far = cluster.operations.get(pg.pool_id, _NOTHING)
    cluster.operations[pg.pool_id] = _sum(of_pool_so_far, counts)


def count_writes(cluster: Cluster, pg: Pg, writes: int, kib: int) -> None:
    """Counts writes of clients to a PG at this moment."""
    count(cluster, pg, (0, 0, writes, kib, writes))
    pg.unsaved_reads = -_reads(cluster, pg)[0]


# -- loads ----------------------------------------------------------------------------------------

def set_load(cluster: Cluster, pool_id: int, load: Load) -> None:
    """Sets what clients do to a pool from now on."""
    settle(cluster, pool_id)
    cluster.loads.pop(pool_id, None)
    if load.reads or load.writes:
        cluster.loads[pool_id] = _from_now(cluster, pool_id, load)


def settle(cluster: Cluster, pool_id: int) -> None:
    """Adds to each PG what the pool's load has done; the load goes on with the pool's pg_num."""
    load = cluster.loads.get(pool_id)
    if load is None:
        return
    for pg in cluster.pgs_of(pool_id):
        pg.unsaved_reads = _reads(cluster, pg)[1]
        count(cluster, pg, _part(cluster, load, pg))
    cluster.loads[pool_id] = _from_now(cluster, pool_id, load)


def _from_now(cluster: Cluster, pool_id: int, load: Load) -> Load:
    pg_num = int(cluster.map.pools[pool_id]["pg_num"])
    return load._replace(since=cluster.clock.now, pg_num=pg_num)


# -- primaries ------------------------------------------------------------------------------------

def note_peered(cluster: Cluster, pg: Pg) -> None:
    """Changes the counters of a PG that has peered as its new primary, split or merge requires."""
    if pg.has_invalid_counters:
        pg.has_invalid_counters = False
        *counts, _ = counts_of(cluster, pg)
        count(cluster, pg, (*map(neg, counts), 0))
        pg.left_reads = {}
        pg.unsaved_reads = -_reads(cluster, pg)[0]
    primary = cluster.map.acting_primary(pg.pgid)
    if primary != pg.primary:
        _change_primary(cluster, pg, primary)
    acting = cluster.map.acting(pg.pgid)
    pg.left_reads = {osd: left for osd, left in pg.left_reads.items() if osd in acting}


def _change_primary(cluster: Cluster, pg: Pg, primary: int) -> None:
    """Replaces the reads since the PG's last write by those that the new primary knows."""
    reads, unsaved = _reads(cluster, pg)
    read, read_kb, *_, version = counts_of(cluster, pg)
    left_at, known = pg.left_reads.get(primary, (version, 0))
    if left_at != version:
        known = 0
    pg.left_reads[pg.primary] = version, unsaved
    pg.primary = primary
    pg.unsaved_reads = known - reads
    more = known - unsaved
    more_kb = more * read_kb // max(1, read)
    count(cluster, pg, (more, more_kb, 0, 0, 0))


def _reads(cluster: Cluster, pg: Pg) -> Tuple[int, int]:
    """Returns the reads of a PG by its pool's load, and its reads since its last write."""
    load = cluster.loads.get(pg.pool_id)
    if load is None:
        return 0, pg.unsaved_reads
    done = load.done(cluster.clock.now)
    position = pg.order[1]
    reads = load.share(done[0], position)
    unsaved = pg.unsaved_reads + reads
    written = load.share(done[-1], position)
    if written:
        reads_then = done[0] * load.whole_at(written, position) // done[-1]
        unsaved = min(unsaved, reads - load.share(reads_then, position))
    return reads, unsaved
