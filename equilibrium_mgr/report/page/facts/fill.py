"""How full OSDs and hosts are now, and how full they will be."""
from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ....observation.cluster_view import ClusterView

#: Stands for the host of an OSD that is in no bucket of the type host.
NO_HOST = "no host"


class Fill(NamedTuple):
    """One OSD, or the OSDs of one device class on one host."""

    name: str
    device_class: str
    host: str
    osds: int
    size_bytes: int
    now_bytes: int                 # as OSDs report them
    later_bytes: Optional[int]     # with the plan, or when everything in flight has arrived
    max_now: float                 # of the fullest OSD, a ratio
    max_later: Optional[float]

    @property
    def now(self) -> float:
        """Used bytes ÷ size now."""
        return self.now_bytes / self.size_bytes

    @property
    def later(self) -> Optional[float]:
        """Used bytes ÷ size later."""
        return None if self.later_bytes is None else self.later_bytes / self.size_bytes


def osd_fills(view: ClusterView, later_bytes: Optional[Mapping[int, int]]) -> List[Fill]:
    """All OSDs that are in and have statistics, the fullest first. `later_bytes`: OSD → used bytes
    later; None where nothing is to change."""
    fills: List[Fill] = []
    for osd in view.snapshot.osds.values():
        if not (osd.has_statistics and osd.is_in and osd.size_bytes > 0):
            continue
        now = view.used_now.get(osd.id, osd.used_bytes)
        later = None if later_bytes is None else later_bytes.get(osd.id)
        fills.append(Fill(
            f"osd.{osd.id}", osd.device_class, osd.host or NO_HOST, 1,
            osd.device_size, view.device_used_now.get(osd.id, now),
            None if later is None else osd.device_bytes(later),
            now / osd.size_bytes, None if later is None else later / osd.size_bytes))
    return sorted(fills, key=lambda fill: -fill.now)


def host_fills(osds: Iterable[Fill]) -> List[Fill]:
    """The same by host and device class, the one with the fullest OSD first."""
    groups: Dict[Tuple[str, str], List[Fill]] = {}
    for osd in osds:
        groups.setdefault((osd.host, osd.device_class), []).append(osd)
    fills = [Fill(host, device_class, host, len(group), sum(o.size_bytes for o in group),
                  sum(o.now_bytes for o in group),
                  _sum_of([o.later_bytes for o in group]), max(o.now for o in group),
                  max((o.later for o in group if o.later is not None), default=None))
             for (host, device_class), group in groups.items()]
    return sorted(fills, key=lambda fill: -fill.max_now)


def _sum_of(values: List[Optional[int]]) -> Optional[int]:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
