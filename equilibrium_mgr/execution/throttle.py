"""What the throttle still admits while a batch is being chosen.

Every refusal says its sentence and its kind: a brake lets go by itself as moves arrive, a full
target may be relieved by other moves only.
"""
from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import PgChange
from ..plan.options import HARD_SHARE, effective_fill_limit
from ..plan.weight_shares import share_limits
from ..snapshot.model import Osd, Pg, Snapshot, shard_changes
from ..snapshot.operator_weights import held_sentence
from .osd_traffic import OsdTraffic

#: Of the misplaced limit, as a ratio: left free for what clients write to PGs on their way, and
#: for what the statistics of a PG do not know yet.
_MISPLACED_MARGIN = 0.05

Shards = Tuple[Tuple[int, ...], Tuple[int, ...]]   # OSDs that gain one, OSDs that lose one


class ThrottleLimits(NamedTuple):
    """The throttle of one round."""

    max_misplaced_ratio: float
    max_moves: int
    fill_limit: float             # ratio; 0 means backfillfull less a margin
    misplaced_copies: int         # Ceph's count, and ours that it cannot show yet
    in_flight: Sequence[str]      # PGs that we have sent and not seen arrive
    max_backfills: int = 0        # shards per OSD, in and out counted apart; 0 means unlimited
    max_transit_ratio: float = 0.0  # of an OSD's size; 0 means unlimited
    cooling: Mapping[str, float] = {}   # pgid → seconds for which it stays
    relievable_osds: Sequence[int] = ()    # full OSDs that may be relieved although pools are degraded
    degraded_pools: Sequence[int] = ()  # pools that have degraded PGs in their way and nothing worse
    max_shards: int = 0           # PG shards per OSD (mon_max_pg_per_osd); 0 means unlimited
    max_shards_hard: int = 0      # at which OSDs refuse PGs; 0 means unlimited
    max_upmap_pairs: int = 0            # pairs of upmap items in the map; 0 means unlimited
    transient_pools: Sequence[int] = ()   # pools whose trouble is most likely over within seconds


class Deferral(NamedTuple):
    """Why a change has to wait."""

    reason: str
    throttle: bool = False   # it waits for the throttle, not for trouble to be over
    full: bool = False       # a target is too full
    passing: bool = False    # most likely over within seconds
    cools: bool = False      # its PG was moved a short while ago (pg_cooldown)


class Throttle:
    """What is left of the limits; `take` uses it up."""

    def __init__(self, snapshot: Snapshot, limits: ThrottleLimits, transit: OsdTraffic) -> None:
        self._snapshot = snapshot
        self._limits = limits
        self._transit = transit
        self._misplaced = limits.misplaced_copies
        self._limit = limits.max_misplaced_ratio * snapshot.object_copies
        self._allowed = (1.0 - _MISPLACED_MARGIN) * self._limit
        self._moves_left = limits.max_moves
        self._fill_limit = effective_fill_limit(limits.fill_limit, snapshot.backfillfull_ratio)
        self._highest = _highest_by_class(snapshot)
        self._shards: Optional[Counter[int]] = None   # OSD → PG shards, counted when needed
        self._items = sum(map(len, snapshot.upmap_items.values())) if limits.max_upmap_pairs else 0
        self._shares = share_limits(snapshot)
        self.above_limit: Optional[str] = None   # the PG that goes though alone above the limit
        self.above_share: Optional[str] = None   # the same of an OSD's share in transit

    def refuses(self, pg: Pg, change: PgChange) -> Optional[Deferral]:
        """Why the change must not go now, or None."""
        limits = self._limits
        shards = self.shards(pg, change)
        full = self._too_full(pg, shards)
        if full is not None:
            return Deferral(full, throttle=True, full=True)
        if self._moves_left < limits.max_moves and change.shards > self._moves_left:
            return Deferral(f"max_moves_per_round ({limits.max_moves}) is reached", True)
        copies = pg.objects * change.shards
        # where nothing is misplaced one change may go although it alone is above the limit
        if self._misplaced > 0 and copies > 0 and self._misplaced + copies > self._allowed:
            return Deferral("the misplaced ratio would come too near its limit of %.4f"
                           % limits.max_misplaced_ratio, True)
        busy = self._too_busy(pg, shards) or self._too_early(pg, shards)
        if busy is not None:
            return Deferral(busy, True)
        many = self._too_many(change, shards)
        return Deferral(many) if many is not None else None

    def keeps(self, pg: Pg, change: PgChange, copies: int) -> bool:
        """Does the change leave so many object copies of the misplaced budget to others?"""
        own = pg.objects * change.shards
        return own == 0 or self._misplaced + own + copies <= self._allowed

    @property
    def has_moves(self) -> bool:
        """May another change go, as far as max_moves_per_round is concerned?"""
        return self._moves_left > 0

    def take(self, pg: Pg, change: PgChange) -> None:
        """The change goes."""
        shards = self.shards(pg, change)
        if self._shared_out(pg, shards) is not None:
            self.above_share = change.pgid
        self._moves_left -= change.shards
        self._misplaced += pg.objects * change.shards
        if pg.objects and self._misplaced > self._limit:
            self.above_limit = change.pgid
        self._transit.add(shards[0], shards[1], pg.shard_bytes, pg.shard_bytes)
        self._items += self._more_items(change)
        if self._shards is not None:
            self._shards.update(shards[0])

    def shards(self, pg: Pg, change: PgChange) -> Shards:
        return shard_changes(pg.up, change.up_after, self._snapshot.pools[pg.pool].erasure)

    def _too_many(self, change: PgChange, shards: Shards) -> Optional[str]:
        """PG shards on an OSD, and upmap items in the map."""
        limits = self._limits
        if limits.max_upmap_pairs and self._more_items(change) > 0:
            if self._items + self._more_items(change) > limits.max_upmap_pairs:
                return ("the osdmap has %d pairs of upmap items and must not have more than %d "
                        "(max_upmap_items)" % (self._items, limits.max_upmap_pairs))
        if not limits.max_shards:
            return None
        if self._shards is None:
            self._shards = _count_shards(self._snapshot)
        for osd in shards[0]:
            count, most = self._shards[osd], limits.max_shards
            if count > most and limits.max_shards_hard:   # it is above by others' doing
                most = int(HARD_SHARE * limits.max_shards_hard)
            if count + 1 > most:
                return "osd.%d has %d PG shards and must not get more than %d by moves (%s)" % (
                    osd, count, most, "mon_max_pg_per_osd" if most == limits.max_shards
                    else "osd_max_pg_per_osd_hard_ratio")
        return None

    def _more_items(self, change: PgChange) -> int:
        return len(change.items) - len(self._snapshot.upmap_items.get(change.pgid, ()))

    def _too_full(self, pg: Pg, shards: Shards) -> Optional[str]:
        """Sources keep their copy while targets fill, so nothing that leaves is counted."""
        for osd_id in shards[0]:
            osd = self._snapshot.osds[osd_id]
            if osd.used_bytes >= self._snapshot.nearfull_ratio * osd.size_bytes:
                return f"osd.{osd_id} is nearfull"
            if self._peak(osd, pg) > self._fill_limit * osd.size_bytes:
                return "osd.%d would pass its fill limit of %.3f meanwhile" % (
                    osd_id, self._fill_limit)
            if self._beyond_share(osd, pg):
                return f"{held_sentence(osd)} and would hold more"
        return None

    def _beyond_share(self, osd: Osd, pg: Pg) -> bool:
        """Would an OSD pass the share that the operator's weights, as they are now, hold it to? By
        more than half a shard: statistics are not exact."""
        most = self._shares.get(osd.id)
        return most is not None and self._peak(osd, pg) - pg.shard_bytes // 2 > most

    def _peak(self, osd: Osd, pg: Pg) -> int:
        """Bytes on a target once all that is coming and one shard more are there."""
        load = self._transit.of(osd.id)
        return osd.used_bytes + load.bytes_in + load.landed_bytes + pg.shard_bytes

    def _too_busy(self, pg: Pg, shards: Shards) -> Optional[str]:
        most = self._limits.max_backfills
        for into, osds in ((True, shards[0]), (False, shards[1])):
            for osd in osds if most else ():
                load = self._transit.of(osd)
                if (load.shards_in if into else load.shards_out) >= most:
                    return "osd.%d has %d shards %s already (max_backfills_per_osd)" % (
                        osd, load.shards_in if into else load.shards_out,
                        "coming" if into else "leaving")
        busy = self._shared_out(pg, shards)
        if busy is None or self._alone(shards):
            return None
        return "osd.%d would have more than %.3f of its size in transit (max_transit_ratio)" % (
            busy, self._limits.max_transit_ratio)

    def _too_early(self, pg: Pg, shards: Shards) -> Optional[str]:
        """An OSD that gives and takes holds both for a while, and would be the fullest of all."""
        for osd_id in shards[0]:
            osd = self._snapshot.osds[osd_id]
            highest = self._highest[osd.device_class] * osd.size_bytes
            if self._transit.of(osd_id).shards_out and self._peak(osd, pg) > highest:
                return ("osd.%d would be the fullest of class %s before what leaves it is gone"
                        % (osd_id, osd.device_class))
        return None

    def _shared_out(self, pg: Pg, shards: Shards) -> Optional[int]:
        """An OSD whose share of bytes in transit the change would pass, or None."""
        ratio = self._limits.max_transit_ratio
        for into, osds in ((True, shards[0]), (False, shards[1])):
            for osd_id in osds if ratio else ():
                osd: Optional[Osd] = self._snapshot.osds.get(osd_id)
                load = self._transit.of(osd_id)
                now = load.bytes_in if into else load.bytes_out
                # of an OSD without statistics nobody knows how much a share is
                if osd is not None and osd.has_statistics:
                    if now + pg.shard_bytes > ratio * osd.size_bytes:
                        return osd_id
        return None

    def _alone(self, shards: Shards) -> bool:
        """Is nothing else in transit at the OSDs? Then one change may pass the share."""
        loads = [self._transit.of(osd) for osds in shards for osd in osds]
        return not any(load.shards_in or load.shards_out for load in loads)


def _count_shards(snapshot: Snapshot) -> Counter[int]:
    """OSD → PG shards on it or on their way to it, and those that are still to leave it."""
    counts: Counter[int] = Counter(chain.from_iterable(pg.up for pg in snapshot.pgs.values()))
    for pg in snapshot.in_flight().values():
        counts.update(osd for osd in pg.holders if osd not in pg.up and osd != NO_OSD)
    return counts


def _highest_by_class(snapshot: Snapshot) -> Dict[str, float]:
    """Device class → the highest utilization now, a ratio."""
    highest: Dict[str, float] = {}
    for osd in snapshot.osds.values():
        level = osd.utilization or 0.0
        highest[osd.device_class] = max(highest.get(osd.device_class, 0.0), level)
    return highest
