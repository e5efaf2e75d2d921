"""Pending moves: moves that we have sent and that are not seen to have arrived.

Right after an upmap item is sent, the acting set still equals the up set, and `pg_status` is too
low. So the misplaced budget cannot rest on Ceph's count alone: the copies that Ceph does not count
yet are added to it.
"""
from __future__ import annotations

import math
from typing import Container, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..snapshot import pg_states
from ..snapshot.model import Pg, SizedShards, Snapshot, UpmapItems
from ..snapshot.osds import SILENT_SECONDS
from ..snapshot.upmap_items import changed_pairs

#: Seconds after which a PG that does not look moving counts as arrived although it has not reported
#: at a newer epoch.
_BELIEVE_AFTER_SECONDS = 600.0
#: The same for PGs that the last mgr has sent, from the first snapshot on.
_HEARD_SECONDS = 50.0
#: Seconds after which a PG has peered, and Ceph counts its misplaced copies.
_RESTORE_SECONDS = 120.0


class PendingMove(NamedTuple):
    """One PG that is in flight because of our change."""

    copies: int     # object copies that the change misplaces
    shards: int
    bytes: int
    epoch: int      # reports from this osdmap epoch on know of the change
    sent_at: float  # seconds since the epoch
    gains: SizedShards   # OSDs that gain a shard, each with its bytes
    losses: SizedShards  # OSDs that lose one, the same
    before: Optional[int] = None    # osdmap epoch at which it was sent; None if unknown
    #: until when reports of a PG that the last mgr has sent are awaited; infinite for our own
    heard_by: float = math.inf

    @property
    def targets(self) -> Tuple[int, ...]:
        """Returns the OSDs that gain a shard."""
        return tuple([osd for osd, _ in self.gains])

    @property
    def sources(self) -> Tuple[int, ...]:
        """Returns the OSDs that lose a shard."""
        return tuple([osd for osd, _ in self.losses])


#: A move of the last mgr: when it was sent, in seconds since the epoch; the osdmap's epoch and the
#: PG's upmap items before
SentMove = Tuple[float, int, UpmapItems]


class PendingMoves:
    """Keeps our moves by pgid until they are seen to arrive, and the last arrivals."""

    def __init__(self) -> None:
        self.entries: Dict[str, PendingMove] = {}   # commands copy it
        #: (when it was seen, seconds since the epoch; the shards that its OSDs gained): the OSDs
        #: may not have reported their new utilization
        self.arrivals: List[Tuple[float, SizedShards]] = []

    def add(self, change: PgChange, before: Snapshot, now: float) -> None:
        """Adds a change about to be sent, with the PG's size as of now, not as of the plan."""
        pg = before.pgs[change.pgid]
        gains, losses = before.changed_shards(pg, change.up_after)
        coming = [(osd, before.shard_bytes(pg, osd, change.up_after)) for osd in gains]
        leaving = [(osd, before.shard_bytes(pg, osd, pg.up)) for osd in losses]
        self.entries[change.pgid] = _pending(
            pg, change.shards, coming, leaving, before.epoch + 1, now, before.epoch)

    def restore_sending(self, moved: Mapping[str, SentMove], snapshot: Snapshot,
                        now: float) -> None:
        """Adds the moves of the last mgr, by pgid, that no report shows yet.

        The upmap items that have changed since show where a PG goes. If none has, the command may
        still be on its way, and one shard counts.
        """
        for pgid, (sent_at, epoch, before) in moved.items():
            pg = snapshot.pgs.get(pgid)
            if pg is None or pgid in self.entries or not 0.0 <= now - sent_at <= _RESTORE_SECONDS:
                continue
            # reports may be older than the osdmap that shows it moving, and Ceph's count with them
            if pg.is_moving and pg_states.REMAPPED in pg.state:
                continue
            changed = changed_pairs(before, snapshot.items_of(pgid))
            pairs = [pair for pair in changed if pair[1] in pg.up]
            coming = [(target, pg.shard_bytes) for _, target in pairs]
            leaving = [(source, pg.shard_bytes) for source, _ in pairs]
            move = _pending(pg, len(pairs) or 1, coming, leaving, epoch + 1, sent_at)
            self.entries[pgid] = move._replace(heard_by=now + _HEARD_SECONDS)

    @property
    def awaits_reports(self) -> bool:
        """Returns True while it is not known whether all moves of the last mgr have arrived."""
        return any([entry.heard_by < math.inf for entry in list(self.entries.values())])

    def restore_log_recovery(self, snapshot: Snapshot, sent: Container[str]) -> None:
        """Adds PGs that an upmap item has moved at any time, and that wait for recovery by their
        log: Ceph counts such copies as degraded, and none of them as misplaced.

        Adds a PG whose old OSD is not known only if the last mgr has `sent` it.
        """
        for pgid, pg in snapshot.in_flight().items():
            if pgid in self.entries or pg_states.DEGRADED not in pg.state:
                continue
            gains, losses = snapshot.transfers(pg)
            moved = {target for _, target in snapshot.items_of(pgid)}
            if not gains or not moved.issuperset(gains):
                continue
            if len(losses) == len(gains) or pgid in sent:
                self.entries[pgid] = _pending(pg, len(gains), *snapshot.sized_transfers(pg),
                                              snapshot.epoch, snapshot.taken_at)

    def confirm(self, batch: Sequence[PgChange], epoch: int) -> None:
        """Notes that the osdmap of this epoch has the batch. Older reports do not count it."""
        for change in batch:
            self.entries[change.pgid] = self.entries[change.pgid]._replace(epoch=epoch)

    def remove_arrived(self, snapshot: Snapshot) -> None:
        """Removes moves that have arrived, and those of PGs that are gone."""
        now = snapshot.taken_at
        left = self.entries
        # after that time an OSD has reported the shards that came to it, or is silent and gets none
        self.arrivals = [one for one in self.arrivals if 0.0 <= now - one[0] < SILENT_SECONDS]
        for pgid, entry in list(left.items()):
            if entry.sent_at > now:   # the clock was set back
                entry = entry._replace(sent_at=now)
                if entry.heard_by < math.inf:
                    entry = entry._replace(heard_by=now + _HEARD_SECONDS)
                left[pgid] = entry
            if _has_arrived(snapshot, pgid, entry):
                del left[pgid]
                self.arrivals.append((now, entry.gains))
            elif entry.heard_by < now:   # it is seen to move, like our own
                left[pgid] = entry._replace(heard_by=math.inf)

    def uncounted_copies(self, snapshot: Snapshot, as_degraded: bool = True) -> int:
        """Returns the object copies that we have misplaced and that Ceph does not count.

        `as_degraded`: include those of PGs that Ceph calls degraded instead. The caller adds the
        result to Ceph's count. That contains the copies that others misplace, except those of PGs
        that peer: these count here, whoever moves them.
        """
        entries = dict(self.entries)
        copies = 0
        for pgid, pg in snapshot.in_flight().items():
            if pgid not in entries and pg_states.PEERING in pg.state:
                copies += misplaced_copies(snapshot, pg)
        for pgid, entry in entries.items():
            if not _is_counted(snapshot, pgid, entry, as_degraded):
                copies += entry.copies
        return copies

    def is_unreported(self, pg: Pg, newest: int) -> bool:
        """Returns True if the last report of the PG predates its move although other PGs have
        reported since. `newest`: the newest reported epoch.

        Its new primary has not seen the osdmap yet, or withholds the PG.
        """
        entry = self.entries.get(pg.pgid)
        if entry is None or pg_states.CLEAN not in pg.state:
            return False
        return pg.reported_epoch < entry.epoch <= newest and pg.up[0] in entry.targets

    def bytes_to_come(self, snapshot: Snapshot) -> int:
        """Returns the bytes of our moves that are still to be copied."""
        moving = snapshot.in_flight()
        left = 0.0
        for pgid, entry in list(self.entries.items()):
            left += entry.bytes * (moving[pgid].uncopied_ratio if pgid in moving else 1.0)
        return int(left)


def _pending(pg: Pg, shards: int, gains: SizedShards, losses: SizedShards, epoch: int,
             sent_at: float, before: Optional[int] = None) -> PendingMove:
    return PendingMove(
        copies=pg.objects * shards,
        shards=shards,
        bytes=pg.shard_bytes * shards,
        epoch=epoch,
        sent_at=sent_at,
        gains=gains,
        losses=losses,
        before=before)


def misplaced_copies(snapshot: Snapshot, pg: Pg) -> int:
    """Returns the least number of misplaced object copies of a moving PG."""
    gains, losses = snapshot.transfers(pg)
    return int(pg.objects * pg.uncopied_ratio * min(len(gains), len(losses)))


def _is_counted(snapshot: Snapshot, pgid: str, entry: PendingMove, as_degraded: bool) -> bool:
    """Returns True if the PG has reported the copies that our change misplaces. It does once it has
    peered by the osdmap with the change (PeeringState::update_calc_stats counts nothing while it
    peers)."""
    pg = snapshot.pgs.get(pgid)
    if pg is None:
        return True
    state = pg.state
    if not state or pg_states.has_any(state, pg_states.UNREPORTED):
        return False
    if as_degraded and pg_states.DEGRADED in state:   # it may wait for recovery by its log
        return False
    reported = pg.reported_epoch
    if reported >= entry.epoch:
        return True
    # the osdmap in which we saw the change may be newer than the first one with it; no PG was
    # remapped when we sent it
    before = entry.before
    if before is None or reported <= before:
        return False
    return pg_states.REMAPPED in state


def _has_arrived(snapshot: Snapshot, pgid: str, entry: PendingMove) -> bool:
    """Returns True if a move counts as arrived: also if its PG is gone, or did not report in
    time."""
    pg = snapshot.pgs.get(pgid)
    if pg is None:
        return True
    if pg.is_moving or pg_states.has_any(pg.state, pg_states.MOVING):
        return False
    reported = pg.reported_epoch
    if reported >= entry.epoch:
        return True
    before = entry.before
    if before is not None and reported <= before:
        if pg.up[0] in entry.targets:   # its new primary has not reported, and may withhold it
            return False
    now = snapshot.taken_at
    if now > entry.heard_by:
        return True
    return now - entry.sent_at > _BELIEVE_AFTER_SECONDS
