"""The OSDs that hold each PG's shards while they move: no other file tells what is in flight.

The acting set alone does not tell it. Where a PG's log reaches back to its first object, Ceph fills
a new OSD by log recovery: that OSD is missing from the acting set, or in it from the beginning, and
the OSD that loses the shard is in neither set although it keeps its copy until the PG is clean.
Therefore the up set in which a PG was last seen clean is remembered. Until the PG is clean again,
OSDs of that set lose what OSDs of the present up set gain.
"""
from __future__ import annotations

import math
from typing import Dict, FrozenSet, List, NamedTuple, Tuple

from ..crush.placement import NO_OSD
from .model import PgRecord, Reading, UpmapItems, is_same_placement
from .pg_states import ACTIVE, BACKFILL, CLEAN, DEGRADED, STALE, UNDERSIZED


#: A PG that has to move has peered after this many seconds, and has a pg_temp.
_PG_TEMP_SECONDS = 20.0
#: A PG publishes its state within seconds of peering. After this many seconds a report counts that
#: was late already when its up set changed, and after the longer time any report does.
_PEERED_SECONDS = 120.0
_ANY_REPORT_SECONDS = 600.0

Osds = Tuple[int, ...]


class PgLocation(NamedTuple):
    """Where one PG's shards are."""

    holders: Osds           # OSDs that hold them; the up set itself (`is`) where nothing moves
    lacks_copies: bool      # copies are missing that nobody moves
    only_moving: bool       # Ceph calls it degraded or undersized, but all copies exist
    doubtful: bool = False  # of its holders only those that serve it are certain


class _UncleanPg(NamedTuple):
    """A PG that has not been seen clean since its up set changed."""

    holders: Osds          # OSDs that held its shards when it was last clean
    last_clean_epoch: int  # osdmap epoch of the last reading that saw it clean
    up_set_epoch: int      # of the first reading with its present up set; 0: every report knows it
    up_set_read_at: float  # when that was read, seconds since the epoch
    degraded: bool         # copies have been missing since then
    previous_epoch: int = 0              # osdmap epoch of the last reading with another up set
    previous_read_at: float = math.inf   # when that was read, seconds since the epoch
    doubtful: bool = False   # it has been sent on since, or never was seen clean


class PgContext(NamedTuple):
    """The tracker's input for one PG."""

    pgid: str
    up: Osds
    acting: Osds
    items: UpmapItems
    record: PgRecord
    size: int            # shards that the pool wants
    positional: bool     # erasure-coded: a shard belongs to its position


class InFlightTracker:
    """Remembers where PGs were last clean.

    For each reading: `begin`, then `is_at_rest` or `locate` for every PG, then `end`.
    """

    def __init__(self) -> None:
        self._last = self._reading = _NOTHING
        self._map_age = 0.0   # seconds since the osdmap was changed, as far as known
        #: seconds until acting sets show for every PG whether it has to move; 0 where they do
        self.unsettled_seconds = 0.0
        self._settled_at = 0.0   # when what was remapped before the first reading has peered
        self._unclean: Dict[str, _UncleanPg] = {}
        self._still_unclean: Dict[str, _UncleanPg] = {}
        self._alive: FrozenSet[int] = frozenset()
        self._up_from: Dict[int, int] = {}
        #: OSDs that have got another disk since the last reading: they hold nothing
        self._replaced: FrozenSet[int] = frozenset()
        self._all_up = True

    def begin(self, reading: Reading) -> None:
        """Starts a reading. Forgets what a round that failed before its `end` has recorded."""
        osds = reading.osd_map["osds"]
        self._alive = frozenset([osd["osd"] for osd in osds
                                 if osd.get("up", "up" in osd.get("state", ()))])
        self._all_up = len(self._alive) == len(osds)
        self._up_from = {osd["osd"]: osd.get("up_from", 0) for osd in osds}
        disks = {osd["osd"]: osd.get("uuid") for osd in self._last.osd_map.get("osds", ())}
        self._replaced = frozenset([osd["osd"] for osd in osds if disks
                                    and osd.get("uuid") != disks.get(osd["osd"])])
        if self._replaced:
            self._unclean = {pgid: unclean._replace(holders=self._without_replaced(unclean.holders))
                             for pgid, unclean in self._unclean.items()}
        self._reading, self._still_unclean = reading, {}
        changed_at = reading.changed_at
        self._map_age = reading.taken_at - changed_at if changed_at is not None else 0.0
        if self._last is _NOTHING and changed_at is not None:   # no earlier up sets to compare with
            self._settled_at = changed_at + _PG_TEMP_SECONDS
        self.unsettled_seconds = min(
            max(0.0, self._settled_at - reading.taken_at), _PG_TEMP_SECONDS)

    def end(self) -> None:
        """Ends a reading: the next one is compared with it."""
        self._last, self._unclean = self._reading, self._still_unclean

    def is_at_rest(self, pgid: str, up: Osds, state: str) -> bool:
        """True where a PG whose acting set is its up set needs no `locate`: nearly always."""
        if _lacks_copies(state) or pgid in self._unclean or not (
                self._all_up or NO_OSD not in up):
            return False
        last = self._last.up.get(pgid)
        return last is None or tuple(last) == up

    def locate(self, pg: PgContext) -> PgLocation:
        """Where one PG's shards are, and whether it lacks copies."""
        up, state, reported = pg.up, pg.record.state, pg.record.reported_epoch
        unclean = self._with_all_holders(pg, self._remembered(pg))
        has_reported = self._has_reported(pg, unclean)
        # a shard has no OSD, most likely because one is down
        has_hole = not self._all_up and (len(up) < pg.size or NO_OSD in up)
        is_served = is_same_placement(up, pg.acting, pg.positional)
        if reported < unclean.up_set_epoch and is_served:
            # neither a report nor the acting set shows yet whether the PG has to move; no longer
            # than that where the clock was set back
            self.unsettled_seconds = max(self.unsettled_seconds, min(
                _PG_TEMP_SECONDS - self._seconds_known(unclean), _PG_TEMP_SECONDS))
        if CLEAN in state and not has_hole and is_served and has_reported:
            waited = self._reading.taken_at - unclean.up_set_read_at
            if reported < unclean.up_set_epoch and 0.0 <= waited <= _PEERED_SECONDS:
                self._still_unclean[pg.pgid] = unclean   # a later report may show that it moves
            return PgLocation(up, False, False)
        lacks_copies = _lacks_copies(state)
        holders = _present_holders(pg, unclean.holders, self._alive)
        # an OSD that held a copy is down, or was since the PG was clean
        has_lost = any(osd not in self._alive or self._up_from[osd] > unclean.last_clean_epoch
                       for osd in unclean.holders if osd != NO_OSD)
        degraded = unclean.degraded or has_lost or (lacks_copies and has_reported and holders == up)
        if holders != up or degraded or not has_reported:
            self._still_unclean[pg.pgid] = unclean._replace(degraded=degraded)
        if is_same_placement(holders, up, pg.positional):
            holders = up
        whole = _is_whole(holders, pg.size)
        moves = holders is not up and (whole or DEGRADED not in state)
        lacks = (has_hole or (degraded and (lacks_copies or not whole))
                 or (lacks_copies and has_reported and not moves))
        return PgLocation(holders, lacks, lacks_copies and not lacks, unclean.doubtful)

    def _remembered(self, pg: PgContext) -> _UncleanPg:
        """Returns the record of a PG that moves or begins to."""
        unclean, last = self._unclean.get(pg.pgid), self._last.up.get(pg.pgid)
        stays = last is not None and tuple(last) == pg.up
        epoch, read_at = self._reading.osd_map["epoch"], self._reading.taken_at
        before, before_at = self._last.osd_map["epoch"], self._last.taken_at
        if unclean is not None:
            return unclean if stays else unclean._replace(   # it may have arrived in between
                up_set_epoch=epoch, up_set_read_at=read_at, previous_epoch=before,
                previous_read_at=before_at, doubtful=True)
        guessed = last is None or (
            stays and pg.acting != pg.up and not is_same_placement(pg.up, pg.acting, pg.positional))
        holders = (_guessed_holders(pg, self._alive, self._reading.sent)
                   if guessed or last is None else self._without_replaced(tuple(last)))
        if last is None:
            return _UncleanPg(holders, epoch, 0, read_at, False, doubtful=guessed)
        return _UncleanPg(holders, before, 0 if stays else epoch, read_at, False, before, before_at,
                          doubtful=guessed)

    def _without_replaced(self, osds: Osds) -> Osds:
        return tuple([NO_OSD if osd in self._replaced else osd for osd in osds])

    def _with_all_holders(self, pg: PgContext, unclean: _UncleanPg) -> _UncleanPg:
        """Guesses the holders again where they were guessed while copies seemed to be missing.

        Once Ceph counts no copy as degraded, an OSD that the PG is to leave has the shard that the
        new OSD lacks.
        """
        state = pg.record.state
        if DEGRADED in state or not _has_peered(state) or _is_whole(unclean.holders, pg.size):
            return unclean
        holders = _guessed_holders(pg, self._alive, self._reading.sent)
        return unclean if not _is_whole(holders, pg.size) else unclean._replace(
            holders=holders, doubtful=True)

    def _has_reported(self, pg: PgContext, unclean: _UncleanPg) -> bool:
        """True where the PG's report is newer than its present up set.

        A PG may have moved and arrived before the first reading of that up set. Once the up set has
        stood for longer than a PG needs to peer, a PG that moves shows it by its acting set. Where
        the last reading was long ago, the up set has most likely stood for that long.
        """
        reported = pg.record.reported_epoch
        waited = self._reading.taken_at - unclean.up_set_read_at
        if pg.up and pg.up[0] not in unclean.holders and reported <= unclean.previous_epoch:
            return False   # a new primary tells within seconds, unless it withholds the PG
        return (reported >= unclean.up_set_epoch
                or (reported > unclean.previous_epoch and (
                    self._seconds_known(unclean) > _PG_TEMP_SECONDS
                    or self._reading.taken_at - unclean.previous_read_at > _PEERED_SECONDS))
                or (reported > unclean.last_clean_epoch and waited > _PEERED_SECONDS)
                or not 0.0 <= waited <= _ANY_REPORT_SECONDS)

    def _seconds_known(self, unclean: _UncleanPg) -> float:
        """Seconds for which a PG has had its present up set, at least."""
        return max(self._map_age, self._reading.taken_at - unclean.up_set_read_at)


def _lacks_copies(state: str) -> bool:
    """True where Ceph calls the PG short of copies, or of OSDs in its acting set."""
    return DEGRADED in state or UNDERSIZED in state


def _has_peered(state: str) -> bool:
    """True where the PG has peered: before that its state does not tell of missing copies."""
    return ACTIVE in state and STALE not in state


def _is_whole(holders: Osds, size: int) -> bool:
    """True where every shard has an OSD that holds it."""
    return len(holders) >= size and NO_OSD not in holders


def _guessed_holders(pg: PgContext, alive: FrozenSet[int], sent: FrozenSet[str]) -> Osds:
    """The holders of a PG that was never seen clean.

    These are the OSDs that serve it and, in place of each new OSD that does not serve yet, the one
    that its upmap item names, which keeps its copy until the PG is clean. An item of long ago names
    an OSD that holds nothing: while copies are missing, or are filled by backfill, which an OSD
    that leaves would serve, the new OSD has most likely lost its own: but for PGs that were `sent`
    by the last mgr.
    """
    state = pg.record.state
    source = {} if pg.pgid not in sent and (
        DEGRADED in state or BACKFILL in state or not _has_peered(state)) else {
        target: osd for osd, target in pg.items
        if osd in alive and osd not in pg.up and osd not in pg.acting}
    if pg.positional:
        if len(pg.acting) != len(pg.up):
            return pg.acting
        return tuple([source.get(u, NO_OSD) if a == NO_OSD else a
                      for u, a in zip(pg.up, pg.acting)])
    missing = [source[osd] for osd in pg.up if osd not in pg.acting and osd in source]
    return pg.acting + tuple(missing[:max(0, pg.size - len(pg.acting))])


def _present_holders(pg: PgContext, holders: Osds, alive: FrozenSet[int]) -> Osds:
    """The OSDs that hold the PG's shards and are up: those where it was last clean, and those that
    serve it. An OSD that is backfilled counts as empty."""
    filled = BACKFILL in pg.record.state
    if pg.positional and len(holders) == len(pg.up) == len(pg.acting):
        return tuple([_present_holder(h, a, u, filled, alive)
                      for h, a, u in zip(holders, pg.acting, pg.up)])
    up, acting = pg.up, pg.acting
    found: List[int] = [osd for osd in holders if osd in alive
                        and not (filled and osd in up and osd not in acting)]
    found += [osd for osd in acting if osd not in holders and osd not in up and osd in alive]
    return up if is_same_placement(tuple(found), up, pg.positional) else tuple(found)


def _present_holder(holder: int, acting: int, up: int, filled: bool, alive: FrozenSet[int]) -> int:
    """The OSD that holds one position, or NO_OSD."""
    if acting not in (holder, up, NO_OSD) and acting in alive:
        return acting
    if holder not in alive or (holder == up != acting and filled):
        return acting if acting in alive and acting != up else NO_OSD
    return holder


_NOTHING = Reading(0.0, {"epoch": -1}, {}, {}, {}, (), (), {})   # before the first reading
