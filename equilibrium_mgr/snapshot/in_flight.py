"""Finds the OSDs that hold each PG's shards while they move: the snapshot's shards in flight.

The acting set alone does not show it. If a PG's log reaches back to its first object, Ceph fills a
new OSD by log recovery: that OSD is missing from the acting set, or in it from the beginning. The
OSD that loses the shard is in neither set, although it keeps its copy until the PG is clean.
Therefore the tracker remembers the up set in which a PG was last clean. Until the PG is clean
again, OSDs of that set lose the shards that OSDs of the present up set gain.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Dict, FrozenSet, Mapping, NamedTuple, Tuple

from ..crush.placement import NO_OSD
from .model import Osd, PgRecord, Reading, UpmapItems, is_same_placement, pool_of
from .pg_states import ACTIVE, BACKFILL, CLEAN, DEGRADED, STALE, UNDERSIZED
from .upmap_items import changed_pairs


#: A PG that has to move has peered after this many seconds, and has a pg_temp.
_PG_TEMP_SECONDS = 20.0
#: A PG publishes its state within seconds of peering. After this many seconds a report counts if it
#: is newer than the last reading in which the PG was clean, and after the longer time any report.
PEERED_SECONDS = 120.0
_ANY_REPORT_SECONDS = 600.0

Osds = Tuple[int, ...]


class _UncleanPg(NamedTuple):
    """A PG that no report has shown clean since its up set changed."""

    holders: Osds          # OSDs that held its shards when it was last clean
    last_clean_epoch: int  # osdmap epoch of the last reading in which it was clean
    up_set_epoch: int      # of the first reading with its present up set; 0: every report knows it
    up_set_read_at: float  # when that was read, seconds since the epoch
    degraded: bool         # copies have been missing since then
    previous_epoch: int = 0              # osdmap epoch of the last reading with another up set
    previous_read_at: float = math.inf   # when that was read, seconds since the epoch
    doubtful: bool = False   # it has been moved again since, or never was seen clean


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
    """Remembers which OSDs had each PG when it was last clean.

    For each reading: `begin`, then `is_at_rest` or `locate` for every PG, then `end`.
    """

    # of the present reading: `begin` sets them
    _reading: Reading
    _map_age: float   # seconds since the osdmap was changed, as far as known
    #: seconds until acting sets show for every PG whether it has to move; 0 if they do already
    unsettled_seconds: float
    #: pool id → PGs of this reading that lack copies
    lacking: Counter[int]
    #: pool id → PGs that Ceph calls degraded or undersized, but all of whose copies exist
    only_moving: Counter[int]
    _still_unclean: Dict[str, _UncleanPg]
    _alive: FrozenSet[int]
    _all_up: bool
    _up_from: Dict[int, int]
    _disks: Dict[int, str]   # OSD → uuid of its disk
    #: OSDs that have another disk since the last reading: they hold nothing
    _replaced: FrozenSet[int]

    _settled_at = 0.0   # when PGs remapped before the first reading have peered, since the epoch

    def __init__(self) -> None:
        self._last = _NOTHING
        self._unclean: Dict[str, _UncleanPg] = {}
        self._last_disks: Dict[int, str] = {}   # of the last reading

    def begin(self, reading: Reading, osds: Mapping[int, Osd]) -> None:
        """Starts a reading. Forgets the records of a reading that failed before its `end`."""
        self._reading = reading
        self._still_unclean = {}
        self.lacking, self.only_moving = Counter(), Counter()
        self._alive = frozenset([number for number, osd in osds.items() if osd.up])
        self._all_up = len(self._alive) == len(osds)
        self._up_from = {osd["osd"]: osd.get("up_from", 0) for osd in reading.osd_map["osds"]}
        disks = {number: osd.uuid for number, osd in osds.items()}
        self._disks = disks
        before = self._last_disks or disks
        self._replaced = frozenset([number for number, uuid in disks.items()
                                    if uuid != before.get(number, "")])
        if self._replaced:
            self._unclean = {pgid: unclean._replace(holders=self._without_replaced(unclean.holders))
                             for pgid, unclean in self._unclean.items()}
        now = reading.taken_at
        changed_at = reading.changed_at
        self._map_age = 0.0
        if changed_at is not None:
            self._map_age = now - changed_at
            if self._last is _NOTHING:   # there are no earlier up sets to compare with
                self._settled_at = changed_at + _PG_TEMP_SECONDS
        self.unsettled_seconds = min(max(0.0, self._settled_at - now), _PG_TEMP_SECONDS)

    def end(self) -> None:
        """Ends a reading: the next one is compared with it."""
        self._last = self._reading
        self._unclean = self._still_unclean
        self._last_disks = self._disks

    def is_at_rest(self, pgid: str, up: Osds, state: str) -> bool:
        """Returns True if a PG whose acting set is its up set needs no `locate`: nearly always."""
        if _lacks_copies(state) or pgid in self._unclean:
            return False
        if NO_OSD in up and not self._all_up:
            return False
        last = self._last.up.get(pgid)
        return last is None or tuple(last) == up

    def locate(self, pg: PgContext) -> Tuple[Osds, bool]:
        """Returns (OSDs that hold the shards of a PG, True if only OSDs that serve it are certain).

        If nothing moves the OSDs are the very tuple of the up set. Counts a PG that lacks copies.
        """
        up = pg.up
        state = pg.record.state
        unclean = self._with_all_holders(pg, self._remembered(pg))
        has_reported = self._has_reported(pg, unclean)
        has_old_report = pg.record.reported_epoch < unclean.up_set_epoch
        # a shard has no OSD, most likely because one is down
        has_hole = not self._all_up and (len(up) < pg.size or NO_OSD in up)
        is_served = is_same_placement(up, pg.acting, pg.positional)
        if has_old_report and is_served:
            # neither a report nor the acting set shows yet whether the PG has to move; this lasts
            # no longer if the clock was set back
            seconds = _PG_TEMP_SECONDS - self._seconds_known(unclean)
            self.unsettled_seconds = max(self.unsettled_seconds, min(seconds, _PG_TEMP_SECONDS))
        is_clean = CLEAN in state and not has_hole
        if is_clean and is_served and has_reported:
            waited = self._reading.taken_at - unclean.up_set_read_at
            if has_old_report and 0.0 <= waited <= PEERED_SECONDS:
                self._still_unclean[pg.pgid] = unclean   # a later report may show that it moves
            return up, False
        return self._locate_unclean(pg, unclean, has_reported, has_hole), unclean.doubtful

    def _locate_unclean(self, pg: PgContext, unclean: _UncleanPg, has_reported: bool,
                        has_hole: bool) -> Osds:
        """Returns the OSDs that hold the shards of a PG that may move, and counts the PG if it
        lacks copies."""
        up = pg.up
        state = pg.record.state
        holders = _present_holders(pg, unclean.holders, self._alive)
        if is_same_placement(holders, up, pg.positional):
            holders = up
        lacks_copies = _lacks_copies(state)
        degraded = unclean.degraded or self._has_lost(unclean)
        if lacks_copies and has_reported and holders is up:
            degraded = True
        if degraded or holders is not up or not has_reported:
            self._still_unclean[pg.pgid] = unclean._replace(degraded=degraded)
        is_whole = has_all_shards(holders, pg.size)
        moves = holders is not up and (is_whole or DEGRADED not in state)
        lacks = has_hole
        if degraded and (lacks_copies or not is_whole):
            lacks = True
        if lacks_copies and has_reported and not moves:
            lacks = True
        pool = pool_of(pg.pgid)
        self.lacking[pool] += lacks
        self.only_moving[pool] += lacks_copies and not lacks
        return holders

    def _has_lost(self, unclean: _UncleanPg) -> bool:
        """Returns True if an OSD that held a copy is down, or was since the PG was clean."""
        for osd in unclean.holders:
            if osd not in self._alive or self._up_from[osd] > unclean.last_clean_epoch:
                if osd != NO_OSD:
                    return True
        return False

    def _remembered(self, pg: PgContext) -> _UncleanPg:
        """Returns the record of a PG that moves or begins to."""
        previous = self._last
        unclean = self._unclean.get(pg.pgid)
        last = previous.up.get(pg.pgid)
        up = pg.up
        stays = last is not None and tuple(last) == up
        if unclean is not None and stays:
            return unclean
        reading = self._reading
        epoch = reading.osd_map["epoch"]
        read_at = reading.taken_at
        before = previous.osd_map["epoch"]
        before_at = previous.taken_at
        if unclean is not None:   # perhaps it has arrived in between
            return unclean._replace(
                up_set_epoch=epoch, up_set_read_at=read_at, previous_epoch=before,
                previous_read_at=before_at, doubtful=True)
        if last is None:
            return _UncleanPg(self._guessed_holders(pg), epoch, 0, read_at, False, doubtful=True)
        if not stays:
            return _UncleanPg(self._without_replaced(tuple(last)), before, epoch, read_at, False,
                              before, before_at)
        guessed = not is_same_placement(up, pg.acting, pg.positional)
        holders = self._guessed_holders(pg) if guessed else self._without_replaced(up)
        return _UncleanPg(holders, before, 0, read_at, False, before, before_at, guessed)

    def _without_replaced(self, osds: Osds) -> Osds:
        """Returns the OSDs, NO_OSD in place of OSDs with another disk."""
        return tuple([NO_OSD if osd in self._replaced else osd for osd in osds])

    def _with_all_holders(self, pg: PgContext, unclean: _UncleanPg) -> _UncleanPg:
        """Guesses the holders again if they were guessed while copies seemed to be missing.

        Once Ceph counts no copy as degraded, an OSD that the PG leaves has the shard that the new
        OSD lacks.
        """
        state = pg.record.state
        size = pg.size
        if DEGRADED in state or not _has_peered(state) or has_all_shards(unclean.holders, size):
            return unclean
        holders = self._guessed_holders(pg)
        if not has_all_shards(holders, size):
            return unclean
        return unclean._replace(holders=holders, doubtful=True)

    def _has_reported(self, pg: PgContext, unclean: _UncleanPg) -> bool:
        """Returns True if the PG's report counts as newer than its present up set.

        A PG can move and arrive before the first reading of that up set. A PG that still moves
        shows it by its acting set after the time that peering takes. If the last reading was long
        ago, the up set is most likely as old.
        """
        reported = pg.record.reported_epoch
        now = self._reading.taken_at
        waited = now - unclean.up_set_read_at
        is_new = reported > unclean.previous_epoch
        if pg.up and pg.up[0] not in unclean.holders and not is_new:
            return False   # a new primary reports within seconds, unless it withholds the PG
        if reported >= unclean.up_set_epoch or not 0.0 <= waited <= _ANY_REPORT_SECONDS:
            return True
        if reported > unclean.last_clean_epoch and waited > PEERED_SECONDS:
            return True
        if not is_new:
            return False
        return (self._seconds_known(unclean) > _PG_TEMP_SECONDS
                or now - unclean.previous_read_at > PEERED_SECONDS)

    def _seconds_known(self, unclean: _UncleanPg) -> float:
        """Returns for how many seconds a PG has had its present up set, at least."""
        return max(self._map_age, self._reading.taken_at - unclean.up_set_read_at)

    def _guessed_holders(self, pg: PgContext) -> Osds:
        """Returns the holders of a PG that no reading has shown clean.

        These are the OSDs that serve it. A new OSD that does not serve yet is replaced by the
        source of its upmap item, which keeps its copy until the PG is clean.

        There is no replacement if copies are missing: then the item is most likely old, and the new
        OSD has lost its copy. Nor in a backfill, because an OSD that the PG leaves would serve it.
        Exceptions are the PGs that the last mgr has `sent`: the items that it has changed are new.
        While the log fills its new OSD, that OSD may serve, too.
        """
        state = pg.record.state
        up = pg.up
        acting = pg.acting
        pairs = pg.items
        before = self._reading.sent.get(pg.pgid)
        if before is not None:
            pairs = changed_pairs(before, pairs)
        elif DEGRADED in state or BACKFILL in state or not _has_peered(state):
            pairs = ()
        left = self._alive.intersection([osd for osd, _ in pairs]).difference(up, acting)
        source = {target: osd for osd, target in pairs if osd in left}   # by the new OSD
        serving = acting
        if before is not None and BACKFILL not in state and acting != up:
            serving = tuple([source.get(osd, osd) for osd in acting])
        if not pg.positional:
            missing = tuple([source[osd] for osd in up if osd not in acting and osd in source])
            return serving + missing[:max(0, pg.size - len(acting))]
        if len(acting) != len(up):
            return acting
        return tuple([source.get(new, NO_OSD) if osd == NO_OSD else osd
                      for new, osd in zip(up, serving)])


def _lacks_copies(state: str) -> bool:
    """Returns True if Ceph calls the PG short of copies, or of OSDs in its acting set."""
    return DEGRADED in state or UNDERSIZED in state


def _has_peered(state: str) -> bool:
    """Returns True if the PG has peered: before that its state does not show missing copies."""
    return ACTIVE in state and STALE not in state


def has_all_shards(holders: Osds, size: int) -> bool:
    """Returns True if an OSD holds each shard."""
    return len(holders) >= size and NO_OSD not in holders


def _present_holders(pg: PgContext, holders: Osds, alive: FrozenSet[int]) -> Osds:
    """Returns the OSDs that are up and hold the PG's shards: those where it was last clean, and
    those that serve it. An OSD that is being backfilled counts as empty."""
    up = pg.up
    acting = pg.acting
    filled = BACKFILL in pg.record.state
    if pg.positional and len(holders) == len(up) == len(acting):
        return tuple([_present_holder(*osds, filled, alive) for osds in zip(holders, acting, up)])
    empty = set(up).difference(acting) if filled else set()
    found = [osd for osd in holders if osd in alive and osd not in empty]
    known = {*holders, *up}
    found += [osd for osd in acting if osd in alive and osd not in known]
    return tuple(found)


def _present_holder(holder: int, acting: int, up: int, filled: bool, alive: FrozenSet[int]) -> int:
    """Returns the OSD that holds one position, or NO_OSD."""
    if acting not in (holder, up, NO_OSD) and acting in alive:
        return acting
    if holder not in alive or (holder == up != acting and filled):
        if acting in alive and acting != up:
            return acting
        return NO_OSD
    return holder


_NOTHING = Reading(0.0, {"epoch": -1}, {}, {}, {}, (), (), {})   # before the first reading
