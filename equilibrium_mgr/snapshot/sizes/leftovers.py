"""What has left OSDs and takes space on them still."""
from __future__ import annotations

from typing import Any, Collection, Container, Dict, Mapping, NamedTuple, Optional

from ..look import Look
from ..pg_totals import PgTotals
from .uncompacted_omap import UncompactedOmap, reported_omap
from .undeleted_data import OsdContent, UndeletedData


class _Content(NamedTuple):
    """What OSDs reported at one look, and what they were known to hold. By OSD id."""

    look: Look
    up_bytes: Mapping[int, int]   # as what follows: PgTotals
    inbound: Mapping[int, int]
    outbound: Mapping[int, int]
    omap: Mapping[int, int]

    def excess_bytes(self, osds: Collection[int]) -> Dict[int, int]:
        """OSD id → bytes of data beyond what the shards take that it holds, also in part."""
        factors, found = self.look.surroundings.shard_ratios.factors, {}
        for stats in self.look.reading.osd_stats if osds else ():
            osd = stats["osd"]
            if osd in osds and osd in self.look.osds:
                data = _data_bytes(stats) if osd not in factors.drives else 0
                data = data or self.look.osds[osd].used_bytes
                held = (self.up_bytes.get(osd, 0) - self.inbound.get(osd, 0)
                        + self.outbound.get(osd, 0) - self.omap.get(osd, 0))
                found[osd] = int(data / factors.osds.get(osd, 1.0)) - held
        return found


class Leftovers:
    """Kept from one look to the next."""

    def __init__(self) -> None:
        self.uncompacted = UncompactedOmap()
        self.undeleted = UndeletedData()
        self._last: Optional[_Content] = None   # at the last look

    def copy(self) -> Leftovers:
        """One that remembers the same."""
        copied = Leftovers()
        copied.uncompacted, copied.undeleted = self.uncompacted.copy(), self.undeleted.copy()
        copied._last = self._last
        return copied

    def device_bytes(self, look: Look) -> Dict[int, int]:
        """OSD id → bytes of both, as its device has them."""
        factors = look.surroundings.shard_ratios.factors.osds
        found = self.uncompacted.bytes_by_osd()
        for osd, count in self.undeleted.bytes_by_osd().items():
            found[osd] = found.get(osd, 0) + int(count * factors.get(osd, 1.0))
        return found

    def update(self, look: Look, totals: PgTotals, pgids: Container[str]) -> None:
        """To be called after a look, with the sums over its PGs and their ids."""
        self.uncompacted.keep(pgids)
        osds = self.uncompacted.osds
        self.uncompacted.update({osd: totals.omap.get(osd, 0) for osd in osds},
                                reported_omap(look.reading.osd_stats) if osds else {})
        self.undeleted.keep(pgids)
        last, self._last = self._last, _Content(
            look, dict(totals.up_bytes), dict(totals.inbound), dict(totals.outbound),
            dict(totals.omap))
        self.undeleted.update(self._contents(self._last, last, totals))

    def _contents(self, now: _Content, last: Optional[_Content],
                  totals: PgTotals) -> Dict[int, OsdContent]:
        """OSD id → its content, of the OSDs that shards have left."""
        excess = now.excess_bytes(self.undeleted.osds)
        before = last.excess_bytes(excess) if last is not None else {}
        return {stats["osd"]: OsdContent(
            excess[stats["osd"]], before.get(stats["osd"]),
            stats.get("num_pgs", 0) - totals.pgs.get(stats["osd"], 0))
            for stats in (now.look.reading.osd_stats if excess else ()) if stats["osd"] in excess}


def _data_bytes(stats: Mapping[str, Any]) -> int:
    """Bytes of objects, without what RocksDB takes: that comes and goes by itself."""
    return max(0, int((stats.get("statfs") or {}).get("allocated", 0)))
