"""Monitor commands that only ask: answered at once, without an epoch and without a log entry."""

from __future__ import annotations

import json
from typing import Callable, Dict, Optional

from ..osdmap.osd_map import OsdMap


def answer_to(command_json: str, osdmap: OsdMap, release: int) -> Optional[str]:
    """The output of a question that the monitor knows; None for anything else."""
    try:
        command = json.loads(command_json)
        prefix = command.get("prefix", "")
    except (ValueError, AttributeError):
        return None
    if prefix == "osd dump" and command.get("format") == "json":
        return json.dumps(osdmap.dump(release))
    question = _QUESTIONS.get(prefix)
    return None if question is None else question(osdmap)


def _osd_stat(osdmap: OsdMap) -> str:
    """As `ceph osd stat`; the line of flags is there only where one is set."""
    up = sum(1 for osd in osdmap.osds.values() if osd["up"])
    inside = sum(1 for osd in osdmap.osds.values() if osd["in"])
    text = f"{len(osdmap.osds)} osds: {up} up, {inside} in; epoch: e{osdmap.epoch}\n"
    flags = sorted(osdmap.flags - _HIDDEN_FLAGS)
    return text + (f"flags {','.join(flags)}\n" if flags else "")


#: What every map has and `osd stat` leaves out.
_HIDDEN_FLAGS = frozenset(("sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit"))

_QUESTIONS: Dict[str, Callable[[OsdMap], str]] = {
    "osd stat": _osd_stat,
    "osd get-require-min-compat-client": lambda osdmap: osdmap.min_compat_client + "\n",
}
