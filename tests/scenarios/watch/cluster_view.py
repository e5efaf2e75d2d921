"""What the simulated cluster itself knows, apart from what it reports to the mgr."""
from __future__ import annotations

import json
from typing import Any, Dict, FrozenSet, Iterable, Iterator, Sequence, Set, Tuple

from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.cluster import Cluster
from mgr_stub.cluster.pg import Pg
from mgr_stub.cluster.usage import NOTHING, ShardBytes
from mgr_stub.console.session import Session
from mgr_stub.crush.hashes import NONE
from mgr_stub.osdmap import upmap
from mgr_stub.osdmap.upmap import Items
from mgr_stub.simulation.reports import Reports

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
    up, found = cluster.map.up.get(pg.pgid, ()), {}
    for osd, place in misfits(pg, up, pg.held).items():
        whole = taken(cluster, pg, osd, place, pg.shard)
        found[osd] = max(0, whole - taken(cluster, pg, osd, place, landed.get(osd, NOTHING)))
    return found


def all_coming(cluster: Cluster) -> Dict[Tuple[str, int], int]:
    """(pgid, OSD) → bytes that are not there yet."""
    return {(pg.pgid, osd): left for pg in cluster.unclean.values()
            for osd, left in coming(cluster, pg).items()}


def misfits(pg: Pg, osds: Sequence[int], others: Sequence[int]) -> Dict[int, int]:
    """OSD → place of those that the others are not, or not there where places count."""
    if not pg.erasure:
        return {osd: 0 for osd in osds if osd not in others}
    return {osd: place for place, osd in enumerate(osds)
            if osd != NONE and others[place:place + 1] != (osd,)}


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
        pg = move.pg
        here = coming(cluster, pg) if move.entry.returncode is None else move.gains
        swelling = int(_MEASURED * ours.swelling.get(pg.pool_id, 0.0) * pg.shard.data)
        for osd in move.gains:
            place = place_in(pg, move.up_after, osd)
            found[osd] = found.get(osd, 0) + swelling
            if osd not in here:
                found[osd] += taken(cluster, pg, osd, place, pg.shard)
    return found


def place_in(pg: Pg, osds: Sequence[int], osd: int) -> int:
    """Where places count; else 0."""
    if pg.erasure and osd in osds:
        return osds.index(osd)
    return 0


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


def reported_levels(reports: Reports) -> Dict[int, float]:
    """OSD → utilization as the mgr has been told."""
    found: Dict[int, float] = {}
    for record in reports.get("osd_stats")["osd_stats"]:
        total, free = record["statfs"]["total"], record["statfs"]["available"]
        if total:
            found[record["osd"]] = (total - free) / total
    return found


def pool_states(reports: Reports) -> Iterator[Tuple[int, Set[str], int]]:
    """Pool, words of a state, and how many of its PGs have been told to be in it."""
    for pool in reports.get("pg_status")["pgs_by_pool_state"]:
        for entry in pool["pg_state_counts"]:
            yield pool["pool_id"], set(entry["state_name"].split("+")), int(entry["count"])


def fill_limit(cluster: Cluster) -> float:
    """The utilization that no OSD may pass by the module's doing, with default options."""
    return cluster.map.ratio("backfillfull_ratio") - _FILL_MARGIN


def may_take(cluster: Cluster, osd: int) -> bool:
    return is_in(cluster, osd) and cluster.map.is_up(osd)


def is_in(cluster: Cluster, osd: int) -> bool:
    return cluster.map.reweight(osd) > 0.0


def down(cluster: Cluster) -> Set[int]:
    """OSDs that are in and down."""
    return {osd for osd in cluster.map.osds
            if is_in(cluster, osd) and not cluster.map.is_up(osd)}


def class_of(cluster: Cluster, osd: int) -> str:
    return cluster.crush.classes.get(osd) or "none"


def words_of(cluster: Cluster, pg: Pg) -> Set[str]:
    """The state of a PG."""
    return set(pg_reports.state_of(cluster, pg).split("+"))


def kept(cluster: Cluster, pg: Pg, items: Items) -> Items:
    """What the monitor would keep of them."""
    pool = cluster.map.pools[pg.pool_id]
    return upmap.clean(cluster.crush, int(pool["crush_rule"]), int(pool["size"]), pg.raw, items,
                       cluster.map.reweight)


# -- of a run -------------------------------------------------------------------------------------

def is_away(session: Session) -> bool:
    """Is there no module that could answer, or one whose calls are counted?"""
    process = session.mgr.process
    return session.module is None or process.is_dead or process.counts_calls


def drains(session: Session) -> Any:
    """What an operator wants emptied, as it is stored for the next mgr."""
    return json.loads(session.mgr.store.get("drains") or "{}")


def drained(session: Session) -> FrozenSet[int]:
    """OSDs that are to be emptied."""
    by_name: Dict[str, Sequence[int]] = drains(session).get("osds", {})
    return frozenset().union(*by_name.values())
