"""X1 to X3: what is left alone for a reason is left alone for a time; S18 of monitor_rules.py says
for how long at least.

X1 `status` tells for each PG that the monitor did not keep, and for each stopped pool, when that
ends: within a day. X2 it ends then, unless the monitor's log shows another try in the meantime.
X3 it does not hold where the PG is on an OSD that has been above backfillfull for ten minutes,
unless it was tried in that time.
"""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from mgr_stub.console.session import Session

from ..watch.advice import ask
from .under_way import UpmapLog

Answer = Dict[str, Any]
Note = Tuple[str, str]   # rule, what is wrong
_DAY, _FULL_SECONDS, _SLACK = 86_400.0, 600.0, 60.0
#: Codes of `explain` for a PG that is left alone for a time.
_LEFT_ALONE = ("rejected", "mispredicted", "cooldown", "given_up")
#: PGs of an OSD that are asked for at a look.
_ASKED = 2


class Told(NamedTuple):
    """PGs of one reason, or a pool, as `status` tells of them."""

    names: FrozenSet[str]    # PGs, or "pool N"
    until: Optional[float]   # seconds since the epoch: all of it is tried again by then


class Exclusions:
    """Reads the monitor's log, and `status` as it is asked at a look."""

    def __init__(self, session: Session) -> None:
        self.kept = 0   # promises
        self._session = session
        self._log = UpmapLog(session)
        self._tried: Dict[str, float] = {}        # PG or pool → when it was sent last
        self._told: Dict[str, Tuple[Told, float]] = {}   # reason → what was told, since when
        self._full_since: Dict[int, float] = {}   # OSD → seconds since the epoch

    def observe(self, status: Answer) -> List[Note]:
        """Returns what is wrong now."""
        for entry in self._log.ours():
            pgid = str(entry.command["pgid"])
            self._tried[pgid] = self._tried[_pool_of(pgid)] = self._session.clock()
        self._observe_full()
        told = _told(status)
        found = [*self._broken_promises(told), *self._held_on_full(told)]
        self.kept += len(self._told.keys() - told.keys())
        self._told = {what: (one, self._since_told(what, one)) for what, one in told.items()}
        return found

    def _observe_full(self) -> None:
        cluster, now = self._session.cluster, self._session.clock()
        ratio = cluster.map.ratio("backfillfull_ratio")
        self._full_since = {osd: self._full_since.get(osd, now)
                            for osd, usage in cluster.usage.items() if usage.utilization >= ratio}

    def _since_told(self, what: str, told: Told) -> float:
        before, since = self._told.get(what, (told, self._session.clock()))
        if before.until == told.until:
            return since
        return self._session.clock()

    def _broken_promises(self, told: Dict[str, Told]) -> Iterator[Note]:
        now = self._session.clock()
        for what, one in told.items():
            before, since = self._told.get(what, (one, now))
            if one.until is None or before.until is None:
                yield "X1", f"nothing tells until when this holds: {what}"
                continue
            if one.until > now + 2.0 * _DAY + _SLACK:
                yield "X1", f"for more than a day: {what}"
            if now > one.until + _SLACK:
                yield "X2", f"what was to end {int(now - one.until)} s ago: {what}"
            is_tried = any(self._tried.get(name, 0.0) >= since - _SLACK for name in one.names)
            if one.until > before.until + _SLACK and not is_tried:
                yield "X2", f"longer than was told, and nothing of it was tried: {what}"

    def _held_on_full(self, told: Dict[str, Told]) -> Iterator[Note]:
        cluster, now = self._session.cluster, self._session.clock()
        listed = frozenset().union(*(one.names for one in told.values()))
        left_alone = []
        if listed:
            left_alone = [pgid for pgid in sorted(cluster.pgs)
                          if not listed.isdisjoint((pgid, _pool_of(pgid)))]
        for osd, since in self._full_since.items():
            if now - since < _FULL_SECONDS:
                continue
            held = [pgid for pgid in left_alone if osd in cluster.map.up.get(pgid, ())
                    and self._tried.get(pgid, 0.0) < since]
            for pgid in held[:_ASKED]:
                code = ask(self._session, f"explain {pgid}").get("reason_code")
                if code in _LEFT_ALONE:
                    yield "X3", (f"pg {pgid} is left alone ({code}) on osd.{osd}, which has been"
                                 f" above backfillfull for {int(now - since)} s")


def _pool_of(pgid: str) -> str:
    return f"pool {pgid.partition('.')[0]}"


def _told(status: Answer) -> Dict[str, Told]:
    """Reason → what is left alone for it. What OSDs withhold ends when they have fewer PGs."""
    found = {group["reason"]: Told(frozenset(group["pgids"]), group.get("until_at"))
             for group in status["rejected"] if not group["is_withheld"]}
    for row in status["mispredicted"]:
        name, until = f"pool {row['pool_id']}", row.get("until_at")
        if until is not None:   # a few of its shards go for as long again
            until += until - row["found_at"]
        found[f"{name} is mispredicted"] = Told(frozenset((name,)), until)
    return found
