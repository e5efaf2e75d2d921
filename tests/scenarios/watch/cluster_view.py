"""What the simulated cluster itself knows, apart from what it reports to the mgr."""
from __future__ import annotations

from typing import Dict, Iterable, Set, Tuple

from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.cluster import Cluster
from mgr_stub.cluster.pg import Pg
from mgr_stub.cluster.usage import NOTHING, ShardBytes
from mgr_stub.crush.hashes import NONE

from ..rules.under_way import UnderWay, changes

_FILL_MARGIN = 0.02
#: Of what shards take more, what is measured at least: what comes and goes meanwhile hides some.
_MEASURED = 0.75
Pairs = Set[Tuple[str, int]]   # (pgid, OSD)


def object_copies(cluster: Cluster) -> int:
    """All object copies that the pools ask for."""
    return sum(pg.num_objects * cluster.size_of(pg) for pg in cluster.pgs.values())


def misplaced_copies(cluster: Cluster, pgids: Iterable[str]) -> int:
    return sum(pg_reports.misplaced_of(cluster, cluster.pgs[pgid])
               for pgid in pgids if pgid in cluster.pgs)


def coming(cluster: Cluster, pg: Pg) -> Dict[int, int]:
    """OSD → bytes of the PG that its up set wants there and that are not there yet."""
    landed = {transfer.target: transfer.accounted for transfer in pg.transfers.values()}
    up, held = cluster.map.up.get(pg.pgid, ()), pg.held
    if pg.erasure:
        wanted = {osd: place for place, osd in enumerate(up)
                  if osd != NONE and held[place:place + 1] != (osd,)}
    else:
        wanted = {osd: 0 for osd in up if osd not in held}
    return {osd: max(0, taken(cluster, pg, osd, place, pg.shard)
                     - taken(cluster, pg, osd, place, landed.get(osd, NOTHING)))
            for osd, place in wanted.items()}


def taken(cluster: Cluster, pg: Pg, osd: int, place: int, shard: ShardBytes) -> int:
    """Bytes that a shard, or a part of it, takes on an OSD."""
    ratios = cluster.shard_ratios
    return ratios.allocated(pg.pool_id, osd, ratios.stored(pg.pool_id, place, shard)).total


def peaks(cluster: Cluster, ours: UnderWay) -> Dict[int, int]:
    """OSD → bytes once all that is on its way there has come and nothing has left. Our moves bring
    what their pools are known to take more where they arrive, less what a measurement may miss."""
    found = {osd: usage.used for osd, usage in cluster.usage.items()}
    for pg in cluster.unclean.values():
        for osd, more in coming(cluster, pg).items():
            found[osd] = found.get(osd, 0) + more
    for move in ours.moves.values():
        here = coming(cluster, move.pg) if move.entry.returncode is None else move.gains
        for osd in move.gains:
            place = move.up_after.index(osd) if move.pg.erasure and osd in move.up_after else 0
            found[osd] = found.get(osd, 0) + (
                0 if osd in here else taken(cluster, move.pg, osd, place, move.pg.shard)) + int(
                    _MEASURED * ours.swelling.get(move.pg.pool_id, 0.0) * move.pg.shard.data)
    return found


def transit(cluster: Cluster, ours: UnderWay) -> Tuple[Pairs, Pairs]:
    """The shards on their way (to an OSD, from an OSD) that acting sets show, and our own.

    What others have set in motion shows once the PG has peered.
    """
    coming_in: Pairs = set()
    going_out: Pairs = set()
    for pg in cluster.unclean.values():
        gains, losses = changes(cluster.map.acting(pg.pgid), cluster.map.up.get(pg.pgid, ()),
                                pg.erasure)
        coming_in.update((pg.pgid, osd) for osd in gains)
        going_out.update((pg.pgid, osd) for osd in losses)
    for pgid, move in ours.moves.items():
        # where CRUSH has overtaken a move, its shard stays after all
        wanted = move.up_after if move.entry.returncode is None else cluster.map.up.get(pgid, ())
        coming_in.update((pgid, osd) for osd in move.gains if osd in wanted)
        going_out.update((pgid, osd) for osd in move.losses if osd not in wanted)
    return coming_in, going_out


def fill_limit(cluster: Cluster) -> float:
    """The utilization that no OSD may pass by the module's doing, with default options."""
    return cluster.map.ratio("backfillfull_ratio") - _FILL_MARGIN


def may_take(cluster: Cluster, osd: int) -> bool:
    entry = cluster.map.osds.get(osd)
    return entry is not None and bool(entry["up"]) and float(entry["weight"]) > 0.0
