"""The OSDs that an operator wants emptied, by name; stored for the next mgr.

Operators name OSDs by 3, osd.3, or a bucket such as a host or a rack.
"""
from __future__ import annotations

import json
from typing import (
    Any, Collection, Container, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Set, Tuple)

from ..crush.hierarchy import CrushHierarchy
from ..plan.options import osds_named
from ..runtime.kv_store import MAX_VALUE_BYTES
from ..runtime.time_slice import grouped
from ..snapshot.model import Osd


_MOST_NOTES = 10   # only the newest are kept
_MOST_BYTES = MAX_VALUE_BYTES - 4096   # of a stored list without its notes
#: So many first letters of an OSD's uuid are stored, to save space.
_DISK_LETTERS = 6
_MOST_SECONDS = 1e11   # since the epoch; no later moment can be shown


class DrainList(NamedTuple):
    """The OSDs on the list. The module replaces it whole and never edits it."""

    names: Mapping[int, str] = {}   # OSD id → the name in the operator's command
    is_paused: bool = False         # since `off`, until `on` or `drain add`
    notes: Tuple[Tuple[float, str], ...] = ()   # (seconds since the epoch, why an OSD left)
    disks: Mapping[int, str] = {}   # OSD id → first letters of its uuid, once known

    @property
    def osds(self) -> FrozenSet[int]:
        """Returns the ids of all OSDs on the list, paused or not."""
        return frozenset(self.names)

    @property
    def is_running(self) -> bool:
        """Returns True if shards have to leave OSDs now."""
        return bool(self.names) and not self.is_paused

    def by_name(self) -> Dict[str, List[int]]:
        """Returns name → its OSDs on the list, both in order."""
        return grouped(sorted((name, osd) for osd, name in self.names.items()))

    def with_osds(self, names: Mapping[int, str]) -> DrainList:
        """Returns the list with these OSDs and without a pause.

        OSDs that are on it already keep their name. Their disk is forgotten, and noted again by the
        next snapshot.
        """
        disks = _except(self.disks, names)
        return self._replace(names={**names, **self.names}, is_paused=False, disks=disks)

    @property
    def fits(self) -> bool:
        """Returns True if the list is short enough to be stored."""
        return len(json.dumps(self._replace(notes=()).to_dict())) <= _MOST_BYTES

    def without(self, osds: Container[int]) -> DrainList:
        """Returns the list without these OSDs."""
        names = _except(self.names, osds)
        is_paused = self.is_paused and bool(names)
        return self._replace(names=names, is_paused=is_paused, disks=_except(self.disks, osds))

    def paused(self, is_paused: bool) -> DrainList:
        """Returns the list after `off` or `on`; an empty list cannot be paused."""
        return self._replace(is_paused=is_paused and bool(self.names))

    def without_gone(self, osds: Mapping[int, Osd], now: float) -> DrainList:
        """Returns the list without OSDs that no longer exist, are destroyed, or have another disk
        than at first.

        A drain does not go on with a new disk, because that has to get data. Each OSD that leaves
        the list leaves a note. The disks of the others are remembered.
        """
        disks = dict(self.disks)
        notes: List[Tuple[float, str]] = []
        gone: Set[int] = set()
        for number, name in sorted(self.names.items()):
            osd = osds.get(number)
            disk = osd.uuid[:_DISK_LETTERS] if osd is not None else ""
            if osd is None:
                reason = "no longer exists"
            elif osd.destroyed:
                reason = "was destroyed"
            elif disk and disks.setdefault(number, disk) != disk:
                reason = "has another disk now"
            else:
                continue
            gone.add(number)
            notes.append((now, f"osd.{number} ({name}) {reason} and has left the list"))
        kept = (*self.notes, *notes)[-_MOST_NOTES:]
        return self._replace(disks=disks, notes=kept).without(gone)

    def to_dict(self) -> Dict[str, Any]:
        """Returns a JSON-ready form, which is short if a bucket has many OSDs."""
        disks = [self.disks.get(osd, "").ljust(_DISK_LETTERS) for osd in sorted(self.names)]
        return {
            "osds": self.by_name(),
            "paused": self.is_paused,
            "uuids": "".join(disks),
            "notes": [[int(at), note] for at, note in self.notes]}


def _except(values: Mapping[int, str], osds: Container[int]) -> Dict[int, str]:
    """Returns the values of all OSDs except `osds`."""
    return {osd: value for osd, value in values.items() if osd not in osds}


def drain_list_from_dict(stored: Mapping[str, Any]) -> DrainList:
    """Returns the list of `DrainList.to_dict`; empty if the dict cannot be read."""
    try:
        names: Dict[int, str] = {}
        for name, osds in stored.get("osds", {}).items():
            names.update(dict.fromkeys(map(int, osds), str(name)))
        notes = tuple([(float(at), str(note)) for at, note in stored.get("notes", [])])
        if not all(0.0 <= at < _MOST_SECONDS for at, _ in notes):
            return DrainList()
        known = str(stored.get("uuids", ""))
        disks: Dict[int, str] = {}
        for number, osd in enumerate(sorted(names)):
            disk = known[number * _DISK_LETTERS:(number + 1) * _DISK_LETTERS].strip()
            if disk:
                disks[osd] = disk
    except (AttributeError, TypeError, ValueError):
        return DrainList()
    return DrainList(names, bool(stored.get("paused")) and bool(names), notes, disks)


def osds_by_name(names: Sequence[str], crush: CrushHierarchy,
                 present: Collection[int]) -> Dict[int, str]:
    """Returns OSD id → the first of the names that means it.

    Raises ValueError, with one sentence for operators, if a name means no OSD.
    """
    found: Dict[int, str] = {}
    for name in names:
        osds = (osds_named(name, crush) or frozenset()).intersection(present)
        if not osds:
            raise ValueError(f"no OSD (3 or osd.3), and no bucket of the CRUSH map with OSDs, has"
                             f" the name '{name[:64]}'")
        for osd in sorted(osds):
            found.setdefault(osd, f"osd.{osd}" if name == str(osd) else name)
    return found
