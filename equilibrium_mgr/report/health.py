"""Health checks: a few stable codes, each with its remedy."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ..control.balancing_scope import BadOption, cures
from ..control.status import BalancerStatus
from ..execution.guards import CURE_BUILTIN
from ..execution.size_check.size_corrections import sentence
from ..observation.too_full import sentences

_DETAILS = 20


def health_checks(status: BalancerStatus, active: bool, failure: str, now: float,
                  bad: Sequence[BadOption] = ()) -> Dict[str, Any]:
    """The present checks, as MgrModule.set_health_checks takes them; `now` since the epoch."""
    checks: Dict[str, Any] = {}
    view = status.view
    wants_to_move = active or status.progress is not None
    if wants_to_move and status.builtin_active:
        checks["MGR_EQUILIBRIUM_CONFLICT"] = _warning(
            "the built-in balancer and equilibrium are both active", 1,
            [f"equilibrium sends nothing meanwhile; run '{CURE_BUILTIN}'"])
    if wants_to_move and view is not None and view.too_full:
        pgs = len({pgid for entry in view.too_full for pgid in entry.pgids})
        checks["MGR_EQUILIBRIUM_TOOFULL"] = _warning(
            f"{pgs} PGs stand still because an OSD is too full for them", pgs,
            sentences(view.snapshot, view.too_full[:_DETAILS]))
    if status.mispredicted:
        names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
        checks["MGR_EQUILIBRIUM_MISPREDICTED"] = _warning(
            f"shards of {len(status.mispredicted)} pools took more than was predicted; they are not"
            " moved any more", len(status.mispredicted),
            [sentence(found, names.get(pool, str(pool)))
             for pool, found in sorted(status.mispredicted.items())[:_DETAILS]])
    rejected = status.recent_rejections(active, now)
    if rejected:
        checks["MGR_EQUILIBRIUM_APPLY_FAILED"] = _warning(
            f"{len(rejected)} upmaps were not kept by the monitor", len(rejected),
            [f"pg {pgid}: {item.reason}"
             for pgid, item in sorted(rejected.items())[:_DETAILS]])
    if bad:
        checks["MGR_EQUILIBRIUM_BAD_OPTION"] = _warning(
            f"{len(bad)} values of options of equilibrium cannot be used", len(bad),
            [one.sentence() for one in bad[:_DETAILS]] + [cures(bad)])
    if failure:
        checks["MGR_EQUILIBRIUM_ERROR"] = _warning(
            "equilibrium failed and will try again", 1, [failure])
    return checks


def _warning(summary: str, count: int, detail: List[str]) -> Dict[str, Any]:
    return {"severity": "warning", "summary": summary, "count": count, "detail": detail}
