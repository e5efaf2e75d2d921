"""Health checks: a few stable codes, one line a reason, and last the command that helps.

A check is one function, and one entry in `_CHECKS` or in `_CHECKS_OF_WORK`. The mgr shows a check
after two rounds in a row with its condition, and clears it after two rounds in a row without.
"""
from __future__ import annotations

from typing import (
    Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..control.balancing_scope import cures
from ..control.status import BalancerStatus
from ..execution.guards import CURE_BUILTIN
from ..execution.outcomes import Items, recent
from ..observation.cluster_view import PLANNING, STUCK, WAITING
from ..runtime.formatting import format_duration, named, named_osds, plural
from ..settings import BadOption
from ..snapshot import reason_codes as codes
from .answer import largest_groups
from .explain.advice import room_clauses
from .explain.facts import stopped_pools

#: Seconds after which an idle state above the bound is reported.
STUCK_SECONDS = 3600.0
#: Seconds after which the statistics of an OSD are called old.
STALE_SECONDS = 300.0

_MOST_LINES = 20
_NAMED = 3

Check = Dict[str, Any]   # as MgrModule.set_health_checks takes it


class _Round(NamedTuple):
    """The arguments of `health_checks`."""

    status: BalancerStatus
    now: float
    active: bool
    failure: str
    bad: Sequence[BadOption]
    silent_osds: FrozenSet[int]
    stuck_since: Optional[float]
    cure: str

    @property
    def has_plan(self) -> bool:
        """Returns True if the module executes a plan, or would make one."""
        return self.active or self.status.progress is not None

    @property
    def has_work(self) -> bool:
        """Returns True if the module sends moves."""
        return self.has_plan or self.status.drains.drains.is_running


def health_checks(status: BalancerStatus, now: float, active: bool, failure: str = "",
                  bad: Sequence[BadOption] = (), silent_osds: FrozenSet[int] = frozenset(),
                  stuck_since: Optional[float] = None, cure: str = "") -> Dict[str, Check]:
    """Returns code → check of the conditions that hold now.

    `now`, `stuck_since`: seconds since the epoch. `active`: automatic balancing is on. `failure`:
    why a round or a plan failed, or empty. `silent_osds`: OSDs without new statistics for
    STALE_SECONDS. `cure`: the action for the reason of the state, with its figures.
    """
    this = _Round(status, now, active, failure, bad, silent_osds, stuck_since, cure)
    wanted = _CHECKS
    if this.has_work:
        wanted = _CHECKS + _CHECKS_OF_WORK
    checks = {}
    for code, check in wanted:
        found = check(this)
        if found is not None:
            checks[code] = found
    return checks


def _warning(summary: str, count: int, lines: Sequence[str], *cure: str) -> Check:
    """Returns a check; it has at most _MOST_LINES lines besides those of a longer cure."""
    return {"severity": "warning", "summary": summary, "count": count,
            "detail": [*lines[:_MOST_LINES - 1], *cure]}


def _error(this: _Round) -> Optional[Check]:
    if not this.failure:
        return None
    return _warning(
        "equilibrium failed and will try again", 1, [this.failure],
        "nothing, unless it lasts: the mgr log has more, 'ceph mgr fail' starts afresh")


def _bad_option(this: _Round) -> Optional[Check]:
    bad = this.bad
    if not bad:
        return None
    summary = f"{plural(len(bad), 'value')} of equilibrium's options cannot be used"
    return _warning(summary, len(bad), [one.sentence() for one in bad], cures(bad))


def _mispredicted(this: _Round) -> Optional[Check]:
    stopped = stopped_pools(this.status, this.status.view)
    if not stopped:
        return None
    return _warning(
        f"shards of {plural(len(stopped), 'pool')} took more than was predicted; few of them are"
        " moved now, or none", len(stopped), [*stopped.values()],
        codes.action(codes.MISPREDICTED, {}))


def _recent(this: _Round, withheld: bool) -> Items:
    """Returns the recent rejections; none if there is no plan to send.

    `withheld`: those by OSDs, otherwise those by the monitor.
    """
    if not this.has_plan:
        return {}
    rejected = recent(this.status.rejected, this.now)
    return {pgid: item for pgid, item in rejected.items() if bool(item.withheld_by) == withheld}


def _upmaps(rejected: Items) -> List[str]:
    """Returns one line for each reason, with its first PGs; the most frequent reason first."""
    groups = largest_groups((item.reason, pgid) for pgid, item in sorted(rejected.items()))
    return [f"{plural(len(pgids), 'upmap')}: {reason} (pg {named(pgids, _NAMED)})"
            for reason, pgids in groups]


def _apply_failed(this: _Round) -> Optional[Check]:
    rejected = _recent(this, withheld=False)
    if not rejected:
        return None
    count = len(rejected)
    return _warning(f"{plural(count, 'upmap')} not kept by the monitor", count, _upmaps(rejected),
                    codes.action(codes.REJECTED, {}))


def _withheld(this: _Round) -> Optional[Check]:
    """Reports the PGs that OSDs withhold now, with the commands that end that, and the PGs that
    they withheld until the module cancelled the moves. None without both."""
    withheld = this.status.withheld
    cancelled = _recent(this, withheld=True)
    count = len(cancelled)
    lines = _upmaps(cancelled)
    cure = []
    if cancelled:
        osd, _ = next(iter(cancelled.values())).withheld_by[0]
        cure.append(codes.action(codes.PG_COUNT, {"withholds": osd}))
    if withheld:
        reasons, commands = zip(*withheld.values())
        return _warning(
            f"{plural(len(withheld), 'PG')} inactive, withheld by OSDs that have too many PGs",
            len(withheld) + count, [*reasons, *lines], *cure, "run:", *map("  {}".format, commands))
    if not cancelled:
        return None
    return _warning(
        f"{plural(count, 'upmap')} withheld by OSDs that have too many PGs, and taken back", count,
        lines, *cure)


def _conflict(this: _Round) -> Optional[Check]:
    if not this.status.builtin_active:
        return None
    return _warning("the built-in balancer and equilibrium are both active", 1,
                    ["equilibrium moves no data meanwhile"], f"run '{CURE_BUILTIN}'")


def _toofull(this: _Round) -> Optional[Check]:
    view = this.status.view
    if view is None or not view.too_full:
        return None
    pgs = {pgid for entry in view.too_full for pgid in entry.pgids}
    return _warning(
        f"{plural(len(pgs), 'PG')} cannot move because an OSD is too full", len(pgs),
        [entry.sentence() for entry in view.too_full],
        "'ceph equilibrium status' shows which moves wait, and what helps")


def _will_not_fit(this: _Round) -> Optional[Check]:
    view = this.status.view
    if view is None:
        return None
    found = this.status.will_not_fit(view)
    if not found:
        return None
    return _warning(
        f"{plural(len(found), 'OSD')} will be too full with what comes", len(found),
        room_clauses([one._asdict() for one in found]),
        this.cure or "'ceph equilibrium status' tells what makes room")


def _stale_stats(this: _Round) -> Optional[Check]:
    view = this.status.view
    if view is None:
        return None
    alive = view.snapshot.alive
    old = sorted(alive.intersection(this.silent_osds))
    if not old:
        return None
    numbers = {}
    if 2 * len(old) < len(alive):   # otherwise it is the mgr that has no reports
        numbers = {"osd": old[0]}
    summary = (f"statistics of {plural(len(old), 'OSD')} are older than"
               f" {format_duration(STALE_SECONDS)}")
    line = f"up and in, but silent: {named_osds(old, _MOST_LINES)}"
    return _warning(summary, len(old), [line], codes.action(codes.STALE_STATISTICS, numbers))


def _stuck(this: _Round) -> Optional[Check]:
    since = this.stuck_since
    status = this.status
    if since is None or this.now - since < STUCK_SECONDS:
        return None
    summary = ("the placement has been far from its bound for"
               f" {format_duration(STUCK_SECONDS)} or longer, and nothing can be moved")
    if status.reason_code == codes.CANNOT_LEAVE:
        summary = "shards cannot leave OSDs that are being drained"
    cure = this.cure or codes.action(status.reason_code, {})
    if cure == codes.NOTHING:
        cure = "'ceph equilibrium explain' tells why"
    return _warning(summary, 1, [status.reason], cure)


_CHECKS: Tuple[Tuple[str, Callable[[_Round], Optional[Check]]], ...] = (
    ("MGR_EQUILIBRIUM_ERROR", _error),
    ("MGR_EQUILIBRIUM_BAD_OPTION", _bad_option),
    ("MGR_EQUILIBRIUM_MISPREDICTED", _mispredicted),
    ("MGR_EQUILIBRIUM_APPLY_FAILED", _apply_failed),
    ("MGR_EQUILIBRIUM_WITHHELD", _withheld))
#: Raised only while the module has work: automatic balancing is on, or a plan or drain goes on.
_CHECKS_OF_WORK = (
    ("MGR_EQUILIBRIUM_CONFLICT", _conflict),
    ("MGR_EQUILIBRIUM_TOOFULL", _toofull),
    ("MGR_EQUILIBRIUM_WILL_NOT_FIT", _will_not_fit),
    ("MGR_EQUILIBRIUM_STALE_STATS", _stale_stats),
    ("MGR_EQUILIBRIUM_STUCK", _stuck))


class HealthMonitor:
    """Used by the serve thread, once a round. Each mgr starts a new one."""

    def __init__(self) -> None:
        self._before: Mapping[str, Check] = {}   # of the round before
        self._raised: Dict[str, Check] = {}
        self.stuck_since: Optional[float] = None

    def observe(self, status: BalancerStatus, now: float) -> None:
        """Records since when the loop is stuck for a reason that can be ended; called before
        `health_checks`. The time goes on while a plan is made, the loop waits or PGs are rebuilt.
        Any other state ends it."""
        if status.state == STUCK and codes.REASONS[status.reason_code].kind != codes.BEST:
            self.stuck_since = min(now, self.stuck_since or now)
        elif status.state not in (PLANNING, WAITING) and status.reason_code != codes.DEGRADED:
            self.stuck_since = None

    def update(self, present: Mapping[str, Check]) -> Dict[str, Check]:
        """Returns the checks to show, from the conditions that hold in this round."""
        raised = {}
        for code, check in {**self._before, **present}.items():
            is_lasting = code in self._before and code in present
            if is_lasting or code in self._raised:
                raised[code] = check
        self._before = present
        self._raised = raised
        return raised
