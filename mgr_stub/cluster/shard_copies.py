"""The OSDs that hold the data of a PG, and the transfers for a new up set."""

from __future__ import annotations

from typing import Dict, Optional, Set

from ..crush.hashes import NONE
from ..osdmap.upmap import Mapping, with_holes
from . import peering
from .cluster import Cluster
from .pg import Pg, Place, Transfer
from .usage import NOTHING, ShardBytes

#: A transfer with no more than this many bytes left is complete.
DONE_BYTES = 0.5


def account_copied(cluster: Cluster, pg: Pg) -> None:
    """Makes the statistics of the OSDs show the bytes copied of a PG."""
    for place, transfer in pg.transfers.items():
        here = transfer.shard
        if transfer.remaining > DONE_BYTES:
            here = transfer.shard.part(transfer.copied)
        if here is not transfer.accounted:
            cluster.store(pg.pool_id, transfer.target, here.minus(transfer.accounted), place[0])
            transfer.accounted = here


def retarget(cluster: Cluster, pg: Pg) -> None:
    """Sets up the transfers that the present up set needs.

    Running transfers that it still needs go on, others are discarded, and shards on OSDs that have
    come back are completed.
    """
    account_copied(cluster, pg)
    before = cluster.members(pg)
    recovered = pg.recovered()
    up = cluster.map.up.get(pg.pgid, ())
    _reuse_strays(cluster, pg, up)
    old = pg.transfers
    pg.transfers = {}
    transfers: Dict[Place, Transfer] = {}
    is_blocked = bool(peering.blockers_of(cluster, pg))
    for place, source in pg.wanted_transfers(up):
        kept = old.pop(place, None) or _resumed_transfer(cluster, pg, place, source)
        transfer = kept or _new_transfer(cluster, pg, place, source)
        transfer.is_new = kept is None
        transfer.source = NONE
        if not is_blocked:
            transfer.source = _reader(cluster, pg, up, source)
        if transfer.source != NONE:
            transfers[place] = transfer
        else:  # no OSD is left to copy from
            _drop_partial(cluster, pg, place, transfer)
    for place, transfer in old.items():
        if cluster.map.exists(place[1]) and not cluster.map.is_up(place[1]):
            # pg_info_t::last_backfill, and the list of missing objects, stay on its disk
            pg.strays[place] = pg.partial_strays[place] = transfer.accounted
            pg.left_at.pop(place, None)
        else:
            _drop_partial(cluster, pg, place, transfer)
    _purge_strays(cluster, pg)
    pg.transfers = transfers
    asked = {transfer.target for transfer in transfers.values() if transfer.is_new}
    asked |= pg.withheld_by.intersection(transfer.target for transfer in transfers.values())
    pg.withheld_by = frozenset([osd for osd in asked if cluster.withholds(osd)])
    pg.recovered_bytes += recovered - pg.recovered()  # the counter never falls
    pg.backfilling = pg.toofull = False
    pg.queued_at = cluster.clock.now
    if not transfers:
        update_holders(cluster, pg, set())
    update_num_pgs(cluster, before, cluster.members(pg))


def finish(cluster: Cluster, pg: Pg) -> None:
    """Ends the complete transfers of a PG: the sources drop their shards, acting becomes up."""
    account_copied(cluster, pg)
    before = cluster.members(pg)
    arrived = set(pg.transfers)
    copied = {transfer.target for transfer in pg.transfers.values() if not transfer.by_log}
    primary = cluster.map.acting_primary(pg.pgid)
    if primary in pg.short_logs or pg.log_entries > cluster.max_log_entries:
        pg.short_logs |= copied
    pg.recovered_bytes += pg.num_bytes
    pg.transfers, pg.withheld_by = {}, frozenset()
    pg.backfilling = False
    more = int(cluster.copy_overhead.get(pg.pool_id, 0.0) * pg.shard.data)
    if more:
        for position, osd in arrived:
            cluster.store(pg.pool_id, osd, ShardBytes(more, 0, 0), position)
    update_holders(cluster, pg, arrived)
    pg.short_logs &= {*pg.held, *(osd for _, osd in pg.strays)}
    update_num_pgs(cluster, before, cluster.members(pg))


def update_holders(cluster: Cluster, pg: Pg, arrived: Set[Place]) -> None:
    """Orders the holders like the PG's mapping and removes shards that are not needed any more.

    As in Ceph such shards stay, and may serve, until the PG is clean.
    """
    _hold_mapped(cluster, pg, arrived)
    acting = peering.wanted_acting(cluster, pg)
    if len(acting) < cluster.size_of(pg) or NONE in acting:
        return
    if not pg.erasure:
        for osd in set(pg.held) - {*acting, *cluster.mapped_osds(pg)}:
            pg.set_aside((0, osd))
            pg.held = tuple(member for member in pg.held if member != osd)
    for place in pg.complete_strays():
        if cluster.map.is_up(place[1]):
            cluster.release_shard(pg.pool_id, place[1], pg.strays.pop(place), place[0])


def _hold_mapped(cluster: Cluster, pg: Pg, arrived: Set[Place]) -> None:
    up = cluster.map.up.get(pg.pgid, ())
    whole = len(up) == cluster.size_of(pg) and NONE not in up
    mapped = up
    if not whole:
        mapped = cluster.mapped_osds(pg)
    if pg.erasure:
        held = list(pg.held) + [NONE] * (len(mapped) - len(pg.held))
        for place, osd in enumerate(mapped):
            if (place, osd) in arrived and held[place] != osd:
                if held[place] != NONE:
                    pg.set_aside((place, held[place]))
                held[place] = osd
        pg.held = tuple(held)
        return
    mine = [osd for osd in mapped if osd in pg.held or (0, osd) in arrived]
    others = [osd for osd in pg.held if osd not in mine]
    if whole and len(mine) == len(up):
        for osd in others:
            pg.set_aside((0, osd))
        others = []
    pg.held = tuple(mine + others)


def mark_missed_writes(cluster: Cluster, pg: Pg) -> None:
    """Makes strays of the holders that are down; called before clients write."""
    before = cluster.members(pg)
    for place, osd in enumerate(pg.held):
        if osd != NONE and not cluster.map.is_up(osd):
            pg.set_aside(pg.place_of(place, osd))
    if pg.erasure:
        pg.held = tuple(NONE if place in pg.strays else place[1] for place in enumerate(pg.held))
    else:
        pg.held = tuple(osd for osd in pg.held if (0, osd) not in pg.strays)
    update_num_pgs(cluster, before, cluster.members(pg))


def lose_osd_data(cluster: Cluster, pg: Pg, osd: int) -> None:
    """Removes the data of a dead OSD; it is down, so it is no target of a transfer."""
    before = cluster.members(pg)
    if osd in pg.held:
        cluster.store(pg.pool_id, osd, NOTHING.minus(pg.shard), pg.held.index(osd))
        if pg.erasure:
            pg.held = with_holes(pg.held, (osd,))
        else:
            pg.held = tuple(member for member in pg.held if member != osd)
    for place in [place for place in pg.strays if place[1] == osd]:
        cluster.store(pg.pool_id, osd, NOTHING.minus(pg.strays.pop(place)), place[0])
    update_num_pgs(cluster, before, cluster.members(pg))


def discard_copies(cluster: Cluster, pg: Pg) -> None:
    """Discards all bytes copied so far."""
    account_copied(cluster, pg)
    before = cluster.members(pg)
    for place, transfer in pg.transfers.items():
        _drop_partial(cluster, pg, place, transfer)
    pg.transfers = {}
    pg.backfilling = pg.toofull = False
    update_num_pgs(cluster, before, cluster.members(pg))


def update_num_pgs(cluster: Cluster, before: Set[int], after: Set[int]) -> None:
    """Updates num_pgs of the OSDs whose PG members changed."""
    for osd in before - after:
        if osd in cluster.usage:
            cluster.usage[osd].count_pg(-1)
    for osd in after - before:
        if osd in cluster.usage:
            cluster.usage[osd].count_pg(1)


def _reader(cluster: Cluster, pg: Pg, up: Mapping, wanted: int) -> int:
    """Returns the OSD that a shard is read from: the wanted one if up, else one of `up`, else a
    holder.
    """
    if wanted != NONE and cluster.map.is_up(wanted):
        return wanted
    alive = [osd for osd in pg.holders() if cluster.map.is_up(osd)]
    if len(alive) < cluster.map.data_chunks(pg.pool_id):
        return NONE
    return next((osd for osd in alive if osd in up), alive[0])


def _new_transfer(cluster: Cluster, pg: Pg, place: Place, source: int) -> Transfer:
    transfer = Transfer(source, place[1], pg.shard)
    transfer.by_log = transfer.by_whole_log = cluster.log_recovery and pg.writes is not None
    return transfer


def _resumed_transfer(cluster: Cluster, pg: Pg, place: Place, source: int) -> Optional[Transfer]:
    """Returns the transfer to an OSD that has come back with an old shard of its own.

    The OSD gets the writes that it missed: by the log if that reaches back so far, else by a
    backfill. A backfill compares all objects and copies the different ones.
    """
    there = pg.strays.pop(place, None)
    if there is None:
        return None
    transfer = _new_transfer(cluster, pg, place, source)
    transfer.accounted = there
    transfer.copied = float(min(there.total, pg.shard.total))
    if pg.partial_strays.pop(place, None) is there:
        return transfer
    writes, count = (now - then for now, then in zip(
        pg.written, pg.left_at.get(place, pg.written)))
    changed = min(1.0, count / max(1, pg.num_bytes))
    transfer.copied = min(transfer.copied, pg.shard.total * (1.0 - changed))
    transfer.accounted = pg.shard.part(transfer.copied)
    cluster.store(pg.pool_id, place[1], transfer.accounted.minus(there), place[0])
    transfer.by_log, transfer.by_whole_log = writes < cluster.log_length(), False
    return transfer


def _purge_strays(cluster: Cluster, pg: Pg) -> None:
    """Removes old shards on OSDs that are up again and not wanted."""
    for place in pg.strays.keys() - pg.complete_strays():
        if not cluster.map.is_up(place[1]):
            continue
        cluster.store(pg.pool_id, place[1], NOTHING.minus(pg.strays.pop(place)), place[0])


def _reuse_strays(cluster: Cluster, pg: Pg, up: Mapping) -> None:
    """Makes complete strays holders again if they are wanted or a shard is missing."""
    is_up = cluster.map.is_up
    for position, osd in pg.complete_strays():
        if not is_up(osd):
            continue
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
                pg.set_aside((position, here))
            held[position] = osd
            pg.held = tuple(held)
        cluster.store(pg.pool_id, osd, pg.shard.minus(pg.strays.pop((position, osd))), position)


def _drop_partial(cluster: Cluster, pg: Pg, place: Place, transfer: Transfer) -> None:
    """Removes the copied part of a transfer from its target."""
    cluster.store(pg.pool_id, transfer.target, NOTHING.minus(transfer.accounted), place[0])
