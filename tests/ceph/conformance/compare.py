"""Where two views differ, and which differences are known, with the reason."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import Any, Dict, List, NamedTuple, Tuple

from .view import NAMES

PG_VALUES = ("up", "acting", "up_primary", "acting_primary", "told_up", "told_acting",
             "misplaced", "degraded")

KNOWN: Tuple[Tuple[str, str], ...] = (
    ("get(pg_status).recovering_*", "rates of the moment: recovery has just been, or not"),
    ("get(pg_status).*_sec: int", "rates of the moment: clients have just read or written"),
    ("get(pg_status).num_*_recovered*", "counts of the last seconds: recovery has just been"),
    ("get(*).*op_queue_age_hist.histogram*",
     "there while operations wait in an OSD's queue, at the moment of its report"),
    ("get(osd_map).blocklist.*", "a real mgr that fails is blocklisted with its clients"),
    ("get(osd_map).pools[[]].read_balance.error_message*",
     "a sentence where primary affinities of 0 leave nothing to compute"),
    ("get(health).*", "the real cluster has checks of its own"),
)
"""(pattern of a difference's place, why the stub may differ)."""


class Difference(NamedTuple):
    """One value that is another in the stub."""

    place: str
    real: Any
    stub: Any

    @property
    def pgid(self) -> str:
        """Of a PG's value, which PG it is; something else of others."""
        return ".".join(self.place.split(".")[1:3])

    @property
    def reason(self) -> str:
        """Why the stub may differ there, "" if it may not."""
        return next((why for pattern, why in KNOWN if fnmatchcase(self.place, pattern)), "")

    def __str__(self) -> str:
        return f"{self.place}: real {self.real}, stub {self.stub}"


class Comparison(NamedTuple):
    """How many values were compared, and those that differ."""

    values: int
    differences: List[Difference]


def unknown(differences: List[Difference]) -> List[Difference]:
    """Differences that nobody has given a reason for."""
    return [difference for difference in differences if not difference.reason]


def allowed(differences: List[Difference]) -> str:
    """How many differences each reason covers, as the end of a sentence."""
    counts = Counter(difference.reason for difference in differences)
    del counts[""]
    shown = "; ".join(f"{count}: {reason}" for reason, count in sorted(counts.items()))
    return f", and allowed ones ({shown})" if shown else ""


def compare(real: Dict[str, Any], stub: Dict[str, Any]) -> Comparison:
    """Two views of one moment."""
    count, found = 0, []
    for table in ("pgs", "pools", "osds", "pg_temp", "upmap_items"):
        for key in sorted({*real[table], *stub[table]}):
            here, there = real[table].get(key), stub[table].get(key)
            values = [(f"{table}.{key}", here, there)]
            if table == "pgs" and here and there:
                values = [(f"pgs.{key}.{name}", here[name], there[name]) for name in PG_VALUES]
            count += len(values)
            found += [Difference(*value) for value in values if value[1] != value[2]]
    return Comparison(count, found)


def compare_shapes(real: Dict[str, List[str]], stub: Dict[str, List[str]]) -> Comparison:
    """Types and keys of what get() gives."""
    count, found = 0, []
    for name in NAMES:
        here, there = set(real.get(name, ())), set(stub.get(name, ()))
        count += len(here | there)
        for line in sorted(here - there):
            found.append(Difference(f"get({name}).{line}", "there", "missing"))
        for line in sorted(there - here):
            found.append(Difference(f"get({name}).{line}", "missing", "there"))
    return Comparison(count, found)
