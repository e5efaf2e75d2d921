"""Health checks: a few stable codes, one line a reason, and last the command that helps.

One is raised once its condition has held for two rounds, and cleared after two without.
"""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence

from ..control.balancing_scope import cures
from ..control.status import BalancerStatus
from ..execution.guards import CURE_BUILTIN
from ..execution.outcomes import recent
from ..execution.size_check import sentence
from ..observation.cluster_view import PLANNING, STUCK, WAITING
from ..runtime.formatting import format_duration, named, named_osds, plural
from ..runtime.time_slice import grouped
from ..settings import BadOption
from ..snapshot import reason_codes as codes
from .explain.advice import room_clauses

#: Seconds after which an idle state above the bound is reported.
STUCK_SECONDS = 3600.0
#: Seconds after which the statistics of an OSD are called old.
STALE_SECONDS = 300.0

_MOST_LINES = 20
_NAMED = 3

Check = Dict[str, Any]   # as MgrModule.set_health_checks takes it


def health_checks(status: BalancerStatus, now: float, active: bool, failure: str = "",
                  bad: Sequence[BadOption] = (), silent_osds: FrozenSet[int] = frozenset(),
                  stuck_since: Optional[float] = None, cure: str = "") -> Dict[str, Check]:
    """Code → check, of the conditions that hold now; `now`, `stuck_since`: seconds since the epoch.

    `active`: automatic balancing is on. `failure`: why a round or a plan failed; empty where none
    did. `silent_osds`: without statistics for STALE_SECONDS. `cure`: of the state's reason, with
    its figures.
    """
    checks: Dict[str, Check] = {}

    def warn(code: str, summary: str, count: int, lines: List[str], *cure: str) -> None:
        checks[code] = {"severity": "warning", "summary": summary, "count": count,
                        "detail": [*lines[:_MOST_LINES - 1], *cure]}
    if failure:
        warn("MGR_EQUILIBRIUM_ERROR", "equilibrium failed and will try again", 1, [failure],
             "nothing, unless it lasts: the mgr log has more, 'ceph mgr fail' starts afresh")
    view, stopped = status.view, status.mispredicted
    if bad:
        warn("MGR_EQUILIBRIUM_BAD_OPTION",
             f"{plural(len(bad), 'value')} of equilibrium's options cannot be used",
             len(bad), [one.sentence() for one in bad], cures(bad))
    if stopped:
        names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
        warn("MGR_EQUILIBRIUM_MISPREDICTED",
             f"shards of {plural(len(stopped), 'pool')} took more than was"
             " predicted; few of them are moved now, or none", len(stopped),
             [sentence(why, names.get(pool, str(pool))) for pool, why in sorted(stopped.items())],
             codes.action(codes.MISPREDICTED, {}))
    is_told = active or status.progress is not None
    rejected = grouped((bool(item.withheld_by), (item.reason, pgid))
                       for pgid, item in recent(status.rejected, now).items() if is_told)
    for is_withheld, items in rejected.items():
        count, found = len(items), grouped(items)
        code, what, cause = (
            ("MGR_EQUILIBRIUM_WITHHELD",
             "withheld by OSDs that have too many PGs, and taken back", codes.PG_COUNT)
            if is_withheld else
            ("MGR_EQUILIBRIUM_APPLY_FAILED", "not kept by the monitor", codes.REJECTED))
        warn(code, f"{plural(count, 'upmap')} {what}", count,
             [f"{plural(len(pgids), 'upmap')}: {reason} (pg {named(sorted(pgids), _NAMED)})"
              for reason, pgids in sorted(found.items(),
                                          key=lambda group: (-len(group[1]), group[0]))],
             codes.action(cause, {"withholds": next((
                 osd for item in status.rejected.values() for osd, _ in item.withheld_by), None)}))
    if status.withheld:
        back = checks.get("MGR_EQUILIBRIUM_WITHHELD", {"count": 0, "detail": []})   # others
        warn("MGR_EQUILIBRIUM_WITHHELD", f"{plural(len(status.withheld), 'PG')} inactive, withheld"
             " by OSDs that have too many PGs", len(status.withheld) + back["count"],
             [*[why for why, _ in status.withheld.values()], *back["detail"]],
             "run:", *[f"  {command}" for _, command in status.withheld.values()])
    if not (active or status.progress is not None or status.drains.drains.is_running):
        return checks   # nothing is to be moved
    if status.builtin_active:
        warn("MGR_EQUILIBRIUM_CONFLICT", "the built-in balancer and equilibrium are both active", 1,
             ["equilibrium sends nothing meanwhile"], f"run '{CURE_BUILTIN}'")
    if view is not None and view.too_full:
        pgs = len({pgid for entry in view.too_full for pgid in entry.pgids})
        warn("MGR_EQUILIBRIUM_TOOFULL",
             f"{plural(pgs, 'PG')} cannot move because an OSD is too full", pgs,
             [entry.sentence() for entry in view.too_full],
             "'ceph equilibrium status' shows which moves wait, and what helps")
    will_not_fit = [] if view is None else view.will_not_fit()
    if will_not_fit:
        warn("MGR_EQUILIBRIUM_WILL_NOT_FIT",
             f"{plural(len(will_not_fit), 'OSD')} will be too full with what comes",
             len(will_not_fit), room_clauses([one._asdict() for one in will_not_fit]),
             cure or "'ceph equilibrium status' tells what makes room")
    alive = frozenset() if view is None else view.snapshot.alive
    old = sorted(alive.intersection(silent_osds))
    if old:
        warn("MGR_EQUILIBRIUM_STALE_STATS",
             f"statistics of {plural(len(old), 'OSD')} are older than"
             f" {format_duration(STALE_SECONDS)}", len(old),
             [f"up and in, but silent: {named_osds(old, _MOST_LINES)}"],
             codes.action(codes.STALE_STATISTICS,
                          {"osd": old[0]} if 2 * len(old) < len(alive) else {}))
    if stuck_since is not None and now - stuck_since >= STUCK_SECONDS:
        cure = cure or codes.action(status.reason_code, {})
        warn("MGR_EQUILIBRIUM_STUCK", "shards cannot leave OSDs that are being drained"
             if status.reason_code == codes.CANNOT_LEAVE else
             "the placement has been far from its bound for"
             f" {format_duration(STUCK_SECONDS)} or longer, and nothing can be moved", 1,
             [status.reason], "'ceph equilibrium explain' tells why" if cure == codes.NOTHING
             else cure)
    return checks


_ROUNDS = 2


class HealthMonitor:
    """Used by the serve thread, once a round. It begins anew with each mgr."""

    def __init__(self) -> None:
        self._seen: Dict[str, int] = {}     # code → rounds in a row with the condition
        self._missed: Dict[str, int] = {}   # code → rounds in a row without it, of raised ones
        self._raised: Dict[str, Check] = {}
        self.stuck_since: Optional[float] = None

    def observe(self, status: BalancerStatus, now: float) -> None:
        """Before the conditions are decided: for how long the loop has been stuck. Making another
        plan does not end that."""
        if status.state == STUCK and codes.REASONS[status.reason_code].kind != codes.BEST:
            self.stuck_since = min(now, self.stuck_since or now)
        elif status.state not in (PLANNING, WAITING):
            self.stuck_since = None

    def update(self, present: Mapping[str, Check]) -> Dict[str, Check]:
        """The checks to be shown, by the conditions that hold in this round."""
        self._seen = {code: self._seen.get(code, 0) + 1 for code in present}
        self._missed = {code: self._missed.get(code, 0) + 1
                        for code in self._raised.keys() - present.keys()}
        self._raised = {
            **{code: check for code, check in self._raised.items()
               if code not in present and self._missed[code] < _ROUNDS},
            **{code: check for code, check in present.items()
               if code in self._raised or self._seen[code] >= _ROUNDS}}
        return self._raised
