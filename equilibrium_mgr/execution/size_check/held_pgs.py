"""The PGs that have a shard on some OSDs, kept from one snapshot to the next."""
from __future__ import annotations

from typing import AbstractSet, Collection, Dict, Mapping, Optional, Set, Tuple

from ...runtime.amended_map import AmendedRows
from ...runtime.time_slice import piecewise
from ...snapshot.model import Pg

_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond
_UP, _HOLDERS = Pg._fields.index("up"), Pg._fields.index("holders")


class HeldPgs:
    """Costs what has changed, and a pass over all PGs where other OSDs are asked for."""

    def __init__(self) -> None:
        self._pgids: Dict[int, Set[str]] = {}   # OSD id → its PGs, of the OSDs asked for last
        self._pgs: Optional[AmendedRows[Pg]] = None   # those of the last snapshot, if it is kept

    def of(self, osds: Collection[int], pgs: Mapping[str, Pg]) -> Mapping[int, AbstractSet[str]]:
        """OSD → pgids of the PGs that have a shard there, or one in flight to it."""
        if not self._amend(pgs):
            self._pgids = {}
        for osd in self._pgids.keys() - set(osds):
            del self._pgids[osd]
        new: Dict[int, Set[str]] = {osd: set() for osd in osds if osd not in self._pgids}
        if new:
            for pg in piecewise(pgs.values(), _PGS_A_PIECE):
                for osd in _osds(pg.up, pg.holders):
                    if osd in new:
                        new[osd].add(pg.pgid)
        self._pgids.update(new)
        self._pgs = pgs if isinstance(pgs, AmendedRows) else None
        return self._pgids

    def forget(self) -> None:
        """Keeps nothing until it is asked again."""
        self._pgids, self._pgs = {}, None

    def _amend(self, pgs: Mapping[str, Pg]) -> bool:
        """Brings what is kept up to date; False where it does not tell what has changed."""
        before = self._pgs
        if before is None or not isinstance(pgs, AmendedRows):
            return False
        changed = pgs.changed_since(before)
        if changed is None:
            return False
        for pgid in piecewise(changed, _PGS_A_PIECE):
            old, new = before.row(pgid), pgs.row(pgid)
            # as rows, since all PGs change together where other sizes are believed
            if old[_UP] is not new[_UP] or old[_HOLDERS] is not new[_HOLDERS]:
                self._move(pgid, _osds(old[_UP], old[_HOLDERS]), _osds(new[_UP], new[_HOLDERS]))
        return True

    def _move(self, pgid: str, before: Set[int], after: Set[int]) -> None:
        for osd in before - after:
            if osd in self._pgids:
                self._pgids[osd].discard(pgid)
        for osd in after - before:
            if osd in self._pgids:
                self._pgids[osd].add(pgid)


def _osds(up: Tuple[int, ...], holders: Tuple[int, ...]) -> Set[int]:
    return {*up, *holders}
