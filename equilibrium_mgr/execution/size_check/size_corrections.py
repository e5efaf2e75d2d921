"""Corrections of shard sizes that moves have shown: pools that are stopped, and bytes to add.

They survive the mgr. `on` lets stopped pools go on with the sizes that were measured, and `execute`
those of its plan.
"""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Mapping, Optional

from ...runtime.formatting import format_bytes
from .prediction import Findings, Misprediction

#: Pools that are remembered; the oldest go first. A cluster has fewer pools of such a kind.
_MOST_POOLS = 200
#: Seconds for which measured sizes are used.
_BELIEVED_SECONDS = 7 * 86400.0
#: No object has taken more bytes than this on a device beyond what was believed.
_MOST_PER_OBJECT = 1e12


class SizeCorrections:
    """Both mappings are replaced whole: commands read them while the serve thread works."""

    def __init__(self) -> None:
        self.stopped: Mapping[int, Misprediction] = {}      # by pool id, the worst of each
        self.bytes_per_object: Mapping[int, float] = {}     # by pool id, of each shard
        self.measured_at = 0.0   # the newest of them, seconds since the epoch

    def add(self, findings: Findings) -> None:
        """Stops the pools that were mispredicted, and adds what was measured to their shards."""
        stopped = dict(self.stopped)
        for found in findings.mispredictions:
            known = stopped.pop(found.pool, None)
            stopped[found.pool] = found if known is None or _excess(found) > _excess(
                known) else known
        added = dict(self.bytes_per_object)
        for pool, per_object in findings.bytes_per_object.items():
            added[pool] = added.pop(pool, 0.0) + per_object
        self.measured_at = max([self.measured_at]
                               + [found.found_at for found in findings.mispredictions])
        self.stopped = dict(list(stopped.items())[-_MOST_POOLS:])
        self.bytes_per_object = dict(list(added.items())[-_MOST_POOLS:])

    def resume(self, now: float, pools: Optional[FrozenSet[int]] = None) -> None:
        """Lets pools go on with the sizes that were measured, all of them where none are named.
        These sizes are believed for as long again, however long the pools were stopped."""
        if self.stopped:
            self.measured_at = now
        self.stopped = {} if pools is None else {
            pool: found for pool, found in self.stopped.items() if pool not in pools}

    def prune(self, pools: FrozenSet[int], now: float) -> None:
        """Forgets deleted pools, whose ids are never used again, and sizes that were measured more
        than a week ago: a wrong one must not stay for ever, and a right one is measured again.
        Sizes of stopped pools stay, since the pools go on with them."""
        if self.bytes_per_object and now - self.measured_at > _BELIEVED_SECONDS:
            self.bytes_per_object = {pool: per_object for pool, per_object
                                     in self.bytes_per_object.items() if pool in self.stopped}
        if not pools.issuperset(self.bytes_per_object) or not pools.issuperset(self.stopped):
            self.stopped = {p: found for p, found in self.stopped.items() if p in pools}
            self.bytes_per_object = {
                p: per_object for p, per_object in self.bytes_per_object.items() if p in pools}

    def reasons(self, names: Mapping[int, str]) -> Dict[int, str]:
        """Pool id → why nothing of it is sent, as a sentence; `names`: pool id → name."""
        return {pool: sentence(found, names.get(pool, str(pool)))
                for pool, found in self.stopped.items()}

    def to_dict(self) -> Dict[str, Any]:
        """For the key-value store."""
        return {"measured_at": self.measured_at,
                "stopped": [list(found) for found in self.stopped.values()],
                "bytes_per_object": {str(p): v for p, v in self.bytes_per_object.items()}}

    def restore(self, dump: Mapping[str, Any]) -> None:
        """Takes over what another mgr has kept, as far as it can be understood."""
        stopped: Dict[int, Misprediction] = {}
        rows, added = dump.get("stopped"), dump.get("bytes_per_object")
        for row in rows if isinstance(rows, list) else ():
            try:
                pool, osd, predicted, measured, found_at = row
                stopped[int(pool)] = Misprediction(
                    int(pool), int(osd), int(predicted), int(measured), float(found_at))
            except (TypeError, ValueError, OverflowError):
                continue
        per_object: Dict[int, float] = {}
        for pool, value in added.items() if isinstance(added, dict) else ():
            try:
                if 0.0 < float(value) <= _MOST_PER_OBJECT:
                    per_object[int(pool)] = float(value)
            except (TypeError, ValueError, OverflowError):
                continue
        at = dump.get("measured_at")
        self.measured_at = float(at) if isinstance(at, (int, float)) else 0.0
        self.stopped, self.bytes_per_object = stopped, per_object


def sentence(found: Misprediction, name: str) -> str:
    """For people: the misprediction, and the command that lets the pool go on."""
    return (f"pool '{name}' took {format_bytes(found.measured_bytes)} on osd.{found.osd} where"
            f" {format_bytes(found.predicted_bytes)} were predicted; 'ceph equilibrium on' goes on"
            " with the measured size")


def _excess(found: Misprediction) -> int:
    return found.measured_bytes - found.predicted_bytes
