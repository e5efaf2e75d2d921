"""Pending moves: sent by us and not yet seen to arrive.

Right after an upmap is sent the acting set still equals the up set and `pg_status` reads low, so
the misplaced budget cannot rest on Ceph's count alone: what it cannot show yet is added to it.
"""
from __future__ import annotations

import math
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..snapshot import pg_states
from ..snapshot.model import Pg, SizedShards, Snapshot
from ..snapshot.osds import SILENT_SECONDS

#: Seconds after which a PG that looks settled counts as arrived although it has not reported at a
#: newer epoch.
_BELIEVE_AFTER_SECONDS = 600.0
#: The same of what the last mgr has sent, from the first look on.
_HEARD_SECONDS = 50.0
#: Seconds after which a PG has peered, and Ceph shows what is misplaced.
_RESTORE_SECONDS = 120.0


class PendingMove(NamedTuple):
    """One PG that is in flight by our doing."""

    copies: int     # object copies that the change misplaces
    shards: int
    bytes: int
    epoch: int      # reports from this osdmap epoch on know of the change
    sent_at: float  # seconds since the epoch
    gains: SizedShards   # OSDs that gain a shard, each with its bytes
    losses: SizedShards  # OSDs that lose one, the same
    before: Optional[int] = None    # osdmap epoch at which it was sent; None where not known
    #: until when reports of what the last mgr has sent are waited for; infinite for our own
    heard_by: float = math.inf

    @property
    def targets(self) -> Tuple[int, ...]:
        """OSDs that gain a shard."""
        return tuple([osd for osd, _ in self.gains])

    @property
    def sources(self) -> Tuple[int, ...]:
        """OSDs that lose a shard."""
        return tuple([osd for osd, _ in self.losses])


class PendingMoves:
    """Our moves by pgid until they are seen to arrive, and the last arrivals."""

    def __init__(self) -> None:
        self.entries: Dict[str, PendingMove] = {}
        #: (when it was seen, seconds since the epoch; what its OSDs gained): they may not have
        #: reported how full they are now
        self.arrivals: List[Tuple[float, SizedShards]] = []
        #: PGs that the last mgr had sent a while ago, or had in flight for longer
        self.sent_before: FrozenSet[str] = frozenset()

    def add(self, change: PgChange, before: Snapshot, now: float) -> None:
        """Adds a change about to be sent, with the PG's size as of now, not as of the plan."""
        pg = before.pgs[change.pgid]
        gains, losses = before.changed_shards(pg, change.up_after)
        self.entries[change.pgid] = PendingMove(
            pg.objects * change.shards, change.shards, pg.shard_bytes * change.shards,
            before.epoch + 1, now,
            tuple([(osd, before.shard_bytes(pg, osd, change.up_after)) for osd in gains]),
            tuple([(osd, before.shard_bytes(pg, osd, pg.up)) for osd in losses]), before.epoch)

    def restore_sending(self, moved: Mapping[str, Tuple[float, int]], snapshot: Snapshot,
                        now: float) -> None:
        """Adds what another mgr has sent a moment ago (pgid → when, and the osdmap's epoch before
        that) and does not show yet: of which there is no report later than that osdmap.

        The upmap items of a PG tell from where to where it goes; how many of them are new is not
        known, so all are counted.
        """
        for pgid, (sent_at, before) in moved.items():
            pg = snapshot.pgs.get(pgid)
            recent = 0.0 <= now - sent_at <= _RESTORE_SECONDS
            # reports may be older than the map that shows it moving, and Ceph's count with them
            is_told = pg is not None and pg.is_moving and pg_states.REMAPPED in pg.state
            if pg is None or is_told or not recent or pgid in self.entries:
                continue
            pairs = [p for p in snapshot.items_of(pgid) if p[1] in pg.up] or [(-1, -1)]
            self.entries[pgid] = PendingMove(
                pg.objects * len(pairs), len(pairs), pg.shard_bytes * len(pairs),
                before + 1, sent_at,
                tuple((target, pg.shard_bytes) for _, target in pairs if target >= 0),
                tuple((source, pg.shard_bytes) for source, _ in pairs if source >= 0),
                heard_by=now + _HEARD_SECONDS)

    @property
    def awaits_reports(self) -> bool:
        """True while it is not known of what the last mgr has sent whether it has arrived."""
        return any(entry.heard_by < math.inf for entry in list(self.entries.values()))

    def restore_log_recovery(self, snapshot: Snapshot) -> None:
        """Adds PGs that an upmap item has moved, whenever that was, and that wait for recovery by
        their log: Ceph counts such copies as degraded, and none of them as misplaced. Where the
        OSD that they leave is not known, those that the last mgr has sent."""
        for pgid, pg in snapshot.in_flight().items():
            if pgid in self.entries or pg_states.DEGRADED not in pg.state:
                continue
            gains, losses = snapshot.transfers(pg)
            moved = {target for _, target in snapshot.items_of(pgid)}
            if gains and moved.issuperset(gains) and (
                    len(losses) == len(gains) or pgid in self.sent_before):
                self.entries[pgid] = PendingMove(
                    pg.objects * len(gains), len(gains), pg.shard_bytes * len(gains),
                    snapshot.epoch, snapshot.taken_at,
                    tuple((osd, pg.shard_bytes) for osd in gains),
                    tuple((osd, pg.shard_bytes) for osd in losses))

    def confirm(self, batch: Sequence[PgChange], epoch: int) -> None:
        """Records that the osdmap of this epoch has the batch: older reports do not count it."""
        for change in batch:
            self.entries[change.pgid] = self.entries[change.pgid]._replace(epoch=epoch)

    def remove_arrived(self, snapshot: Snapshot) -> None:
        """Removes what has arrived or is gone."""
        for pgid, entry in list(self.entries.items()):
            if entry.sent_at > snapshot.taken_at:  # the clock was set back
                self.entries[pgid] = entry = entry._replace(
                    sent_at=snapshot.taken_at, heard_by=snapshot.taken_at + _HEARD_SECONDS
                    if entry.heard_by < math.inf else math.inf)
        arrived = [pgid for pgid, entry in list(self.entries.items())
                   if _has_arrived(snapshot, pgid, entry)]
        now = snapshot.taken_at
        # later an OSD has reported what has come to it, or is known to be silent and gets nothing
        self.arrivals = [one for one in self.arrivals if 0.0 <= now - one[0] < SILENT_SECONDS]
        for pgid in arrived:
            entry = self.entries.pop(pgid)
            self.arrivals.append((now, entry.gains))
        for pgid, entry in list(self.entries.items()):
            if entry.heard_by < now:   # it is seen to move, like our own
                self.entries[pgid] = entry._replace(heard_by=math.inf)

    def uncounted_copies(self, snapshot: Snapshot, as_degraded: bool = True) -> int:
        """Object copies that we have misplaced and Ceph's own count does not contain, `as_degraded`
        also those of PGs that it calls degraded instead: they are held against the limit, too.

        They are to be added to that count, which contains what others misplace, except the copies
        of PGs that peer: these count here, whoever moves them.
        """
        entries = dict(self.entries)
        peering = [pg for pgid, pg in snapshot.in_flight().items()
                   if pgid not in entries and pg_states.PEERING in pg.state]
        return sum([misplaced_copies(snapshot, pg) for pg in peering]) + sum(
            entry.copies for pgid, entry in entries.items()
            if not _is_counted(snapshot, pgid, entry, as_degraded))

    def is_unreported(self, pg: Pg, newest: int) -> bool:
        """True of a PG whose last report is from before it was to move, where reports have come of
        what was then (`newest`: epoch of the last of them): its new primary does not know of it, or
        withholds it."""
        entry = self.entries.get(pg.pgid)
        return entry is not None and pg.reported_epoch < entry.epoch <= newest and (
            pg_states.CLEAN in pg.state and pg.up[0] in entry.targets)

    def bytes_to_come(self, snapshot: Snapshot) -> int:
        """Bytes of what we have sent that are still to be copied."""
        moving = snapshot.in_flight()
        return int(sum(entry.bytes * (moving[pgid].uncopied_ratio if pgid in moving else 1.0)
                       for pgid, entry in list(self.entries.items())))


def misplaced_copies(snapshot: Snapshot, pg: Pg) -> int:
    """Object copies of a moving PG that are misplaced, at the least."""
    gains, losses = snapshot.transfers(pg)
    return int(pg.objects * pg.uncopied_ratio * min(len(gains), len(losses)))


def _is_counted(snapshot: Snapshot, pgid: str, entry: PendingMove, as_degraded: bool) -> bool:
    """True where the PG has reported what our change misplaces: once it has peered at the map that
    has the change (PeeringState::update_calc_stats counts nothing while it peers)."""
    pg = snapshot.pgs.get(pgid)
    if pg is None:
        return True
    if not pg.state or pg_states.has_any(pg.state, pg_states.UNREPORTED):
        return False
    if as_degraded and pg_states.DEGRADED in pg.state:   # as while it waits for recovery by its log
        return False
    if pg.reported_epoch >= entry.epoch:
        return True
    # the map that we saw the change in may be newer than the one that brought it; no PG was
    # remapped when we sent it
    return (entry.before is not None and pg.reported_epoch > entry.before
            and pg_states.REMAPPED in pg.state)


def _has_arrived(snapshot: Snapshot, pgid: str, entry: PendingMove) -> bool:
    pg = snapshot.pgs.get(pgid)
    if pg is None:
        return True
    if pg.is_moving or pg_states.has_any(pg.state, pg_states.MOVING):
        return False
    # a new primary has reported since it was sent, unless it withholds the PG
    is_withheld = (entry.before is not None and pg.up[0] in entry.targets
                   and pg.reported_epoch <= entry.before)
    return pg.reported_epoch >= entry.epoch or not is_withheld and (
        snapshot.taken_at > entry.heard_by
        or snapshot.taken_at - entry.sent_at > _BELIEVE_AFTER_SECONDS)
