"""The conditions that health checks tell of: a few stable codes, one line a reason, and last the
command that helps. health_monitor.py decides when they are raised and cleared."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence

from ..control.balancing_scope import BadOption, cures
from ..control.status import BalancerStatus
from ..execution.guards import CURE_BUILTIN
from ..execution.rejections import Items
from ..execution.size_check.size_corrections import sentence
from ..runtime.formatting import format_duration, plural
from ..snapshot import reason_codes as codes
from ..snapshot.reason_codes import BEST, NOTHING, REASONS, action

PREFIX = "MGR_EQUILIBRIUM_"
#: Seconds after which an idle state above the bound is reported.
STUCK_SECONDS = 3600.0
#: Seconds after which the statistics of an OSD are called old.
STALE_SECONDS = 300.0

_MOST_LINES = 20
_NAMED = 3

Check = Dict[str, Any]   # as MgrModule.set_health_checks takes it


class Circumstances(NamedTuple):
    """What checks are decided by beside the loop's status."""

    active: bool                        # automatic balancing is on
    failure: str = ""                   # why a round or a plan failed; empty where none did
    bad_options: Sequence[BadOption] = ()
    silent_osds: FrozenSet[int] = frozenset()   # without statistics for STALE_SECONDS
    stuck_since: Optional[float] = None         # seconds since the epoch
    cure: str = ""   # of the state's reason, with its figures


def counts_as_stuck(code: str) -> bool:
    """True where an idle state above the bound for this reason is worth a warning."""
    return REASONS[code].kind != BEST


def health_checks(status: BalancerStatus, now: float, found: Circumstances) -> Dict[str, Check]:
    """Code → check, of the conditions that hold now; `now` is in seconds since the epoch."""
    checks = [_failed(found.failure), _bad_options(found.bad_options), _mispredicted(status),
              _rejected(status.recent_rejections(found.active, now))]
    if found.active or status.progress is not None or (   # something is to be moved
            status.drains.drains.is_running):
        checks += [_conflict(status), _too_full(status), _stale(status, found.silent_osds),
                   _stuck(status, found.stuck_since, now, found.cure)]
    return dict(filter(None, checks))


_Named = Optional["tuple[str, Check]"]   # code and check


def _failed(failure: str) -> _Named:
    if not failure:
        return None
    return _warning(
        "MGR_EQUILIBRIUM_ERROR", "equilibrium failed and will try again", 1, [failure],
        "nothing, unless it lasts: the mgr log has more, 'ceph mgr fail' starts afresh")


def _conflict(status: BalancerStatus) -> _Named:
    if not status.builtin_active:
        return None
    return _warning(
        "MGR_EQUILIBRIUM_CONFLICT", "the built-in balancer and equilibrium are both active", 1,
        ["equilibrium sends nothing meanwhile"], f"run '{CURE_BUILTIN}'")


def _too_full(status: BalancerStatus) -> _Named:
    view = status.view
    if view is None or not view.too_full:
        return None
    pgs = len({pgid for entry in view.too_full for pgid in entry.pgids})
    return _warning(
        "MGR_EQUILIBRIUM_TOOFULL", f"{plural(pgs, 'PG')} cannot move because an OSD is too full",
        pgs, [entry.sentence() for entry in view.too_full],
        "'ceph equilibrium status' shows which moves wait, and what helps")


def _mispredicted(status: BalancerStatus) -> _Named:
    if not status.mispredicted:
        return None
    view, count = status.view, len(status.mispredicted)
    names = {} if view is None else {p.id: p.name for p in view.snapshot.pools.values()}
    return _warning(
        "MGR_EQUILIBRIUM_MISPREDICTED",
        f"shards of {plural(count, 'pool')} took more than was predicted; they are not moved any"
        " more", count,
        [sentence(found, names.get(pool, str(pool)))
         for pool, found in sorted(status.mispredicted.items())], action(codes.MISPREDICTED, {}))


def _rejected(items: Items) -> _Named:
    """One line for each reason, the most frequent first."""
    by_reason: Dict[str, List[str]] = {}
    for pgid, item in items.items():
        by_reason.setdefault(item.reason, []).append(pgid)
    lines = [f"{plural(len(pgids), 'upmap')}: {reason} ({_pgs(pgids)})" for reason, pgids in sorted(
        by_reason.items(), key=lambda group: (-len(group[1]), group[0]))]
    return _warning(
        "MGR_EQUILIBRIUM_APPLY_FAILED", f"{plural(len(items), 'upmap')} not kept by the monitor",
        len(items), lines, action(codes.REJECTED, {})) if items else None


def _pgs(pgids: Sequence[str]) -> str:
    more = len(pgids) - _NAMED
    return "pg " + ", ".join(sorted(pgids)[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _stale(status: BalancerStatus, silent: FrozenSet[int]) -> _Named:
    osds = {} if status.view is None else status.view.snapshot.osds
    old = [osd for osd in sorted(silent) if osd in osds and osds[osd].up and osds[osd].is_in]
    if not old:
        return None
    named = ", ".join(f"osd.{osd}" for osd in old[:_MOST_LINES])
    more = f" and {len(old) - _MOST_LINES} more" if len(old) > _MOST_LINES else ""
    return _warning(
        "MGR_EQUILIBRIUM_STALE_STATS", f"statistics of {plural(len(old), 'OSD')} are older than"
        f" {format_duration(STALE_SECONDS)}", len(old), [f"up and in, but silent: {named}{more}"],
        action(codes.STALE_STATISTICS, {"osd": old[0]} if len(old) == 1 else {}))


def _stuck(status: BalancerStatus, since: Optional[float], now: float, cure: str) -> _Named:
    if since is None or now - since < STUCK_SECONDS:
        return None
    cure = cure or action(status.reason_code, {})
    if status.reason_code == codes.CANNOT_LEAVE:
        return _warning("MGR_EQUILIBRIUM_STUCK", "shards cannot leave OSDs that are being drained",
                        1, [status.reason], cure)
    return _warning(
        "MGR_EQUILIBRIUM_STUCK", "the placement has been far from its bound for"
        f" {format_duration(STUCK_SECONDS)} or longer, and nothing can be moved", 1,
        [status.reason], "'ceph equilibrium explain' tells why" if cure == NOTHING else cure)


def _bad_options(bad: Sequence[BadOption]) -> _Named:
    return _warning(
        "MGR_EQUILIBRIUM_BAD_OPTION",
        f"{plural(len(bad), 'value')} of equilibrium's options cannot be used", len(bad),
        [one.sentence() for one in bad], cures(bad)) if bad else None


def _warning(code: str, summary: str, count: int, lines: List[str], cure: str) -> _Named:
    return code, {"severity": "warning", "summary": summary, "count": count,
                  "detail": lines[:_MOST_LINES - 1] + [cure]}
