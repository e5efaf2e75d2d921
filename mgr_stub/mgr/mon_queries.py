"""Read-only monitor commands: answered at once, without an epoch or a log entry."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Optional

from ..osdmap.osd_map import OsdMap


def answer_to(command: Dict[str, Any], osdmap: OsdMap, release: int) -> Optional[str]:
    """The output of a known query; None for any other command."""
    prefix = command.get("prefix", "")
    if prefix == "osd dump" and command.get("format") == "json":
        return json.dumps(osdmap.dump(release))
    query = _QUERIES.get(prefix)
    return None if query is None else query(osdmap)


def _osd_stat(osdmap: OsdMap) -> str:
    """As `ceph osd stat`; the line of flags is present only if one is set."""
    up = sum(1 for osd in osdmap.osds.values() if osd["up"])
    inside = sum(1 for osd in osdmap.osds.values() if osd["in"])
    text = f"{len(osdmap.osds)} osds: {up} up, {inside} in; epoch: e{osdmap.epoch}\n"
    flags = sorted(osdmap.flags - _HIDDEN_FLAGS)
    return text + (f"flags {','.join(flags)}\n" if flags else "")


#: Flags of every map, which `osd stat` leaves out.
_HIDDEN_FLAGS = frozenset(("sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit"))

_QUERIES: Dict[str, Callable[[OsdMap], str]] = {
    "osd stat": _osd_stat,
    "osd get-require-min-compat-client": lambda osdmap: osdmap.min_compat_client + "\n",
}
