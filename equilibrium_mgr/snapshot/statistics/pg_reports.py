"""Finds the PGs whose report has changed, among all that the mgr hands out again at each look.

`get('pg_progress')` makes new objects each time. The last reports are kept in columns of numbers,
which built-in functions compare a piece at a time: 333,000 reports take less than a tenth of a
second, and 30 bytes each.
"""
from __future__ import annotations

from array import array
from itertools import compress, islice
from operator import ne
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set

from ...runtime.time_slice import give_way

Reports = Mapping[str, Mapping[str, Any]]   # get('pg_progress')['pgs']

_A_PIECE = 2000   # PGs before it gives way again: less than a millisecond


class ReportChanges(NamedTuple):
    """Which reports differ from those of the reading before."""

    are_other_pgs: bool        # PGs came or went, or stand in another order: any may differ
    recovered: Mapping[str, int]   # pgid → num_bytes_recovered before, of PGs that may differ


class PgReports:
    """The reports of the last reading."""

    def __init__(self) -> None:
        self._names: List[str] = []
        self._columns: List[List[Sequence[Any]]] = []   # of each piece, see _columns
        self._recovered: Dict[str, int] = {}   # before a counter read 0, as an unreported PG's does

    def forget(self) -> None:
        """Takes every report for changed at the next reading, as after a reading that failed."""
        recovered = self._all_recovered()
        self._names, self._columns = [], []
        self._recovered = recovered

    def read(self, reports: Reports) -> ReportChanges:
        """Compares the reports with the last ones, and keeps them."""
        if not self._names or not self._has_same_names(reports):
            return self._read_all(reports)
        changed: Dict[str, int] = {}
        values, start = iter(reports.values()), 0
        for number, before in enumerate(self._columns):
            piece = list(islice(values, _A_PIECE))
            now = _columns(piece)
            if now != before:
                self._columns[number] = now
                for place in _different(before, now):
                    self._note(self._names[start + place], before[1][place], now, place, changed)
            start += len(piece)
            give_way()
        return ReportChanges(False, changed)

    def recovered_before(self, pgid: str, now: int) -> int:
        """The counter of a PG whose report has not changed, and now reads `now`."""
        return self._recovered.get(pgid) or now

    def _note(self, pgid: str, recovered: int, now: List[Sequence[Any]], place: int,
              changed: Dict[str, int]) -> None:
        """Records one changed report."""
        changed[pgid] = before = self._recovered.pop(pgid, 0) or recovered
        if not now[1][place] and before:
            self._recovered[pgid] = before

    def _read_all(self, reports: Reports) -> ReportChanges:
        before = self._all_recovered()
        self._names, self._columns = [], []
        self._recovered = {}
        names, values = iter(reports), iter(reports.values())
        while True:
            piece = list(islice(values, _A_PIECE))
            if not piece:
                break
            own = list(islice(names, _A_PIECE))
            columns = _columns(piece)
            self._names += own
            self._columns.append(columns)
            for pgid, recovered in zip(own, columns[1]):
                if not recovered and before.get(pgid):
                    self._recovered[pgid] = before[pgid]
            give_way()
        return ReportChanges(True, before)

    def _all_recovered(self) -> Dict[str, int]:
        """pgid → the counter as of the last reading."""
        found: Dict[str, int] = {}
        names = iter(self._names)
        for columns in self._columns:
            found.update(zip(names, columns[1]))
            give_way()
        found.update(self._recovered)
        return found

    def _has_same_names(self, reports: Reports) -> bool:
        if len(reports) != len(self._names):
            return False
        names = iter(reports)
        for start in range(0, len(self._names), _A_PIECE):
            if list(islice(names, _A_PIECE)) != self._names[start:start + _A_PIECE]:
                return False
            give_way()
        return True


def _columns(reports: Sequence[Mapping[str, Any]]) -> List[Sequence[Any]]:
    """Their bytes, recovered bytes, epochs and states."""
    try:
        return [array("q", [report["num_bytes"] for report in reports]),
                array("q", [report["num_bytes_recovered"] for report in reports]),
                array("q", [report["reported_epoch"] for report in reports]),
                [report["state"] for report in reports]]
    except (KeyError, TypeError, OverflowError):   # an odd report; as lists they can be anything
        return [[report.get("num_bytes") for report in reports],
                [report.get("num_bytes_recovered") or 0 for report in reports],
                [report.get("reported_epoch") for report in reports],
                [report.get("state", "") for report in reports]]


def _different(before: Sequence[Sequence[Any]], now: Sequence[Sequence[Any]]) -> Iterator[int]:
    """The places where any of the columns differs."""
    places: Set[int] = set()
    for one, other in zip(before, now):
        if one != other:
            places.update(compress(range(len(now[3])), map(ne, one, other)))
    return iter(sorted(places))
