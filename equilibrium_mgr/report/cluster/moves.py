"""`moves`: every shard in flight, who moves it, and how much of it is left."""
from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...observation.movements import RUNNING_STATES, Movement
from ...runtime.formatting import format_bytes, format_duration, plural, wrap
from ...snapshot.model import Snapshot, pg_number
from ..command_answer import CommandAnswer
from ..table import Column, Row, limited_rows, render_table, rest_line

#: Rows of the table without --limit; JSON has all then.
ROWS_SHOWN = 40

_COLUMNS = (Column("PG", True), Column("POOL", True), Column("FROM"), Column("TO"), Column("SIZE"),
            Column("LEFT"), Column("STATE", True), Column("WHOSE", True))
_OSD = re.compile(r"^(?:osd\.)?(\d{1,9})$")


class Selection(NamedTuple):
    """The shards of one OSD, pool or PG; without any field set, all."""

    osd: Optional[int] = None
    pool_id: Optional[int] = None
    pgid: Optional[str] = None

    def has(self, shard: Movement) -> bool:
        """True where the shard belongs to it."""
        return ((self.osd is None or self.osd in (shard.source, shard.target))
                and self.pool_id in (None, shard.pool_id) and self.pgid in (None, shard.pgid))


def select(what: Optional[str], pool: Optional[str], snapshot: Snapshot) -> Optional[Selection]:
    """The OSD (3 or osd.3), PG or pool that `what` names, in this order; None where there is none.
    `pool`: the name of the pool that it would name."""
    if not what:
        return Selection()
    found = _OSD.match(what)
    if found is not None and int(found.group(1)) in snapshot.osds:
        return Selection(osd=int(found.group(1)))
    if what in snapshot.pgs:
        return Selection(pgid=what)
    ids = [entry.id for entry in snapshot.pools.values() if entry.name == pool]
    return Selection(pool_id=ids[0]) if ids else None


def report_moves(view: ClusterView, age_seconds: float, selection: Selection, waiting_shards: int,
                 limit: Optional[int]) -> CommandAnswer:
    """`waiting_shards`: of the execution, not sent yet. Raises CommandError for a limit below 1."""
    shards = sorted((shard for shard in view.movements if selection.has(shard)), key=_order)
    rows = [_row(shard, view.snapshot) for shard in shards]
    shown = limited_rows(rows, ROWS_SHOWN if limit is None else limit)
    everything = selection == Selection()
    rate = view.rates.all_now.per_second if view.rates.all_now.seconds else None
    data: Dict[str, Any] = {
        "osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds,
        "moves": rows if limit is None else shown, "shards": len(rows),
        "left_bytes": sum(shard.left_bytes for shard in shards),
        "bytes_per_second": rate, "waiting_shards": waiting_shards}
    lines = [render_table(_COLUMNS, [_cells(row) for row in shown])] if rows else []
    lines += [rest_line(len(shown), len(rows), "shard"), *_sums(
        shards, rate if everything else None)]
    if waiting_shards and everything:
        lines += wrap("", f"{plural(waiting_shards, 'planned shard')} not sent yet;"
                      " 'ceph equilibrium status' tells why", 0)
    lines.append(f"placement of osdmap e{view.snapshot.epoch}, {format_duration(age_seconds)} old")
    return CommandAnswer(data, "\n".join(line for line in lines if line))


def _order(shard: Movement) -> Any:
    """Those that are being copied first, then by state; the PGs of a pool in Ceph's order."""
    return (not shard.is_running, shard.state, shard.pool_id, pg_number(shard.pgid),
            -1 if shard.target is None else shard.target)


def _row(shard: Movement, snapshot: Snapshot) -> Row:
    """JSON-ready; in `source` null stands for a copy that no OSD has any more."""
    pool = snapshot.pools.get(shard.pool_id)
    return {"pgid": shard.pgid, "pool_id": shard.pool_id,
            "pool": pool.name if pool is not None else None, "source": shard.source,
            "target": shard.target, "bytes": shard.bytes, "left_bytes": shard.left_bytes,
            "state": shard.state, "origin": shard.origin}


def _cells(row: Row) -> List[str]:
    return [row["pgid"], row["pool"] or str(row["pool_id"]), _osd(row["source"]),
            _osd(row["target"]), format_bytes(row["bytes"]), format_bytes(row["left_bytes"]),
            row["state"], row["origin"]]


def _osd(osd: Optional[int]) -> str:
    return "" if osd is None else f"osd.{osd}"


def _sums(shards: Sequence[Movement], rate: Optional[float]) -> List[str]:
    """One sentence: how many shards, how much of them is left, and what they do. `rate`: at which
    all of them arrive, in bytes per second."""
    if not shards:
        return ["nothing moves"]
    counts = Counter(shard.state for shard in shards)
    running = [state for state in RUNNING_STATES if counts[state]]
    parts = [f"{counts[state]} {state}" for state in running]
    if parts and rate:
        parts[-1] += f" at {format_bytes(rate)}/s"
    parts += [f"{count} {state}" for state, count in sorted(counts.items())
              if state not in running]
    left = format_bytes(sum(shard.left_bytes for shard in shards))
    return wrap("", f"{plural(len(shards), 'shard')}, {left} left: {', '.join(parts)}", 0)

