"""Why an OSD that is being drained still has shards."""
from __future__ import annotations

from ...runtime.formatting import format_bytes, plural
from ...snapshot import reason_codes as codes
from ...snapshot.reason_codes import REASONS, action
from ..drains import is_blocked, stuck_action
from .at_rest import state_action
from .reason import ExplainContext, Reason


def drained_reason(osd: int, what: str, context: ExplainContext) -> Reason:
    """`what`: the OSD as the first line of the answer has it."""
    status, drains = context.status, context.status.drains
    left = drains.remaining.get(osd)
    if osd in drains.down:
        return Reason(what, codes.TARGET_UNAVAILABLE,
                      action(codes.TARGET_UNAVAILABLE, {"osd": osd}),
                      f"it is being drained; {drains.down_sentence}")
    if left is None or not left.shards:
        rest = "" if left is None else ", and no shard is left"
        return Reason(what, codes.BALANCED, action(codes.BALANCED, {}),
                      f"it is being drained{rest}")
    said = (f"it is being drained: {plural(left.shards, 'shard')}, {format_bytes(left.bytes)} left,"
            f" {left.leaving} on their way")
    if drains.drains.is_paused:
        return Reason(what, codes.SWITCHED_OFF, "'ceph equilibrium drain add"
                      f" osd.{osd}' goes on", f"{said}; paused by 'ceph equilibrium off'")
    if drains.cooling(osd):
        said += f"; {drains.cooling_sentence}"
    stuck = sorted((one for one in drains.held if one.osd == osd), key=lambda one: -one.shards)
    said += "".join(f"; {one.shards} cannot leave: {REASONS[one.code].stuck}, such as pg {one.example}"
                    for one in stuck)
    if is_blocked(status):
        return Reason(what, status.reason_code,
                      state_action(status, context.view, context.settings, context.now),
                      f"{status.reason}; {said}")
    if not stuck:
        return Reason(what, codes.MOVING, action(codes.MOVING, {}), said)
    return Reason(what, codes.CANNOT_LEAVE, stuck_action(stuck[0], context.settings), said)
