"""Where each PG's shards are while they move: the one home of what is in flight.

The acting set does not tell. Where a PG's log reaches back to its first object, Ceph fills a new
OSD by log recovery: it is missing from the acting set, or in it from the beginning, and the OSD
that loses the shard is in neither set although it keeps its copy until the PG is clean. So the up
set of the time when a PG was last seen clean is remembered, and until the PG is clean again, OSDs
of that set lose what OSDs of the present one gain.
"""
from __future__ import annotations

import math
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from .model import UpmapItems
from .reading import PgRecord, Reading

#: A PG that has to move has peered after so long, and has a pg_temp.
_SHOWN_SECONDS = 20.0
#: A PG publishes its state within seconds of peering: after this long a report counts that was late
#: already when its up set changed, and after the longer time any report does.
_PEERED_SECONDS = 120.0
_BELIEVE_AFTER_SECONDS = 600.0

Osds = Tuple[int, ...]


class Place(NamedTuple):
    """Where one PG's shards are."""

    home: Osds            # OSDs that hold them; the up set itself where nothing moves
    short_of_copies: bool    # copies are missing that nobody moves
    explained: bool       # Ceph calls it degraded or undersized, and it is only on its way
    left: Osds = ()       # where it was until it arrived, since the last reading


class _Away(NamedTuple):
    """A PG that has not been seen clean since."""

    home: Osds          # where it was last clean
    clean_epoch: int    # osdmap epoch of the last reading that saw it there
    epoch: int          # of the first reading with its present up set; 0: every report knows it
    since: float        # when that was read, seconds since the epoch
    degraded: bool      # copies have been missing since then
    old_epoch: int = 0          # osdmap epoch of the last reading with another up set
    old_at: float = math.inf    # when that was read, seconds since the epoch
    believed: bool = False      # it has been taken for arrived


class PgContext(NamedTuple):
    """What the tracker is told of one PG."""

    pgid: str
    up: Osds
    acting: Osds
    items: UpmapItems
    record: PgRecord
    size: int            # shards that the pool wants
    positional: bool     # erasure-coded: a shard belongs to its position


class InFlightTracker:
    """Remembers where PGs were last clean. `begin`, `place` for every PG, then `end`."""

    def __init__(self) -> None:
        self._up: Mapping[str, Sequence[int]] = {}   # of the last reading
        self._epoch = -1
        self._read_at = 0.0   # when that was, seconds since the epoch
        self._map_age = 0.0   # seconds since the osdmap was changed, as far as known
        self._unsettled = 0.0
        self._same_up = False   # since the last reading no up set can have changed
        self._away: Dict[str, _Away] = {}
        self._now: Reading = _NOTHING
        self._new_epoch = 0
        self._still_away: Dict[str, _Away] = {}
        self._alive: FrozenSet[int] = frozenset()
        self._up_from: Dict[int, int] = {}
        self._all_up = True
        self._calm: Dict[str, bool] = {}   # states: no copies are missing

    def begin(self, reading: Reading) -> None:
        """Takes in which OSDs are up. What an earlier, failed round noted is forgotten."""
        osds = reading.osd_map["osds"]
        alive = {osd["osd"] for osd in osds if osd.get("up", "up" in osd.get("state", ()))}
        self._alive, self._all_up = frozenset(alive), len(alive) == len(osds)
        self._up_from = {osd["osd"]: osd.get("up_from", 0) for osd in osds}
        self._now, self._new_epoch = reading, reading.osd_map["epoch"]
        self._same_up = reading.up is self._up and self._new_epoch == self._epoch
        self._still_away = {}
        changed_at = reading.changed_at
        self._map_age = reading.taken_at - changed_at if changed_at is not None else 0.0
        self._unsettled = 0.0

    @property
    def unsettled_seconds(self) -> float:
        """Seconds until acting sets tell of every PG whether it has to move; 0 where they do."""
        return self._unsettled

    def end(self) -> None:
        """All PGs have been placed: the next reading is compared with this one."""
        self._up, self._epoch, self._read_at = self._now.up, self._new_epoch, self._now.taken_at
        self._away, self._still_away = self._still_away, {}
        self._now = _NOTHING

    def rests(self, pgid: str, up: Osds, state: str) -> bool:
        """Is there nothing to tell of a PG whose acting set is its up set? Nearly always."""
        calm = self._calm.get(state)
        if calm is None:   # there are few different ones
            calm = self._calm[state] = not _is_lacking(state)
        if not calm or pgid in self._away or not (self._all_up or NO_OSD not in up):
            return False
        if self._same_up:
            return True
        last = self._up.get(pgid)
        return last is None or tuple(last) == up

    def place(self, pg: PgContext) -> Place:
        """Where one PG's shards are, and whether it is short of copies."""
        up, lacking = pg.up, _is_lacking(pg.record.state)
        known, last = self._away.get(pg.pgid), self._up.get(pg.pgid)
        stays = last is not None and tuple(last) == up
        away = self._completed(pg, self._follow(pg, known, last, stays))
        self._note_unsettled(pg, away)
        if self._is_clean(pg, away):
            if pg.record.reported_epoch < away.epoch and self._is_recent(away):
                # it may yet show that it moves
                self._still_away[pg.pgid] = away._replace(believed=True)
            return Place(up, False, False, () if away.believed else away.home)
        home = _holders(pg, away.home, self._alive)
        heard = self._is_heard(pg, away)
        degraded = away.degraded or self._has_lost(away) or (lacking and heard and home == up)
        if home != up or degraded or not heard:
            self._still_away[pg.pgid] = away._replace(degraded=degraded)
        return self._judged(pg, away._replace(home=home, degraded=degraded), lacking, heard)

    def _follow(self, pg: PgContext, away: Optional[_Away], last: Optional[Sequence[int]],
                stays: bool) -> _Away:
        """The memory of a PG that moves, or begins to."""
        if away is not None:
            return away if stays else away._replace(
                epoch=self._new_epoch, since=self._now.taken_at, old_epoch=self._epoch,
                old_at=self._read_at)
        home = tuple(last) if last is not None else _guessed_home(pg, self._alive)
        if stays and pg.acting != pg.up and not _same(pg.up, pg.acting, pg.positional):
            home = _guessed_home(pg, self._alive)
        if last is None:
            return _Away(home, self._new_epoch, 0, self._now.taken_at, False)
        return _Away(home, self._epoch, 0 if stays else self._new_epoch, self._now.taken_at, False,
                     self._epoch, self._read_at)

    def _completed(self, pg: PgContext, away: _Away) -> _Away:
        """A home that was guessed while copies seemed to be missing, with who holds them: once Ceph
        counts none as degraded, an OSD that the PG is to leave has what the new one lacks."""
        state = pg.record.state   # as long as it peers it says nothing of missing copies
        if "degraded" in state or not _is_told(state) or _whole(away.home, pg.size):
            return away
        home = _guessed_home(pg, self._alive)
        return away._replace(home=home) if _whole(home, pg.size) else away

    def _is_clean(self, pg: PgContext, away: _Away) -> bool:
        """Does a report that knows the present up set call it clean there?"""
        return ("clean" in pg.record.state and not self._has_hole(pg)
                and _same(pg.up, pg.acting, pg.positional) and self._is_heard(pg, away))

    def _is_heard(self, pg: PgContext, away: _Away) -> bool:
        """Has the PG reported since it knows its present up set?

        It may have moved and arrived before the first reading of that set, when nobody looked. Once
        the set has stood for longer than a PG needs to peer, one that moves shows it by its acting
        set; where nobody has looked for long, the set has most likely stood for so long.
        """
        reported, waited = pg.record.reported_epoch, self._now.taken_at - away.since
        return (reported >= away.epoch
                or (reported > away.old_epoch and (
                    self._seconds_known(away) > _SHOWN_SECONDS
                    or self._now.taken_at - away.old_at > _PEERED_SECONDS))
                or (reported > away.clean_epoch and waited > _PEERED_SECONDS)
                or not 0.0 <= waited <= _BELIEVE_AFTER_SECONDS)

    def _is_recent(self, away: _Away) -> bool:
        """Was its present up set first read a short while ago?"""
        return 0.0 <= self._now.taken_at - away.since <= _PEERED_SECONDS

    def _note_unsettled(self, pg: PgContext, away: _Away) -> None:
        """Is it not yet known whether the PG has to move? Neither by a report nor by its acting
        set, so soon after its up set has changed."""
        if pg.record.reported_epoch < away.epoch and _same(pg.up, pg.acting, pg.positional):
            seconds = _SHOWN_SECONDS - self._seconds_known(away)
            # no more than that where the clock was set back
            self._unsettled = max(self._unsettled, min(seconds, _SHOWN_SECONDS))

    def _seconds_known(self, away: _Away) -> float:
        """Seconds that a PG has had its present up set, at least."""
        return max(self._map_age, self._now.taken_at - away.since)

    def _has_lost(self, away: _Away) -> bool:
        """Is an OSD that held a copy down, or has it been since the PG was clean?"""
        return any(osd not in self._alive or self._up_from[osd] > away.clean_epoch
                   for osd in away.home if osd != NO_OSD)

    def _has_hole(self, pg: PgContext) -> bool:
        """Has a shard no OSD, most likely because one is down?"""
        return not self._all_up and (len(pg.up) < pg.size or NO_OSD in pg.up)

    def _judged(self, pg: PgContext, away: _Away, lacking: bool, heard: bool) -> Place:
        up, home = pg.up, away.home
        if _same(home, up, pg.positional):
            home = up
        whole = _whole(home, pg.size)
        moves = home is not up and (whole or "degraded" not in pg.record.state)
        lost = away.degraded and (lacking or not whole)
        short = self._has_hole(pg) or lost or (lacking and heard and not moves)
        return Place(home, short, lacking and not short)


def _is_lacking(state: str) -> bool:
    """Does Ceph call the PG short of copies, or of OSDs in its acting set?"""
    return "degraded" in state or "undersized" in state


def _is_told(state: str) -> bool:
    """Has the PG peered, so that its state tells of copies that are missing?"""
    return "active" in state and "stale" not in state


def _whole(home: Osds, size: int) -> bool:
    """Does every shard have an OSD that holds it?"""
    return len(home) >= size and NO_OSD not in home


def _same(one: Osds, other: Osds, positional: bool) -> bool:
    return one == other or (not positional and len(one) == len(other) and set(one) == set(other))


def _guessed_home(pg: PgContext, alive: FrozenSet[int]) -> Osds:
    """Of a PG never seen clean: who serves it, and for a new OSD that does not serve yet the one
    that its upmap item names, which keeps its copy until the PG is clean.

    An item of long ago names an OSD that holds nothing: while copies are missing, or are filled by
    backfill, which an OSD that leaves would serve, the new OSD has most likely lost its own.
    """
    state = pg.record.state
    source = {} if "degraded" in state or "backfill" in state or not _is_told(state) else {
        target: osd for osd, target in pg.items
        if osd in alive and osd not in pg.up and osd not in pg.acting}
    if pg.positional:
        if len(pg.acting) != len(pg.up):
            return pg.acting
        return tuple([source.get(u, NO_OSD) if a == NO_OSD else a
                      for u, a in zip(pg.up, pg.acting)])
    missing = [source[osd] for osd in pg.up if osd not in pg.acting and osd in source]
    return pg.acting + tuple(missing[:max(0, pg.size - len(pg.acting))])


def _holders(pg: PgContext, home: Osds, alive: FrozenSet[int]) -> Osds:
    """The OSDs that hold the PG's shards, as far as they are up: those where it was last clean,
    and those that serve it. An OSD that is backfilled is taken for empty."""
    filled = "backfill" in pg.record.state
    if pg.positional and len(home) == len(pg.up) == len(pg.acting):
        return tuple([_holder(h, a, u, filled, alive)
                      for h, a, u in zip(home, pg.acting, pg.up)])
    up, acting = pg.up, pg.acting
    found: List[int] = [osd for osd in home if osd in alive
                        and not (filled and osd in up and osd not in acting)]
    found += [osd for osd in acting if osd not in home and osd not in up and osd in alive]
    return up if _same(tuple(found), up, pg.positional) else tuple(found)


def _holder(home: int, acting: int, up: int, filled: bool, alive: FrozenSet[int]) -> int:
    """Of one position."""
    if acting not in (home, up, NO_OSD) and acting in alive:
        return acting
    if home not in alive or (home == up != acting and filled):
        return acting if acting in alive and acting != up else NO_OSD
    return home


_NOTHING = Reading(0.0, {}, {}, {}, {}, (), (), {}, {})
