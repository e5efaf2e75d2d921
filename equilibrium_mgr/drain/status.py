"""How far drains are, as the loop publishes it.

What is still on the OSDs that are being drained.
"""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import StuckShards
from ..runtime.formatting import plural
from ..runtime.time_slice import piecewise
from ..snapshot.model import Snapshot
from ..snapshot.pg_states import STALE, WHOLE
from .drain_list import DrainList


#: Before it gives way again: about a millisecond.
_PGS_A_PIECE = 1000


class Remaining(NamedTuple):
    """The shards of one OSD, be it in their PG's up set, its acting set, or as a holder."""

    shards: int = 0
    bytes: int = 0   # on its device
    leaving: int = 0   # of these, on their way to another OSD


def remaining_shards(snapshot: Snapshot, osds: FrozenSet[int],
                     sent: Iterable[Tuple[str, Iterable[int]]] = ()) -> Dict[int, Remaining]:
    """OSD id → what is left there, of every OSD that is asked for. A pass over all PGs.

    `sent`: (pgid, OSDs that lose a shard) of moves that have not been seen to arrive. While such a
    PG peers, no set of it may show that its data is still on the OSD that it is to leave.
    """
    found = {osd: Remaining() for osd in osds}
    left = {pgid: osds.intersection(sources) for pgid, sources in sent}
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        for osd in osds.intersection((*pg.up, *pg.acting, *pg.holders)).union(
                left.get(pg.pgid, ())):
            size = snapshot.shard_bytes(pg, osd, pg.up if osd in pg.up else pg.holders)
            shards, size_before, leaving = found[osd]
            found[osd] = Remaining(
                shards + 1, size_before + (snapshot.osds[osd].device_bytes(size)
                                           if osd in snapshot.osds else size),
                leaving + (osd not in pg.up))
    return found


def may_lack_copies(snapshot: Snapshot) -> bool:
    """True unless every PG has all its shards where it wants them and has said so: else an OSD that
    is down may have the only copy of something. Ends at the first PG that does not."""
    if snapshot.unsettled_seconds > 0.0:
        return True
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        states = frozenset(pg.state.split("+"))
        if not (states >= WHOLE and STALE not in states and not pg.is_moving
                and pg.acting == pg.up and NO_OSD not in pg.up
                and len(pg.up) >= snapshot.pools[pg.pool].size):
            return True
    return False


class StopCheck(NamedTuple):
    """What Ceph says to `ceph osd ok-to-stop` of some OSDs together."""

    is_safe: bool
    reason: str   # a sentence of Ceph's where it is not


class StuckDrains(NamedTuple):
    """What a plan has found no other place for."""

    shards: Tuple[StuckShards, ...] = ()
    planned_at: float = 0.0   # seconds since the epoch


class DrainStatus(NamedTuple):
    """What reports read of the drains. Nothing in it is edited."""

    drains: DrainList = DrainList()
    remaining: Mapping[int, Remaining] = {}    # OSD id → what is left, as of the last look
    stuck: Tuple[StuckShards, ...] = ()        # as of the last plan
    stop_check: Optional[StopCheck] = None     # of the empty OSDs; None: not known
    down: FrozenSet[int] = frozenset()         # of the list, at the last look
    is_lacking: bool = True                    # whether some PG lacked a copy then, or might
    epoch: Optional[int] = None                # of the osdmap, at the last look
    is_old: bool = False                       # whether the osdmap has changed since

    @property
    def empty_osds(self) -> FrozenSet[int]:
        """OSDs that no shard is left on, by the last look. Of an OSD that is down no set of a PG
        tells what is on it, so that it is not among them."""
        return frozenset(osd for osd, left in self.remaining.items()
                         if not left.shards and osd not in self.down)

    @property
    def known_left(self) -> List[Remaining]:
        """What is left on the OSDs that are up: of others nobody knows."""
        return [one for osd, one in self.remaining.items() if osd not in self.down]

    @property
    def left_shards(self) -> int:
        """Shards on all OSDs of the list."""
        return sum(one.shards for one in self.remaining.values())

    @property
    def is_known(self) -> bool:
        """True where all OSDs of the list have been looked at."""
        return self.remaining.keys() == self.drains.names.keys()

    @property
    def has_work(self) -> bool:
        """True where shards may still have to be sent on their way: those that neither are nor have
        been found to have no other place."""
        return not self.is_known or any(
            left.shards - left.leaving > sum(one.shards for one in self.stuck if one.osd == osd)
            for osd, left in self.remaining.items() if osd not in self.down)

    @property
    def stuck_sentence(self) -> str:
        """What cannot leave, as a clause; empty where everything can or has."""
        shards = sum(stuck.shards for stuck in self.stuck)
        if not (shards and self.left_shards):
            return ""
        return (f"{plural(shards, 'shard')} cannot leave {self.named}; 'ceph equilibrium drain ls'"
                " has the reasons")

    def as_of(self, epoch: int, without_pgs: FrozenSet[int] = frozenset()) -> DrainStatus:
        """The status for an osdmap of that epoch. `without_pgs`: OSDs that report that they have
        nothing of any PG stay empty, whatever the map."""
        return self._replace(is_old=self.epoch is not None and epoch > self.epoch
                             and not self.empty_osds <= without_pgs)

    def is_safe(self, osd: int) -> Optional[bool]:
        """Whether an OSD of the list may be stopped; None where that is not known now."""
        left = self.remaining.get(osd)
        if osd in self.down or left is not None and left.shards:
            return False
        if left is None or self.stop_check is None or self.is_old or self.drains.is_paused:
            return None
        return self.stop_check.is_safe

    @property
    def down_sentence(self) -> str:
        """What is known of OSDs that are down, as a clause; empty where none is."""
        if not self.down:
            return ""
        first, more = f"osd.{min(self.down)}", len(self.down) - 1
        said = f"{first} and {more} more are down" if more else f"{first} is down"
        if not self.is_lacking:
            return f"{said}, and no PG lacks a copy"
        return (f"{said}: PGs that it held may lack a copy; start it again, or mark it out and wait"
                " until all PGs are clean")

    @property
    def not_safe_reason(self) -> str:
        """Why not all OSDs of the list are called safe to stop, as a clause; empty where they are,
        where the list is empty, and where shards are left."""
        if self.down or not self.drains.names:
            return self.down_sentence
        if self.left_shards:
            return ""
        if self.drains.is_paused:
            return "the drain is paused, so that shards may come back"
        if not self.is_known:
            return "it has not been looked at yet"
        if self.is_old:
            return ("the osdmap has changed since the last look; whether it is safe to stop is"
                    " being looked at")
        return ("Ceph is asked whether it is safe to stop" if self.stop_check is None
                else self.stop_check.reason)

    @property
    def result_sentence(self) -> str:
        """What is left, as a clause."""
        if self.down:
            return self.down_sentence
        left = self.left_shards
        return (f"{plural(left, 'shard is', 'shards are')} left on {self.named}" if left
                else f"no shard is left on {self.named}")

    @property
    def named(self) -> str:
        """The OSDs of the list in few words."""
        osds = sorted(self.drains.osds)
        return f"osd.{osds[0]}" if len(osds) == 1 else f"the {len(osds)} OSDs that are drained"
