"""`moves`: every shard in flight, who moves it, and how much of it is left."""
from __future__ import annotations

import errno
from collections import Counter
from typing import Any, Dict, List, Optional

from ...observation.cluster_view import ClusterView
from ...observation.movements import RUNNING_STATES
from ...plan.osd_filter import osd_id
from ...runtime.formatting import format_bytes, format_duration, plural, wrap
from ...snapshot.model import pg_number
from ..command_answer import CommandAnswer, CommandError
from ..table import Column, Row, limited_rows, render_table, rest_line
from .pools import format_osd

#: Rows of the table without --limit; JSON has all then.
ROWS_SHOWN = 40

_COLUMNS = (Column("PG", True), Column("POOL", True), Column("FROM"), Column("TO"), Column("SIZE"),
            Column("LEFT"), Column("STATE", True), Column("WHOSE", True))


def report_moves(view: ClusterView, age_seconds: float, what: Optional[str], pool: Optional[str],
                 waiting_shards: int, limit: Optional[int]) -> CommandAnswer:
    """The shards of the OSD (3 or osd.3), PG or pool that `what` names, in this order; of all for
    None. `pool`: the name of the pool that it would name. `waiting_shards`: of the execution, not
    sent yet. Raises CommandError for what is none of these, and for a limit below 1."""
    snapshot, pools, osd = view.snapshot, view.snapshot.pools, osd_id(what or "")
    shards, ids = list(view.movements), [one.id for one in pools.values() if one.name == pool]
    if osd in snapshot.osds:
        shards = [shard for shard in shards if osd in (shard.source, shard.target)]
    elif what in snapshot.pgs:
        shards = [shard for shard in shards if shard.pgid == what]
    elif ids:
        shards = [shard for shard in shards if shard.pool_id in ids]
    elif what:
        raise CommandError(errno.ENOENT, f"'{what}' is no OSD, no pool and no PG")
    # those that are being copied first, then by state; the PGs of a pool in Ceph's order
    shards.sort(key=lambda shard: (
        not shard.is_running, shard.state, shard.pool_id, pg_number(shard.pgid),
        -1 if shard.target is None else shard.target))
    rows: List[Row] = [{   # without a `source`: a copy that no OSD has any more
        "pgid": shard.pgid, "pool_id": shard.pool_id,
        "pool": pools[shard.pool_id].name if shard.pool_id in pools else None,
        "source": shard.source, "target": shard.target, "bytes": shard.bytes,
        "left_bytes": shard.left_bytes, "state": shard.state, "origin": shard.origin}
        for shard in shards]
    shown = limited_rows(rows, ROWS_SHOWN if limit is None else limit)
    everything, left = not what, sum(shard.left_bytes for shard in shards)
    rate = view.rates.all_now.per_second if view.rates.all_now.seconds else None
    data: Dict[str, Any] = {
        "osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds,
        "moves": rows if limit is None else shown, "shards": len(rows), "left_bytes": left,
        "bytes_per_second": rate, "waiting_shards": waiting_shards}
    lines = [render_table(_COLUMNS, [[
        row["pgid"], row["pool"] or str(row["pool_id"]), format_osd(row["source"]),
        format_osd(row["target"]), format_bytes(row["bytes"]), format_bytes(row["left_bytes"]),
        row["state"], row["origin"]] for row in shown])] if rows else ["nothing moves"]
    lines.append(rest_line(len(shown), len(rows), "shard"))
    counts = Counter(shard.state for shard in shards)
    parts = [f"{counts[state]} {state}" for state in RUNNING_STATES if counts[state]]
    if parts and rate and everything:   # at which all of them arrive
        parts[-1] += f" at {format_bytes(rate)}/s"
    parts += [f"{count} {state}" for state, count in sorted(counts.items())
              if state not in RUNNING_STATES]
    lines += wrap("", f"{plural(len(shards), 'shard')}, {format_bytes(left)} left:"
                  f" {', '.join(parts)}", 0) if shards else ()
    if waiting_shards and everything:
        lines += wrap("", f"{plural(waiting_shards, 'planned shard')} not sent yet;"
                      " 'ceph equilibrium status' tells why", 0)
    lines.append(f"placement of osdmap e{snapshot.epoch}, {format_duration(age_seconds)} old")
    return CommandAnswer(data, "\n".join(line for line in lines if line))
