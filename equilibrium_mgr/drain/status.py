"""The progress of drains, as the loop publishes it: the shards that are still on drained OSDs."""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..crush.placement import NO_OSD
from ..plan.model import StuckShards
from ..runtime.formatting import plural
from ..runtime.time_slice import piecewise
from ..snapshot.model import Pg, Snapshot
from ..snapshot.pg_states import STALE, WHOLE
from .drain_list import DrainList


#: Before it gives way again: about a millisecond.
_PGS_A_PIECE = 1000


class Remaining(NamedTuple):
    """The shards of PGs of which an OSD is in the up set or the acting set, or is a holder."""

    shards: int = 0
    bytes: int = 0   # that these shards take on its device
    leaving: int = 0   # the part of `shards` that is on its way to another OSD


def remaining_shards(snapshot: Snapshot, osds: FrozenSet[int],
                     sent: Iterable[Tuple[str, Iterable[int]]] = ()) -> Dict[int, Remaining]:
    """Returns OSD id → its remaining shards, for each of `osds`. Goes over all PGs.

    `sent`: (pgid, OSDs that lose a shard) of moves that have not been seen to arrive. While such a
    PG peers, its sets may not show that its data is still on the OSD that it leaves.
    """
    found = {osd: Remaining() for osd in osds}
    left = dict(sent)
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        holders = (*pg.up, *pg.acting, *pg.holders, *left.get(pg.pgid, ()))
        for osd in osds.intersection(holders):
            is_up = osd in pg.up
            size = snapshot.shard_bytes(pg, osd, pg.up if is_up else pg.holders)
            if osd in snapshot.osds:
                size = snapshot.osds[osd].device_bytes(size)
            shards, size_before, leaving = found[osd]
            found[osd] = Remaining(shards + 1, size_before + size, leaving + (not is_up))
    return found


def may_lack_copies(snapshot: Snapshot) -> bool:
    """Returns True if an OSD that is down may have the only copy of some data.

    Returns False only if every PG has reported that all its shards are where it wants them.
    """
    if snapshot.unsettled_seconds > 0.0:
        return True
    return not all(_is_complete(snapshot, pg) for pg in piecewise(
        snapshot.pgs.values(), _PGS_A_PIECE))


def _is_complete(snapshot: Snapshot, pg: Pg) -> bool:
    """Returns True if the PG has all its shards where it wants them."""
    states = frozenset(pg.state.split("+"))
    if not states >= WHOLE or STALE in states:
        return False
    if pg.is_moving or pg.acting != pg.up:
        return False
    if NO_OSD in pg.up:
        return False
    return len(pg.up) >= snapshot.pools[pg.pool].size


class StopCheck(NamedTuple):
    """The answer of `ceph osd ok-to-stop` for some OSDs together."""

    is_safe: bool
    reason: str   # Ceph's sentence if it is not safe


class StuckDrains(NamedTuple):
    """The shards on drained OSDs for which a plan has found no other place."""

    shards: Tuple[StuckShards, ...] = ()
    planned_at: float = 0.0   # seconds since the epoch


class DrainStatus(NamedTuple):
    """The drains, for reports. Immutable."""

    drains: DrainList = DrainList()
    remaining: Mapping[int, Remaining] = {}    # OSD id → its shards, at the last refresh
    stuck: Tuple[StuckShards, ...] = ()        # of the last plan
    stop_check: Optional[StopCheck] = None     # of the empty OSDs; None: not known
    down: FrozenSet[int] = frozenset()         # OSDs of the list, at the last refresh
    is_lacking: bool = True                    # False if some are down and no PG lacked a copy
    epoch: Optional[int] = None                # of the osdmap at the last refresh
    is_old: bool = False                       # True if the osdmap has changed since

    @property
    def empty_osds(self) -> FrozenSet[int]:
        """Returns the OSDs without shards at the last refresh.

        An OSD that is down is not among them, because no set of a PG shows its shards.
        """
        return frozenset(osd for osd, left in self.remaining.items()
                         if not left.shards and osd not in self.down)

    @property
    def known_left(self) -> List[Remaining]:
        """Returns the shards on each OSD that is up; those of other OSDs are unknown."""
        return [one for osd, one in self.remaining.items() if osd not in self.down]

    @property
    def left_shards(self) -> int:
        """Returns the number of shards on all OSDs of the list."""
        return sum(one.shards for one in self.remaining.values())

    @property
    def is_known(self) -> bool:
        """Returns True if the shards on all OSDs of the list are known."""
        return self.remaining.keys() == self.drains.names.keys()

    @property
    def has_work(self) -> bool:
        """Returns True if shards may still have to leave that neither move nor are stuck."""
        if not self.is_known:
            return True
        for osd, left in self.remaining.items():
            stuck = sum([one.shards for one in self.stuck if one.osd == osd])
            if osd not in self.down and left.shards - left.leaving > stuck:
                return True
        return False

    @property
    def stuck_sentence(self) -> str:
        """Returns a sentence about shards that cannot leave; empty if there are none."""
        shards = sum([stuck.shards for stuck in self.stuck])
        if not shards:
            return ""
        if not self.left_shards:
            return ""
        return (f"{plural(shards, 'shard')} cannot leave {self.named}; 'ceph equilibrium drain ls'"
                " has the reasons")

    def as_of(self, epoch: int, without_pgs: FrozenSet[int] = frozenset()) -> DrainStatus:
        """Returns the status for an osdmap of that epoch.

        `without_pgs`: OSDs that report that they have no PG; these stay empty in any osdmap.
        """
        if self.epoch is None or epoch <= self.epoch:
            return self._replace(is_old=False)
        return self._replace(is_old=not self.empty_osds <= without_pgs)

    def is_safe(self, osd: int) -> Optional[bool]:
        """Returns whether an OSD of the list may be stopped; None if that is not known now."""
        left = self.remaining.get(osd)
        if osd in self.down:
            return False
        if left is not None and left.shards:
            return False
        if left is None or self.is_old:
            return None
        if self.stop_check is None or self.drains.is_paused:
            return None
        return self.stop_check.is_safe

    @property
    def are_safe(self) -> bool:
        """Returns True if all OSDs of the list may be stopped; False without any."""
        osds = self.drains.osds
        return bool(osds) and all(map(self.is_safe, osds))

    @property
    def down_sentence(self) -> str:
        """Returns a clause about OSDs that are down; empty if there are none."""
        down = self.down
        if not down:
            return ""
        first = f"osd.{min(down)}"
        more = len(down) - 1
        said = f"{first} is down"
        if more:
            said = f"{first} and {more} more are down"
        if not self.is_lacking:
            return f"{said}, and no PG lacks a copy"
        return (f"{said}: PGs that it held may lack a copy; start it again, or mark it out and wait"
                " until all PGs are clean")

    @property
    def not_safe_reason(self) -> str:
        """Returns a clause why the OSDs of the list are not safe to stop.

        It is empty if they are safe, the list is empty, or shards are left.
        """
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
        if self.stop_check is None:
            return "Ceph is asked whether it is safe to stop"
        return self.stop_check.reason

    @property
    def result_sentence(self) -> str:
        """Returns a clause about the remaining shards."""
        if self.down:
            return self.down_sentence
        left = self.left_shards
        if not left:
            return f"no shard is left on {self.named}"
        return f"{plural(left, 'shard is', 'shards are')} left on {self.named}"

    @property
    def named(self) -> str:
        """Returns the OSDs of the list in few words."""
        osds = self.drains.osds
        if len(osds) == 1:
            return f"osd.{min(osds)}"
        return f"the {len(osds)} OSDs that are drained"
