"""`osd ok-to-stop`: would PGs be inactive without some OSDs? As DaemonServer of the mgr answers."""

from __future__ import annotations

import errno
import json
from typing import Set, Tuple

from ..cluster import pg_reports
from ..cluster.cluster import Cluster
from ..crush.constants import NONE


def ok_to_stop(cluster: Cluster, osds: Set[int]) -> Tuple[int, str, str]:
    """(0 or -EBUSY, JSON, a sentence). PGs that nobody has reported yet count as not ok."""
    refused = unknown = 0
    for pg in cluster.pgs.values():
        state = pg_reports.state_of(cluster, pg).split("+")
        if "unknown" in state:
            unknown += 1
            continue
        acting = {osd for osd in cluster.map.acting(pg.pgid) if osd != NONE}
        if acting & osds and ("active" not in state
                              or len(acting - osds) < cluster.min_size_of(pg)):
            refused += 1
    answer = json.dumps({"ok_to_stop": not (refused or unknown), "osds": sorted(osds)})
    if unknown:
        return -errno.EBUSY, answer, (
            f"{unknown} pgs have unknown state; cannot draw any conclusions")
    if refused:
        return -errno.EBUSY, answer, (
            f"unsafe to stop osd(s) at this time ({refused} PGs are or would become offline)")
    return 0, answer, ""
