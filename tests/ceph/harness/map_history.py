"""Which upmap items came and went in which osdmap, read from the monitor's own old maps."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, FrozenSet, List, NamedTuple, Set, Tuple

from ..cluster import DaemonCluster
from ..daemons import ClusterError

Items = Dict[str, Tuple[Tuple[int, int], ...]]


class Batch(NamedTuple):
    """The PGs whose upmap items one epoch changed."""

    epoch: int
    at: float           # seconds since the epoch, by the monitor's clock
    pgids: List[str]
    targets: FrozenSet[int] = frozenset()   # OSDs that the new items move shards to


class MapHistory:
    """The upmap items of every epoch from `first` on."""

    def __init__(self, cluster: DaemonCluster) -> None:
        self.cluster = cluster
        self.first = self._newest()
        self._items: Dict[int, Items] = {}
        self._times: Dict[int, float] = {}

    def batches(self) -> List[Batch]:
        """Every change of upmap items after the first epoch, in order."""
        newest = self._newest()
        for epoch in range(self.first, newest + 1):
            if epoch not in self._items:
                self._read(epoch)
        found = []
        for epoch in range(self.first + 1, newest + 1):
            old, new = self._items[epoch - 1], self._items[epoch]
            changed = sorted(p for p in {*old, *new} if old.get(p) != new.get(p))
            if changed:
                found.append(Batch(epoch, self._times[epoch], changed))
        return found

    def additions(self) -> List[Batch]:
        """The batches that brought new pairs; what only took some away moves data back."""
        found = []
        for batch in self.batches():
            old, new = self._items[batch.epoch - 1], self._items[batch.epoch]
            pgids: List[str] = []
            targets: Set[int] = set()
            for pgid in batch.pgids:
                added = set(new.get(pgid, ())) - set(old.get(pgid, ()))
                if added:
                    pgids.append(pgid)
                    targets.update(target for _, target in added)
            if pgids:
                found.append(batch._replace(pgids=pgids, targets=frozenset(targets)))
        return found

    def _newest(self) -> int:
        return self.cluster.mon_json("osd stat")["epoch"]

    def _read(self, epoch: int) -> None:
        dump = self.cluster.osd_dump(epoch=epoch)
        self._items[epoch] = {entry["pgid"]: _pairs(entry) for entry in dump["pg_upmap_items"]}
        self._times[epoch] = seconds_of(dump["modified"])


def seconds_of(modified: str) -> float:
    """Seconds since the epoch, of a time as Ceph prints it."""
    return datetime.strptime(modified, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()


def _pairs(entry: Dict[str, Any]) -> Tuple[Tuple[int, int], ...]:
    return tuple((pair["from"], pair["to"]) for pair in entry["mappings"])


def to_clean(cluster: DaemonCluster) -> List[str]:
    """What a monitor would cancel of the present upmaps, as `osdmaptool --upmap-cleanup` says."""
    return to_clean_at(cluster, 0)


def to_clean_at(cluster: DaemonCluster, epoch: int) -> List[str]:
    """The same of an older map; 0 stands for the present one."""
    commands = cluster.work / "cleanup"
    commands.unlink(missing_ok=True)
    osdmaptool(cluster, epoch, "--upmap-cleanup", str(commands))
    return commands.read_text().split("\n")[:-1] if commands.exists() else []


def osdmaptool(cluster: DaemonCluster, epoch: int, *arguments: str) -> str:
    """What the tool says of an older map; 0 stands for the present one."""
    osdmap = str(cluster.work / "osdmap")
    answer = cluster.ceph(f"osd getmap {epoch or ''} -o {osdmap}")
    if answer.rc:
        raise ClusterError(f"osd getmap: {answer.err}")
    return cluster.processes.check(["osdmaptool", osdmap, *arguments]).out
