"""The OSDs that are to be emptied, as an operator has named them; stored for the next mgr."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Tuple

#: Notes that are kept, the newest.
_MOST_NOTES = 10


class DrainList(NamedTuple):
    """Replaced whole, never edited."""

    names: Mapping[int, str] = {}   # OSD id → the name that it was given by
    is_paused: bool = False         # by `off`, until `on` or `drain add`
    notes: Tuple[Tuple[float, str], ...] = ()   # (seconds since the epoch, what became of an OSD)

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
        found: Dict[str, List[int]] = {}
        for osd, name in sorted(self.names.items(), key=lambda item: (item[1], item[0])):
            found.setdefault(name, []).append(osd)
        return found

    def with_osds(self, names: Mapping[int, str]) -> DrainList:
        """Adds OSDs; those that are on the list keep their name. Ends a pause."""
        return self._replace(names={**names, **self.names}, is_paused=False)

    def without(self, osds: FrozenSet[int]) -> DrainList:
        """Takes OSDs off the list."""
        left = {osd: name for osd, name in self.names.items() if osd not in osds}
        return self._replace(names=left, is_paused=self.is_paused and bool(left))

    def paused(self, is_paused: bool) -> DrainList:
        """The list after `off` or `on`; without OSDs nothing can be paused."""
        return self._replace(is_paused=is_paused and bool(self.names))

    def without_gone(self, present: FrozenSet[int], now: float) -> DrainList:
        """The list without OSDs that no longer exist, with a note of them."""
        gone = sorted(self.osds - present)
        if not gone:
            return self
        notes = tuple((now, f"osd.{osd} ({self.names[osd]}) no longer exists and has left the list")
                      for osd in gone)
        return self.without(frozenset(gone))._replace(notes=(self.notes + notes)[-_MOST_NOTES:])

    def to_dict(self) -> Dict[str, Any]:
        """A JSON-ready form, short where a bucket has many OSDs."""
        return {"osds": self.by_name(), "paused": self.is_paused,
                "notes": [[int(at), note] for at, note in self.notes]}


def drain_list_from_dict(stored: Mapping[str, Any]) -> DrainList:
    """The reverse of DrainList.to_dict; what cannot be read counts as absent."""
    try:
        names = {int(osd): str(name) for name, osds in stored.get("osds", {}).items()
                 for osd in osds}
        notes = tuple((float(at), str(note)) for at, note in stored.get("notes", []))
    except (AttributeError, TypeError, ValueError):
        return DrainList()
    return DrainList(names, bool(stored.get("paused")) and bool(names), notes)
