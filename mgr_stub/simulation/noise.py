"""Noise on the bytes that PGs and OSDs report: a factor for each, drawn anew with each report."""

from __future__ import annotations

import random
from itertools import compress
from operator import is_not
from typing import Any, Dict, Iterable, List, Tuple

from ..frozen import ReadOnlyDict, ReadOnlyRecords

_Record = Dict[str, Any]


class Noise:
    """Adds noise to readings; keeps what it has made of PGs while their records and factors last."""

    def __init__(self) -> None:
        #: "pgs" or "osds" → what the factors were drawn from, and they themselves.
        self._factors: Dict[str, Tuple[Tuple[str, float, int], List[float]]] = {}
        #: The records of PGs that were last given noise, the factors, and both together.
        self._pgs: Tuple[List[_Record], List[float], ReadOnlyRecords] = [], [], ReadOnlyRecords()

    def added(self, name: str, value: Any, noise: float, seed: str) -> Any:
        """A structure of `MgrModule.get` with noise; `seed` has a place for "pgs" or "osds"."""
        if name == "pg_progress":
            factors = self._drawn("pgs", noise, seed, len(value["pgs"]))
            return {**value, "pgs": self._noisy_progress(value["pgs"], factors)}
        noisy = dict(value)
        if "pg_stats" in noisy:
            records = noisy["pg_stats"]
            noisy["pg_stats"] = _noisy_pgs(
                records, self._drawn("pgs", noise, seed, len(records)))
        if "osd_stats" in noisy:
            records = noisy["osd_stats"]
            noisy["osd_stats"] = _noisy_osds(
                records, self._drawn("osds", noise, seed, len(records)))
        return noisy

    def _drawn(self, kind: str, noise: float, seed: str, count: int) -> List[float]:
        """A factor for each PG or OSD, in their order."""
        key = (seed, noise, count)
        if kind not in self._factors or self._factors[kind][0] != key:
            draw = random.Random(seed % kind).random   # a local name: drawn for every PG
            self._factors[kind] = key, [1.0 + noise * (2.0 * draw() - 1.0) for _ in range(count)]
        return self._factors[kind][1]

    def _noisy_progress(self, records: Dict[str, _Record],
                        factors: List[float]) -> ReadOnlyRecords:
        """The records with noise; costs what has changed since the last call."""
        now = list(records.values())
        before, last_factors, last = self._pgs
        changed: Iterable[Tuple[str, _Record, float]] = zip(records, now, factors)
        if last_factors is factors and list(last) == list(records):
            noisy = ReadOnlyRecords(last)
            changed = compress(changed, map(is_not, now, before))
        else:
            noisy = ReadOnlyRecords()
        for pgid, record, factor in changed:
            noisy[pgid] = ReadOnlyDict(
                {**record, "num_bytes": int(record["num_bytes"] * factor)})
        self._pgs = now, factors, noisy
        return ReadOnlyRecords(noisy)


def _noisy_osds(records: List[_Record], factors: List[float]) -> List[_Record]:
    noisy: List[_Record] = []
    for record, factor in zip(records, factors):
        statfs = record["statfs"]
        total = int(statfs["total"])
        used = min(total, int((total - int(statfs["available"])) * factor))
        noisy.append(ReadOnlyDict({
            **record, "kb_used": used >> 10, "kb_avail": (total - used) >> 10,
            "statfs": ReadOnlyDict({**statfs, "available": total - used})}))
    return noisy


def _noisy_pgs(records: List[_Record], factors: List[float]) -> List[_Record]:
    return [{**record, "stat_sum": {
        **record["stat_sum"], "num_bytes": int(record["stat_sum"]["num_bytes"] * factor)}}
        for record, factor in zip(records, factors)]
