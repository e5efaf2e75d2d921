"""The conditions that health checks tell of: a few stable codes, one line a reason, and last the
command that helps. health_monitor.py decides when they are raised and cleared.
"""
from __future__ import annotations

import json
import logging
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence

from ..control.balancing_scope import BadOption, cures
from ..control.status import BalancerStatus
from ..execution.guards import CURE_BUILTIN
from ..execution.rejections import Items
from ..execution.size_check.size_corrections import sentence
from ..observation.states import PLANNING, STUCK, WAITING
from ..runtime.formatting import format_duration, plural
from ..runtime.kv_store import KeyValueStore, MAX_VALUE_BYTES
from ..snapshot import reason_codes as codes
from ..snapshot.reason_codes import BEST, NOTHING, REASONS, UNDECIDED, action


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


KEY = "health"
_ROUNDS = 2
#: Conditions that are known without a look at the cluster.
_ALWAYS_KNOWN = (PREFIX + "ERROR", PREFIX + "BAD_OPTION", PREFIX + "CONFLICT")


class HealthMonitor:
    """Used by the serve thread, once a round."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger) -> None:
        self._kv = kv
        self._log = log
        self._seen: Dict[str, int] = {}     # code → rounds in a row with the condition
        self._missed: Dict[str, int] = {}   # code → rounds in a row without it, of raised ones
        self._raised: Optional[Dict[str, Check]] = None   # None before the first round
        self._stored = ""
        self.stuck_since: Optional[float] = None

    def observe(self, status: BalancerStatus, now: float) -> None:
        """Before the conditions are decided: for how long the loop has been stuck. Making another
        plan does not end that."""
        self._restore()
        if status.state == STUCK and counts_as_stuck(status.reason_code):
            self.stuck_since = min(now, self.stuck_since or now)
        elif status.state not in (PLANNING, WAITING):
            self.stuck_since = None

    def update(self, present: Mapping[str, Check], status: BalancerStatus,
               active: bool) -> Dict[str, Check]:
        """The checks to be shown, by the conditions that hold in this round."""
        raised = self._restore()
        undecided = (active or status.progress is not None) and (
            status.view is None or REASONS[status.reason_code].kind == UNDECIDED)
        self._seen = {code: self._seen.get(code, 0) + 1 for code in present}
        for code, check in present.items():
            if code in raised or self._seen[code] >= _ROUNDS:
                raised[code] = check
            self._missed.pop(code, None)
        for code in raised.keys() - present.keys():
            if not undecided or code in _ALWAYS_KNOWN:
                self._missed[code] = self._missed.get(code, 0) + 1
            if self._missed.get(code, 0) >= _ROUNDS:
                del raised[code], self._missed[code]
        return dict(raised)

    def store(self) -> None:
        """Keeps for a successor which checks are raised; writes only where those are others."""
        raised = self._restore()
        known = ",".join(sorted(raised))
        if known == self._stored:
            return
        text = json.dumps({"version": 1, "raised": raised, "stuck_since": self.stuck_since})
        if len(text.encode()) <= MAX_VALUE_BYTES:
            self._kv.set_store(KEY, text if raised else None)
        self._stored = known

    def _restore(self) -> Dict[str, Check]:
        if self._raised is None:
            self._raised = {}
            try:
                dump: Any = json.loads(self._kv.get_store(KEY) or "{}")
                self._raised = {str(code): _check(check) for code, check in dump.get(
                    "raised", {}).items() if str(code).startswith(PREFIX)}
                since = dump.get("stuck_since")
                self.stuck_since = float(since) if since is not None else None
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
                self._log.warning("stored health checks cannot be read: %s", error)
            self._stored = ",".join(sorted(self._raised))
        return self._raised


def _check(dump: Any) -> Check:
    """A check that another mgr has stored. Raises for one that Ceph would not take."""
    return {"severity": "warning", "summary": str(dump["summary"]), "count": int(dump["count"]),
            "detail": [str(line) for line in list(dump["detail"])[:20]]}
