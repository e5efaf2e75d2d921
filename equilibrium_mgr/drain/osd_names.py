"""OSDs by the names that operators use: 3, osd.3, or a bucket such as a host or a rack."""
from __future__ import annotations

from typing import Collection, Dict, Sequence

from ..crush.hierarchy import CrushHierarchy
from ..plan.osd_filter import osds_named


class UnknownName(ValueError):
    """A name is no OSD and no bucket; the message is one sentence for operators."""


def osds_by_name(names: Sequence[str], crush: CrushHierarchy,
                 present: Collection[int]) -> Dict[int, str]:
    """OSD id → the first of the names that means it. Raises UnknownName."""
    found: Dict[int, str] = {}
    for name in names:
        osds = (osds_named(name, crush) or frozenset()).intersection(present)
        if not osds:
            raise UnknownName(f"no OSD (3 or osd.3), and no bucket of the CRUSH map with OSDs, has"
                              f" the name '{name[:64]}'")
        for osd in sorted(osds):
            found.setdefault(osd, f"osd.{osd}" if name == str(osd) else name)
    return found
