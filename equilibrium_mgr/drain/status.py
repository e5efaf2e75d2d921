"""How far drains are, as the loop publishes it."""
from __future__ import annotations

from typing import FrozenSet, Mapping, NamedTuple, Optional, Tuple

from ..plan.model import StuckShards
from ..runtime.formatting import plural
from .drain_list import DrainList
from .remaining import Remaining


class StopCheck(NamedTuple):
    """What Ceph says to `ceph osd ok-to-stop` of some OSDs together."""

    is_safe: bool
    reason: str   # a sentence of Ceph's where it is not


class DrainStatus(NamedTuple):
    """What reports read of the drains. Nothing in it is edited."""

    drains: DrainList = DrainList()
    remaining: Mapping[int, Remaining] = {}    # OSD id → what is left, as of the last look
    stuck: Tuple[StuckShards, ...] = ()        # as of the last plan
    stop_check: Optional[StopCheck] = None     # of the empty OSDs; None: not known

    @property
    def empty_osds(self) -> FrozenSet[int]:
        """OSDs that no shard is left on, by the last look."""
        return frozenset(osd for osd, left in self.remaining.items() if not left.shards)

    @property
    def is_known(self) -> bool:
        """True where all OSDs of the list have been looked at."""
        return self.remaining.keys() == self.drains.names.keys()

    @property
    def has_work(self) -> bool:
        """True where shards may still have to be sent on their way: those that neither are nor have
        been found to have no other place."""
        return not self.is_known or (
            sum(left.shards - left.leaving for left in self.remaining.values())
            > sum(stuck.shards for stuck in self.stuck))

    @property
    def stuck_sentence(self) -> str:
        """What cannot leave, as a clause; empty where everything can or has."""
        shards = sum(stuck.shards for stuck in self.stuck)
        if not shards or not any(left.shards for left in self.remaining.values()):
            return ""
        return (f"{plural(shards, 'shard')} cannot leave {self.named}; 'ceph equilibrium drain ls'"
                " has the reasons")

    @property
    def result_sentence(self) -> str:
        """What is left, as a clause."""
        left = sum(one.shards for one in self.remaining.values())
        return (f"{plural(left, 'shard is', 'shards are')} left on {self.named}" if left
                else f"no shard is left on {self.named}")

    @property
    def named(self) -> str:
        """The OSDs of the list in few words."""
        osds = sorted(self.drains.osds)
        return f"osd.{osds[0]}" if len(osds) == 1 else f"the {len(osds)} OSDs that are drained"
