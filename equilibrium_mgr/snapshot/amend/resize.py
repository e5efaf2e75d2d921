"""Sizes of the PGs of which nothing has changed but the factors that sizes are computed by.

Where a device class gets other factors every shard on it has another size, and nothing else of its
PG is another: a tenth of what it takes to build the PG.
"""
from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, Mapping, Tuple

from ...runtime.amended_map import AmendedRows
from ...runtime.time_slice import piecewise
from ..model import Pg, Pool
from ..sizes.shard_inputs import NO_RECORD
from .look import Look
from .sizes_kept import SizeRules

_PGS_A_PIECE = 300   # before it gives way again: about a millisecond
_SIZE = Pg._fields.index("shard_bytes")
_UP, _ACTING = Pg._fields.index("up"), Pg._fields.index("acting")

Row = Tuple[Any, ...]   # a Pg as it is stored: a NamedTuple for each would double the time


class Resized:
    """Rows of PGs by pgid, and by how much the bytes of all shards of an OSD have grown."""

    def __init__(self) -> None:
        self.rows: Dict[str, Row] = {}
        self.grown: Dict[int, int] = {}

    def add(self, pgid: str, row: Row, size: int, pool: Pool) -> None:
        """Gives a PG another size."""
        self.rows[pgid] = (*row[:_SIZE], size, *row[_SIZE + 1:])
        before, up, grown = row[_SIZE], row[_UP], self.grown
        more = size - before
        for osd in up:
            if not pool.is_uniform:
                more = pool.bytes_on(size, osd, up) - pool.bytes_on(before, osd, up)
            grown[osd] = grown.get(osd, 0) + more


def resized(pgs: AmendedRows[Pg], pgids: Mapping[int, Iterable[str]], built: Collection[str],
            look: Look, rules: SizeRules) -> Resized:
    """PGs whose size is another by `rules`. `pgids`: pool id → its PGs; `built`: those to leave out
    as they have been built anew."""
    found, (rows, changes) = Resized(), pgs.plain()
    records, size_of, input_of = look.reading.records, rules.model.shard_bytes, rules.inputs.of
    for pool, members in pgids.items():
        of_pool = look.pools[pool]
        for pgid in piecewise(members, _PGS_A_PIECE):
            if pgid not in built:
                row = changes.get(pgid) or rows[pgid]
                size = size_of(input_of(of_pool, records.get(pgid, NO_RECORD), row[_ACTING])[0])
                if size != row[_SIZE]:
                    found.add(pgid, row, size, of_pool)
    return found
