"""Changes that wait or were dropped, and PGs that stay where they are.

`Verdict` is the one value that says why, also of a state of the loop. PGs stay because the monitor
has rejected them, in pg_cooldown, or because automatic plans leave them alone.

The module leaves a PG alone only for some time. A change that the monitor refused by an error (no
quorum, missing capabilities, a pool that is being created) is tried again some minutes later. If
the monitor said yes and dropped the items, it is tried again after an hour, and after twice as long
each further time, a day at most; so is a pool that was stopped. A PG on an OSD that needs space
waits for a fraction of that. A PG that an OSD withheld waits for a day.
"""
from __future__ import annotations

from collections import Counter
from typing import (
    Any, Container, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional,
    Sequence, Tuple)

from ..plan.model import PgChange, typed
from ..planner.refusal_census import Census
from ..runtime.formatting import named, plural
from ..runtime.waiting import doubled
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from ..snapshot.reason_codes import FULL, LIMIT, NEXT_BATCH, REASONS


class Refusals(NamedTuple):
    """Why no move lowers the fullest OSD, as counted when the loop became idle."""

    code: str           # the one reason
    rest_code: str      # that of the state before it was counted
    osd: int
    census: Census      # of all shards on it
    excluded_seconds: float   # until PGs that are left alone for that reason may be moved

    def sentence(self) -> str:
        """Returns the counts of the reason, for people. It is empty if no check rejects moves for
        it, or if the sentence of the state says it."""
        code = self.code
        census = self.census
        found = census.of(code)
        if found is None or code in (codes.MIN_GAIN, codes.IMMOVABLE):
            return ""
        where = (f"{found.pairs} of the {census.pairs} targets for the"
                 f" {plural(census.counted, 'shard')} on osd.{self.osd}")
        if code == codes.GRANULARITY:
            return f"whole shards are larger than the difference to {where}"
        return f"{where} {REASONS[code].clause or 'may not be taken for now'}"


class Verdict(NamedTuple):
    """Why a change waits, a PG stays, or the loop is in its state."""

    code: str                        # of snapshot/reason_codes.py
    text: str = ""                   # one sentence; empty if that of the code is enough
    numbers: Mapping[str, Any] = {}  # figures and names, for the sentence and the action
    state: str = ""                  # of observation/cluster_view.py; empty for a mere reason
    seconds: Optional[float] = None  # until there will be more to say, if that is known
    #: Of a state: why single changes wait, by the decision before it.
    waiting: Sequence[WaitingChange] = ()
    refusals: Optional[Refusals] = None   # of an idle state, if they were counted

    @property
    def reason(self) -> str:
        """Returns the sentence with its figures."""
        return self.text or REASONS[self.code].sentence.format(**self.numbers)

    @property
    def option(self) -> str:
        """Returns the option of equilibrium or Ceph that sets the limit; empty for none."""
        return self.numbers.get("option") or REASONS[self.code].option

    @property
    def is_throttle(self) -> bool:
        """Returns True if a change waits for movement or time, and not for trouble to end."""
        return REASONS[self.code].kind in (LIMIT, FULL)


WaitingChange = Tuple[PgChange, Verdict]

_REASONS_NAMED = 2   # sentences of a group, before it only counts the rest
#: Figures of a verdict that are the limit itself.
_LIMITS = ("max_shards", "max_moves", "max_ratio", "limit_ratio", "fill_limit_ratio", "max_pairs")


class DroppedChange(NamedTuple):
    """A change that was given up."""

    change: PgChange
    reason: str
    is_refused: bool = False   # the monitor answered with an error


class WaitingGroup(NamedTuple):
    """Shards that wait for the same reason."""

    code: str                 # of snapshot/reason_codes.py
    shards: int
    option: Optional[str] = None    # that sets the limit; None if no option does
    limit: Optional[float] = None   # in the unit of the option
    osd: Optional[int] = None   # most of these shards wait for it; None if they wait for no OSD
    osds: int = 0             # for how many OSDs they wait
    numbers: Mapping[str, Any] = {}   # figures of one of them, see Verdict.numbers
    reason: str = ""          # their sentences

    @property
    def waits_for(self) -> str:
        """Returns why the shards wait, with the OSD that most of them wait for."""
        phrase = REASONS[self.code].waits_for
        if not phrase or not self.numbers and self.code != NEXT_BATCH:
            return f"because {self.reason}"
        text = phrase.format(**self._words())
        if self.osd is None:
            return text
        more = f" and {self.osds - 1} more" if self.osds > 1 else ""
        return f"{text} (osd.{self.osd}{more})"

    def _words(self) -> Dict[str, Any]:
        """Returns the values of the names in a phrase."""
        limit = self.limit or 0.0
        is_urgent = self.option == "urgent_misplaced_ratio"
        return {
            "own": "",
            **self.numbers,
            "limit": f"{limit:g}",
            "percent": f"{100.0 * limit:.2f}%",
            "end": "target" if self.numbers.get("direction") == "coming" else "source",
            "misplaced_limit": "urgent misplaced limit" if is_urgent else "misplaced limit"}

    def figures(self) -> Dict[str, Any]:
        """Returns the figures for its action."""
        return {
            **self.numbers,
            "osd": self.osd,
            "option": self.option,
            "limit": None if self.limit is None else f"{self.limit:g}"}

    def to_json(self) -> Dict[str, Any]:
        """Returns a JSON-ready object with all keys."""
        return {
            "code": self.code,
            "shards": self.shards,
            "option": self.option,
            "limit": self.limit,
            "osd": self.osd}


def waiting_groups(wanted: Sequence[PgChange], waiting: Iterable[WaitingChange], code: str,
                   reason: str) -> Tuple[WaitingGroup, ...]:
    """Returns the groups of all changes in `wanted`, the largest first.

    `waiting`: changes with the reasons of the last decision. `code` and `reason`: of the others, as
    when the next batch is not due.
    """
    deferrals = {change.pgid: deferral for change, deferral in waiting}
    rows: Dict[Tuple[str, ...], List[Tuple[int, Verdict]]] = {}   # shards, and why they wait
    others = 0
    for change in wanted:
        deferral = deferrals.get(change.pgid)
        if deferral is None:
            others += change.shards
            continue
        key = deferral.code, deferral.option, str(deferral.numbers.get("direction"))
        rows.setdefault(key, []).append((change.shards, deferral))
    groups = [_group(alike) for alike in rows.values()]
    if others:
        groups.append(WaitingGroup(code, others, reason=reason))
    return tuple(sorted(groups, key=lambda group: (-group.shards, group.code)))


def _group(rows: Sequence[Tuple[int, Verdict]]) -> WaitingGroup:
    shards = 0
    osds: Counter[int] = Counter()
    for count, deferral in rows:
        shards += count
        if "osd" in deferral.numbers:
            osds[deferral.numbers["osd"]] += count
    first = rows[0][1]
    numbers = first.numbers
    reasons = sorted({deferral.reason for _, deferral in rows})
    return WaitingGroup(
        code=first.code,
        shards=shards,
        option=first.option or None,
        limit=next((numbers[name] for name in _LIMITS if name in numbers), None),
        osd=min(osds, key=lambda osd: (-osds[osd], osd), default=None),
        osds=len(osds),
        numbers=numbers,
        reason=named(reasons, _REASONS_NAMED))


#: A rejection older than this is not reported any more, but may still hold.
RECENT_SECONDS = 3600.0
#: Seconds after which a refused change is tried again. Below RECENT_SECONDS, so that a change that
#: is refused again and again is reported without a gap.
RETRY_SECONDS = 600.0
#: The same for changes that the monitor dropped, and for pools that were stopped: the first time,
#: and at most.
_FIRST_SECONDS = 3600.0
_LONGEST_SECONDS = 86_400.0
#: The wait of a PG on an OSD that needs space is divided by this: an hour becomes five minutes.
_URGENT_DIVISOR = 12.0
#: How long a withheld PG is not moved again, and how long its OSD has a lower PG limit.
WITHHELD_SECONDS = 86_400.0
_LONGEST_REASON = 200
_MOST_STORED = 200   # rejections, the last ones


def retry_seconds(tries: int) -> float:
    """Returns the seconds until the next attempt after so many failures."""
    return doubled(_FIRST_SECONDS, _LONGEST_SECONDS, tries - 1)


class Rejection(NamedTuple):
    """Why the monitor did not keep a PG's upmap items, or an OSD did not take the PG."""

    reason: str
    #: fingerprint of the osdmap that it holds for (`topology_of`); of options if it was withheld
    mark: str
    at: float        # seconds since the epoch
    is_refused: bool = False   # by an error; else the monitor dropped items that it had taken
    #: (OSD, the limit of its PG shards now) of the OSDs one of which withheld the PG
    withheld_by: Tuple[Tuple[int, int], ...] = ()
    tries: int = 1   # how many times in a row the monitor dropped the items

    @property
    def seconds(self) -> float:
        """Returns how many seconds the PG is left alone while the topology stays the same."""
        if self.withheld_by:
            return WITHHELD_SECONDS
        if self.is_refused:
            return RETRY_SECONDS
        return retry_seconds(self.tries)

    @property
    def until(self) -> float:
        """Returns when it is tried again, in seconds since the epoch."""
        return self.at + self.seconds

    def is_remembered(self, now: float) -> bool:
        """Returns True if it still counts for later rejections: twice as long as it holds, and
        RECENT_SECONDS at least. A withheld PG counts as long as it holds."""
        if self.withheld_by:
            return now < self.until
        return now - self.at < max(RECENT_SECONDS, 2.0 * self.seconds)


Items = Dict[str, Rejection]   # by pgid


def with_rejected(items: Items, rejected: Iterable[DroppedChange], mark: str,
                  now: float) -> Items:
    """Returns the rejections with those of some more changes. `mark`: as in Rejection."""
    grown = dict(items)
    for dropped in rejected:
        tries = 1
        earlier = items.get(dropped.change.pgid)
        if earlier is not None and not (dropped.is_refused or earlier.is_refused):
            tries = earlier.tries + 1
        grown[dropped.change.pgid] = Rejection(
            dropped.reason[:_LONGEST_REASON], mark, float(int(now)), dropped.is_refused,
            tries=tries)
    return grown


def still_rejected(items: Items, marks: Container[str], pgids: Container[str],
                   now: float) -> Items:
    """Returns the rejections that hold for these fingerprints, of PGs that still exist.

    Leaves out those whose PG could have been tried again long ago: no plan wants to move it.
    """
    found = {}
    for pgid, item in items.items():
        if item.mark in marks and pgid in pgids and item.is_remembered(now):
            found[pgid] = item
    return found


def active_rejections(items: Items, now: float) -> Items:
    """Returns the rejections that keep PGs where they are now."""
    return {pgid: item for pgid, item in items.items() if now < item.until}


def recent(items: Items, now: float) -> Items:
    """Returns the rejections that are reported to an operator."""
    return {pgid: item for pgid, item in items.items() if now - item.at < RECENT_SECONDS}


def stored(items: Items) -> List[List[Any]]:
    """Returns the rejections for the key-value store. The log of changes has those of withheld
    PGs."""
    rows = [[pgid, *item] for pgid, item in items.items() if not item.withheld_by]
    return rows[-_MOST_STORED:]


def restored(rows: Iterable[Any], now: float) -> Items:
    """Returns the rejections that another mgr has stored, none if they are garbled."""
    found: Items = {}
    try:
        for pgid, *fields in rows:
            item: Rejection = typed(fields, Rejection)
            found[pgid] = item._replace(at=min(item.at, now))
    except (TypeError, ValueError):
        return {}
    return found


class Cooldown:
    """Keeps pgid → when its wait began, in seconds since the epoch: usually when its items were
    sent."""

    def __init__(self) -> None:
        #: replaced whole, never edited: commands read it from another thread
        self.moved: Mapping[str, float] = {}

    def start(self, pgids: Iterable[str], now: float) -> None:
        """Starts the wait of PGs, or starts it again."""
        self.moved = {**self.moved, **dict.fromkeys(pgids, now)}

    def observe(self, now: float, pgids: Container[str]) -> None:
        """Forgets PGs that are gone, and shortens waits if the clock was set back."""
        self.moved = {pgid: min(at, now) for pgid, at in self.moved.items() if pgid in pgids}

    def seconds_left(self, now: float, seconds: float) -> Dict[str, float]:
        """Returns pgid → seconds left, at most `seconds`, of PGs whose wait is not over."""
        return {pgid: seconds - max(0.0, now - at) for pgid, at in self.moved.items()
                if now - at < seconds}


class Exclusion(NamedTuple):
    """Why a PG is left alone, and for how long."""

    code: str        # of snapshot/reason_codes.py
    pgid: str
    since: float     # seconds since the epoch
    seconds: float


class ExcludedPgs(NamedTuple):
    """PGs that an automatic plan must leave alone."""

    codes: Mapping[str, str] = {}           # PG → its reason, of snapshot/reason_codes.py
    seconds_left: Mapping[str, float] = {}  # PG → until it may be moved again

    @property
    def rejected(self) -> FrozenSet[str]:
        """Returns the PGs whose upmap items the monitor did not keep, or that an OSD withheld."""
        return frozenset([pgid for pgid, code in self.codes.items() if code in _OF_MONITOR])

    def seconds_of(self, code: str) -> float:
        """Returns the seconds until no PG is left alone for this reason any more."""
        return max([left for pgid, left in self.seconds_left.items() if self.codes[pgid] == code],
                   default=0.0)


_OF_MONITOR = (codes.REJECTED, codes.PG_COUNT)


def exclusions_of(rejected: Items) -> Iterator[Exclusion]:
    """Yields the PGs whose upmap items the monitor did not keep, and those that OSDs withheld."""
    for pgid, item in rejected.items():
        code = codes.PG_COUNT if item.withheld_by else codes.REJECTED
        yield Exclusion(code, pgid, item.at, item.seconds)


def excluded_pgs(snapshot: Snapshot, full: FrozenSet[int], found: Iterable[Exclusion],
                 now: float) -> ExcludedPgs:
    """Returns the PGs that are left alone now. Of several reasons for a PG, the last in `found` and
    the longest time count.

    `full`: OSDs that need space. Their PGs wait for a fraction of the time, and not at all for
    pg_cooldown or because of their pool. PGs on OSDs above nearfull or on drained OSDs do not wait
    for pg_cooldown either. PGs that an OSD withheld wait in full: it would withhold them again.
    """
    nearfull = {
        osd.id for osd in snapshot.osds.values() if osd.exceeds(snapshot.nearfull_ratio)}
    urgent = full | snapshot.drained_osds | nearfull
    code_of: Dict[str, str] = {}
    left_of: Dict[str, float] = {}
    for code, pgid, since, seconds in found:
        pg = snapshot.pgs.get(pgid)
        if pg is None or code == codes.COOLDOWN and not urgent.isdisjoint(pg.up):
            continue
        if code != codes.PG_COUNT and not full.isdisjoint(pg.up):
            if code == codes.MISPREDICTED:
                continue
            seconds /= _URGENT_DIVISOR
        left = seconds - max(0.0, now - since)
        if left > 0.0:
            code_of[pgid], left_of[pgid] = code, max(left, left_of.get(pgid, 0.0))
    return ExcludedPgs(code_of, left_of)
