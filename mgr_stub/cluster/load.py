"""Operations that the clients of a pool do: constant rates, with a rhythm of the week."""

from __future__ import annotations

from itertools import accumulate
from typing import Iterable, NamedTuple, Tuple

WEEK_HOURS = 168

#: A Monday, 0 h UTC, in seconds since the epoch.
_A_MONDAY = 345600.0

#: num_read, num_read_kb, num_write, num_write_kb, and operations that modify an object.
Counts = Tuple[int, ...]


class Rhythm:
    """Factors of a rate, one for each hour of the week; the first is that of Monday, 0 h UTC."""

    def __init__(self, factors: Iterable[float]) -> None:
        self._factors = list(factors)
        self._sums = [0.0, *accumulate(self._factors)]

    def seconds(self, since: float, until: float) -> float:
        """Returns the seconds between two moments, each times its factor."""
        return 3600.0 * (self._hours(until) - self._hours(since))

    def _hours(self, moment: float) -> float:
        weeks, hours = divmod((moment - _A_MONDAY) / 3600.0, WEEK_HOURS)
        hour = int(hours)
        begun = (hours - hour) * self._factors[hour]
        return weeks * self._sums[-1] + self._sums[hour] + begun


class Load(NamedTuple):
    """Reads and writes per second since a moment, with the KiB of each, of `pg_num` PGs."""

    reads: float
    writes: float
    read_kb: float
    write_kb: float
    #: What num_write counts of one write: the parts of a compound operation.
    parts: int
    read_rhythm: Rhythm
    write_rhythm: Rhythm
    since: float = 0.0
    pg_num: int = 1

    def done(self, now: float) -> Counts:
        """Returns what the pool's clients have done so far."""
        reads = int(self.reads * self.read_rhythm.seconds(self.since, now))
        writes = int(self.writes * self.write_rhythm.seconds(self.since, now))
        return (reads, int(reads * self.read_kb), writes * self.parts,
                int(writes * self.write_kb), writes)

    def share(self, count: int, position: int) -> int:
        """Returns the part of the PG at a position. The parts of all PGs are equal but for one, add
        up to the whole, and never fall while it grows."""
        return (count + position) // self.pg_num

    def whole_at(self, part: int, position: int) -> int:
        """Returns the least count of which the PG at a position has such a part."""
        return part * self.pg_num - position
