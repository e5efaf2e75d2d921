"""Which OSDs have the data of a PG, and what has to be copied for a new up set."""

from __future__ import annotations

from typing import Dict, Optional, Set

from ..osdmap.upmap import NONE, Mapping
from .cluster import Cluster
from .pg import Flow, Pg, Place
from .usage import NOTHING, ShardBytes

#: Less than this many bytes to go counts as nothing.
DONE = 0.5


def settle(cluster: Cluster, pg: Pg) -> None:
    """Brings the statistics of the OSDs up to what has been copied of a PG."""
    for flow in pg.flows.values():
        here = flow.shard if flow.remaining <= DONE else flow.shard.part(flow.copied)
        if here is not flow.landed:
            cluster.store(pg.pool_id, flow.target, here.minus(flow.landed))
            flow.landed = here


def retarget(cluster: Cluster, pg: Pg) -> None:
    """Makes the copies that the present up set needs.

    Copies under way that it still wants go on, others are thrown away, shards of OSDs that have
    come back are taken up again.
    """
    settle(cluster, pg)
    before = cluster.members(pg)
    recovered = pg.recovered()
    up = cluster.map.up.get(pg.pgid, ())
    _take_back(cluster, pg, up)
    old, pg.flows = pg.flows, {}
    flows: Dict[Place, Flow] = {}
    waits = bool(cluster.blockers_of(pg))
    for place, source in pg.wanted_flows(up):
        kept = old.pop(place, None) or _from_behind(pg, place, source)
        flow = kept or _new_flow(cluster, pg, place, source)
        flow.fresh = kept is None
        flow.source = NONE if waits else _reader(cluster, pg, up, source)
        if flow.source != NONE:
            flows[place] = flow
        else:  # nobody is left to copy from
            _drop_landed(cluster, pg, flow)
    for flow in old.values():
        _drop_landed(cluster, pg, flow)
    _purge_behind(cluster, pg)
    pg.flows = flows
    pg.recovered_bytes += recovered - pg.recovered()  # the counter never falls
    pg.backfilling = pg.toofull = False
    pg.queued = cluster.clock.now
    if not flows:
        hold_mapped(cluster, pg, set())
    count_members(cluster, before, cluster.members(pg))


def finish(cluster: Cluster, pg: Pg) -> None:
    """All copies have arrived: the sources drop their shards, acting becomes up."""
    settle(cluster, pg)
    before = cluster.members(pg)
    arrived = set(pg.flows)
    copied = {flow.target for flow in pg.flows.values() if not flow.by_log}
    leader = cluster.map.acting_primary(pg.pgid)
    if leader in pg.later_logs or pg.log_entries > cluster.most_log_entries:
        pg.later_logs |= copied
    pg.recovered_bytes += pg.num_bytes
    pg.flows = {}
    pg.backfilling = False
    more = int(cluster.swelling.get(pg.pool_id, 0.0) * pg.shard.data)
    for _, osd in arrived if more else ():
        cluster.store(pg.pool_id, osd, ShardBytes(more, 0, 0))
    hold_mapped(cluster, pg, arrived)
    pg.later_logs &= {*pg.held, *(osd for _, osd in pg.behind)}
    count_members(cluster, before, cluster.members(pg))


def hold_mapped(cluster: Cluster, pg: Pg, arrived: Set[Place]) -> None:
    """Orders the holders as the PG is mapped; shards that nobody needs any more go.

    As in Ceph they stay, and may serve, as long as the PG is not clean.
    """
    _hold_mapped(cluster, pg, arrived)
    acting = cluster.wanted_acting(pg)
    if len(acting) < cluster.size_of(pg) or NONE in acting:
        return
    if not pg.erasure:
        for osd in set(pg.held) - {*acting, *cluster.mapped(pg)}:
            _set_aside(pg, (0, osd))
            pg.held = tuple(member for member in pg.held if member != osd)
    for place in [place for place in pg.spare if cluster.map.is_up(place[1])]:
        if place in pg.behind:
            cluster.release_shard(pg.pool_id, place[1], pg.behind.pop(place))
        pg.spare -= {place}


def _hold_mapped(cluster: Cluster, pg: Pg, arrived: Set[Place]) -> None:
    up = cluster.map.up.get(pg.pgid, ())
    whole = len(up) == cluster.size_of(pg) and NONE not in up
    mapped = up if whole else cluster.mapped(pg)
    if pg.erasure:
        held = list(pg.held) + [NONE] * (len(mapped) - len(pg.held))
        for place, osd in enumerate(mapped):
            if (place, osd) in arrived and held[place] != osd:
                if held[place] != NONE:
                    _set_aside(pg, (place, held[place]))
                held[place] = osd
        pg.held = tuple(held)
        return
    mine = [osd for osd in mapped if osd in pg.held or (0, osd) in arrived]
    others = [osd for osd in pg.held if osd not in mine]
    if whole and len(mine) == len(up):
        for osd in others:
            _set_aside(pg, (0, osd))
        others = []
    pg.held = tuple(mine + others)


def missed_writes(cluster: Cluster, pg: Pg) -> None:
    """Clients are about to write: holders that are down fall behind."""
    before = cluster.members(pg)
    pg.spare = frozenset()
    for place, osd in enumerate(pg.held):
        if osd != NONE and not cluster.map.is_up(osd):
            pg.behind[(place if pg.erasure else 0, osd)] = pg.shard
    if pg.erasure:
        pg.held = tuple(NONE if place in pg.behind else place[1] for place in enumerate(pg.held))
    else:
        pg.held = tuple(osd for osd in pg.held if (0, osd) not in pg.behind)
    count_members(cluster, before, cluster.members(pg))


def forget_osd(cluster: Cluster, pg: Pg, osd: int) -> None:
    """The OSD's data is gone for good; it is down, so nothing is being copied to it."""
    before = cluster.members(pg)
    if osd in pg.held:
        cluster.store(pg.pool_id, osd, NOTHING.minus(pg.shard))
        pg.held = (tuple(NONE if member == osd else member for member in pg.held) if pg.erasure
                   else tuple(member for member in pg.held if member != osd))
    for place in [place for place in pg.behind if place[1] == osd]:
        cluster.store(pg.pool_id, osd, NOTHING.minus(pg.behind.pop(place)))
    count_members(cluster, before, cluster.members(pg))


def abandon_copies(cluster: Cluster, pg: Pg) -> None:
    """Throws away what has been copied so far."""
    settle(cluster, pg)
    before = cluster.members(pg)
    for flow in pg.flows.values():
        _drop_landed(cluster, pg, flow)
    pg.flows = {}
    pg.backfilling = pg.toofull = False
    count_members(cluster, before, cluster.members(pg))


def count_members(cluster: Cluster, before: Set[int], after: Set[int]) -> None:
    """Keeps num_pgs of the OSDs."""
    for osd in before - after:
        if osd in cluster.usage:
            cluster.usage[osd].count_pg(-1)
    for osd in after - before:
        if osd in cluster.usage:
            cluster.usage[osd].count_pg(1)


def _reader(cluster: Cluster, pg: Pg, up: Mapping, wanted: int) -> int:
    """The OSD that a shard is read from: the wanted one, else the first that serves the PG."""
    if wanted != NONE and cluster.map.is_up(wanted):
        return wanted
    alive = [osd for osd in pg.holders() if cluster.map.is_up(osd)]
    if len(alive) < cluster.map.data_chunks(pg.pool_id):
        return NONE
    return next((osd for osd in alive if osd in up), alive[0])


def _new_flow(cluster: Cluster, pg: Pg, place: Place, source: int) -> Flow:
    flow = Flow(source, place[1], pg.shard)
    flow.by_log = flow.whole_log = cluster.log_recovery and pg.writes is not None
    return flow


def _from_behind(pg: Pg, place: Place, source: int) -> Optional[Flow]:
    """The copy to an OSD that has come back with an old shard of its own."""
    there = pg.behind.pop(place, None)
    if there is None:
        return None
    flow = Flow(source, place[1], pg.shard)
    flow.copied = float(min(there.total, pg.shard.total))
    flow.landed = there
    flow.by_log = True
    return flow


def _purge_behind(cluster: Cluster, pg: Pg) -> None:
    """Old shards on OSDs that are up again and not wanted go."""
    for place in [place for place in pg.behind
                  if cluster.map.is_up(place[1]) and place not in pg.spare]:
        cluster.store(pg.pool_id, place[1], NOTHING.minus(pg.behind.pop(place)))


def _set_aside(pg: Pg, place: Place) -> None:
    """An OSD need not hold its shard any more; it has it until the PG is clean."""
    pg.behind[place] = pg.shard
    pg.spare |= {place}


def _take_back(cluster: Cluster, pg: Pg, up: Mapping) -> None:
    """Whole copies that had been set aside are held again where they are wanted or missed."""
    is_up = cluster.map.is_up
    pg.spare &= pg.behind.keys()
    for place in sorted(place for place in pg.spare if is_up(place[1])):
        position, osd = place
        if not pg.erasure:
            alive = sum(1 for member in pg.held if is_up(member))
            if osd not in up and alive >= cluster.size_of(pg):
                continue
            pg.held += (osd,)
        else:
            held = list(pg.held) + [NONE] * (position + 1 - len(pg.held))
            here = held[position]
            if here != NONE and is_up(here) and up[position:position + 1] != (osd,):
                continue
            if here != NONE:
                _set_aside(pg, (position, here))
            held[position] = osd
            pg.held = tuple(held)
        cluster.store(pg.pool_id, osd, pg.shard.minus(pg.behind.pop(place)))
        pg.spare -= {place}


def _drop_landed(cluster: Cluster, pg: Pg, flow: Flow) -> None:
    cluster.store(pg.pool_id, flow.target, NOTHING.minus(flow.landed))
