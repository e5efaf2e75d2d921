"""Why an OSD that is being drained still has shards."""
from __future__ import annotations

from ...drain.status import DrainStatus
from ...runtime.formatting import format_bytes, plural
from ...snapshot import reason_codes as codes
from ..drains import why_stuck
from .actions import action
from .reason import Reason


def drained_reason(osd: int, what: str, drains: DrainStatus) -> Reason:
    """`what`: the OSD as the first line of the answer has it."""
    left = drains.remaining.get(osd)
    if left is None or not left.shards:
        rest = "" if left is None else ", and no shard is left"
        return Reason(what, codes.BALANCED, action(codes.BALANCED, {}),
                      f"it is being drained{rest}")
    said = (f"it is being drained: {plural(left.shards, 'shard')}, {format_bytes(left.bytes)} left,"
            f" {left.leaving} on their way")
    if drains.drains.is_paused:
        return Reason(what, codes.SWITCHED_OFF, "'ceph equilibrium drain add"
                      f" osd.{osd}' goes on", f"{said}; paused by 'ceph equilibrium off'")
    stuck = sorted((one for one in drains.stuck if one.osd == osd), key=lambda one: -one.shards)
    if not stuck:
        return Reason(what, codes.MOVING, action(codes.MOVING, {}), said)
    reasons = "; ".join(f"{one.shards} cannot leave: {why_stuck(one.code)}, such as pg"
                        f" {one.example}" for one in stuck)
    return Reason(what, codes.CANNOT_LEAVE, action(stuck[0].code, {"osd": osd}),
                  f"{said}; {reasons}")
