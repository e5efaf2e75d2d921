"""The OSDs that are to be emptied, as an operator has named them; stored for the next mgr.

OSDs by the names that operators use: 3, osd.3, or a bucket such as a host or a rack.
"""
from __future__ import annotations

import json
from typing import Any, Collection, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..plan.options import osds_named
from ..runtime.kv_store import MAX_VALUE_BYTES
from ..runtime.time_slice import grouped
from ..snapshot.model import Osd


#: Notes that are kept, the newest; and bytes that a stored list may have beside them.
_MOST_NOTES = 10
_MOST_BYTES = MAX_VALUE_BYTES - 4096
#: First letters of an OSD's uuid, which are stored instead of it: they take less room.
_DISK_LETTERS = 6
_MOST_SECONDS = 1e11   # since the epoch; no later moment can be shown


class DrainList(NamedTuple):
    """Replaced whole, never edited."""

    names: Mapping[int, str] = {}   # OSD id → the name that it was given by
    is_paused: bool = False         # by `off`, until `on` or `drain add`
    notes: Tuple[Tuple[float, str], ...] = ()   # (seconds since the epoch, what became of an OSD)
    disks: Mapping[int, str] = {}   # OSD id → begin of its uuid, once that has been seen

    @property
    def osds(self) -> FrozenSet[int]:
        """Ids of the OSDs that are being drained, or are to be once it is no longer paused."""
        return frozenset(self.names)

    @property
    def is_running(self) -> bool:
        """True where shards are to leave OSDs now."""
        return bool(self.names) and not self.is_paused

    def by_name(self) -> Dict[str, List[int]]:
        """Name → its OSDs that are on the list, both in order."""
        return grouped(sorted((name, osd) for osd, name in self.names.items()))

    def with_osds(self, names: Mapping[int, str]) -> DrainList:
        """Adds OSDs; those that are on the list keep their name. Ends a pause."""
        return self._replace(names={**names, **self.names}, is_paused=False,
                             disks={osd: disk for osd, disk in self.disks.items()
                                    if osd not in names})

    @property
    def fits(self) -> bool:
        """True where the list is short enough to be stored."""
        return len(json.dumps(self._replace(notes=()).to_dict())) <= _MOST_BYTES

    def without(self, osds: FrozenSet[int]) -> DrainList:
        """Takes OSDs off the list."""
        left = {osd: name for osd, name in self.names.items() if osd not in osds}
        return self._replace(names=left, is_paused=self.is_paused and bool(left), disks={
            osd: disk for osd, disk in self.disks.items() if osd not in osds})

    def paused(self, is_paused: bool) -> DrainList:
        """The list after `off` or `on`; without OSDs nothing can be paused."""
        return self._replace(is_paused=is_paused and bool(self.names))

    def without_gone(self, osds: Mapping[int, Osd], now: float) -> DrainList:
        """The list without OSDs that no longer exist, are destroyed, or have another disk than when
        they were first seen, with a note of them: a new disk is to be filled. Knows the disks of
        all others."""
        found = {osd: osds[osd] for osd in self.osds if osd in osds}
        disks = {osd: one.uuid[:_DISK_LETTERS] for osd, one in found.items() if one.uuid}
        why = {osd: "no longer exists" for osd in self.osds if osd not in osds}
        why.update((osd, "has another disk now") for osd, disk in disks.items()
                   if self.disks.get(osd, disk) != disk)
        why.update((osd, "was destroyed") for osd, one in found.items() if one.destroyed)
        notes = tuple((now, f"osd.{osd} ({self.names[osd]}) {why[osd]} and has left the list")
                      for osd in sorted(why))
        return self._replace(disks={**self.disks, **disks}, notes=(
            self.notes + notes)[-_MOST_NOTES:]).without(frozenset(why))

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form, short where a bucket has many OSDs."""
        return {"osds": self.by_name(), "paused": self.is_paused,
                "uuids": "".join([self.disks.get(osd, "").ljust(_DISK_LETTERS)
                                  for osd in sorted(self.names)]),
                "notes": [[int(at), note] for at, note in self.notes]}


def drain_list_from_dict(stored: Mapping[str, Any]) -> DrainList:
    """The reverse of DrainList.to_dict; what cannot be read counts as absent."""
    try:
        names = {int(osd): str(name) for name, osds in stored.get("osds", {}).items()
                 for osd in osds}
        notes = tuple((float(at), str(note)) for at, note in stored.get("notes", []))
        if not all(0.0 <= at < _MOST_SECONDS for at, _ in notes):
            return DrainList()
        known = str(stored.get("uuids", ""))
        disks = {osd: known[number * _DISK_LETTERS:(number + 1) * _DISK_LETTERS].strip()
                 for number, osd in enumerate(sorted(names))}
        disks = {osd: disk for osd, disk in disks.items() if disk}
    except (AttributeError, TypeError, ValueError):
        return DrainList()
    return DrainList(names, bool(stored.get("paused")) and bool(names), notes, disks)


def osds_by_name(names: Sequence[str], crush: CrushHierarchy,
                 present: Collection[int]) -> Dict[int, str]:
    """OSD id → the first of the names that means it. Raises ValueError, with one sentence for
    operators, for a name of nothing."""
    found: Dict[int, str] = {}
    for name in names:
        osds = (osds_named(name, crush) or frozenset()).intersection(present)
        if not osds:
            raise ValueError(f"no OSD (3 or osd.3), and no bucket of the CRUSH map with OSDs, has"
                             f" the name '{name[:64]}'")
        for osd in sorted(osds):
            found.setdefault(osd, f"osd.{osd}" if name == str(osd) else name)
    return found
