"""`moves`: every shard in flight, who moves it and how much is left; and the sums of each OSD."""
from __future__ import annotations

import errno
from typing import Any, Dict, List, Optional, Tuple

from ...observation.cluster_view import ClusterView
from ...observation.movements import HALTING, Movement, Rate, by_state, states_text
from ...plan.options import osd_id, osds_named
from ...runtime.formatting import format_bytes, format_duration, plural, wrap
from ...runtime.time_slice import grouped
from ...snapshot.model import pg_number
from ..answer import CommandAnswer, CommandError, Row, limited_rows, render_table, rest_line
from .cluster_tables import age_json, age_line, format_known, format_osd, text_of, text_of

#: Rows of the table without --limit. JSON has all rows then.
ROWS_SHOWN = 40
_HEAD = "PG<|POOL<|FROM|TO|SIZE|LEFT|STATE<|WHOSE<"
_HEAD_BY_OSD = "OSD<|IN|LEFT|OUT|LEFT|IN PER SECOND|TIME LEFT"
_NOTHING = "nothing moves"


def report_moves(view: ClusterView, age_seconds: float, what: Optional[str], pool: Optional[str],
                 waiting_shards: int, limit: Optional[int]) -> CommandAnswer:
    """Shows the shards that `_shards_of` finds. `waiting_shards`: shards of the execution that are
    not sent yet. Raises CommandError for a limit below 1."""
    shards = sorted(_shards_of(view, what, pool), key=_order)
    rows = [_row(view, shard) for shard in shards]
    shown = limited_rows(rows, ROWS_SHOWN if limit is None else limit)
    left = sum([shard.left_bytes for shard in shards])
    rate = _cluster_rate(view)
    data: Dict[str, Any] = {
        **age_json(view, age_seconds),
        "moves": rows if limit is None else shown,
        "shards": len(rows),
        "left_bytes": left,
        "bytes_per_second": rate,
        "waiting_shards": waiting_shards}
    lines = [_NOTHING]
    if shards:
        at = ""
        if rate and not what and any([shard.is_running for shard in shards]):
            at = f", at {format_bytes(rate)}/s"
        total = (f"{plural(len(shards), 'shard')}, {format_bytes(left)} left{at}"
                 f"{states_text(by_state(shards))}")
        lines = [render_table(_HEAD, [_cells(row) for row in shown])]
        lines.append(rest_line(len(shown), len(rows), "shard"))
        lines += wrap("", total, 0)
    if waiting_shards and not what:
        lines += wrap("", f"{plural(waiting_shards, 'planned shard')} not sent yet;"
                      " 'ceph equilibrium status' tells why", 0)
    lines.append(age_line(view, age_seconds))
    return CommandAnswer(data, text_of(lines))


def _order(shard: Movement) -> Tuple[Any, ...]:
    """Sorts shards: first those that are being copied, then by state. The PGs of a pool are in
    Ceph's order."""
    target = -1 if shard.target is None else shard.target
    return not shard.is_running, shard.state, shard.pool_id, pg_number(shard.pgid), target


def _row(view: ClusterView, shard: Movement) -> Row:
    """Returns a shard, JSON-ready. It has no `source` if no OSD has this copy any more."""
    pool = view.snapshot.pools.get(shard.pool_id)
    return {
        "pgid": shard.pgid,
        "pool_id": shard.pool_id,
        "pool": pool.name if pool is not None else None,
        "source": shard.source,
        "target": shard.target,
        "bytes": shard.bytes,
        "left_bytes": shard.left_bytes,
        "state": shard.state,
        "origin": shard.origin}


def _cells(row: Row) -> List[str]:
    """Returns a line of the table of shards."""
    return [
        row["pgid"],
        row["pool"] or str(row["pool_id"]),
        format_osd(row["source"]),
        format_osd(row["target"]),
        format_bytes(row["bytes"]),
        format_bytes(row["left_bytes"]),
        row["state"],
        row["origin"]]


def _cluster_rate(view: ClusterView) -> Optional[float]:
    """Returns the bytes per second that all OSDs get; None if unknown or if a flag halts them."""
    rate = view.rates.all_now
    if not rate.seconds or not HALTING.isdisjoint(view.snapshot.flags):
        return None
    return rate.per_second


def _shards_of(view: ClusterView, what: Optional[str], pool: Optional[str]) -> List[Movement]:
    """Returns the shards in flight of `what`: a PG, an OSD (3 or osd.3), a pool, a host or another
    bucket; all shards for None. `pool`: the name of the pool that `what` would be. Raises
    CommandError if there is nothing of that name."""
    shards, snapshot = list(view.movements), view.snapshot
    if not what:
        return shards
    if what in snapshot.pgs:
        return [shard for shard in shards if shard.pgid == what]
    ids = [one.id for one in snapshot.pools.values() if one.name == pool]
    if ids and osd_id(what) not in snapshot.osds:
        return [shard for shard in shards if shard.pool_id in ids]
    osds = osds_named(what, snapshot.crush)
    if osds is None:
        raise CommandError(errno.ENOENT, f"'{what}' is no OSD, no host, no pool and no PG")
    return [shard for shard in shards if not osds.isdisjoint((shard.source, shard.target))]


def report_moves_by_osd(view: ClusterView, age_seconds: float, what: Optional[str],
                        pool: Optional[str], limit: Optional[int]) -> CommandAnswer:
    """Shows how much is still to move to and from each OSD, of the shards that `_shards_of` finds.
    The OSD that gets most comes first."""
    shards = _shards_of(view, what, pool)
    coming = grouped((shard.target, shard.left_bytes) for shard in shards)
    leaving = grouped((shard.source, shard.left_bytes) for shard in shards)
    rows: List[Row] = []
    for osd in sorted([osd for osd in {*coming, *leaving} if osd is not None]):
        rate = view.rates.by_osd.get(osd, Rate()).per_second
        rows.append(_row_of_osd(osd, coming.get(osd, []), leaving.get(osd, []), rate))
    rows.sort(key=lambda row: -row["in_bytes"])
    shown = limited_rows(rows, limit)
    lines = [_NOTHING]
    if rows:
        lines = [render_table(_HEAD_BY_OSD, [_cells_of_osd(row) for row in shown])]
    lines.append(rest_line(len(shown), len(rows), "OSD"))
    lines.append(age_line(view, age_seconds))
    return CommandAnswer({**age_json(view, age_seconds), "osds": shown}, text_of(lines))


def _row_of_osd(osd: int, coming: List[int], leaving: List[int], rate: float) -> Row:
    """Returns the sums of an OSD, JSON-ready. `coming`, `leaving`: bytes left of each shard."""
    left = sum(coming)
    return {
        "osd": osd,
        "in_shards": len(coming),
        "in_bytes": left,
        "out_shards": len(leaving),
        "out_bytes": sum(leaving),
        "bytes_per_second": rate or None,
        "eta_seconds": left / rate if rate else None}


def _cells_of_osd(row: Row) -> List[str]:
    """Returns a line of the table of OSDs."""
    return [
        f"osd.{row['osd']}",
        str(row["in_shards"]),
        format_bytes(row["in_bytes"]),
        str(row["out_shards"]),
        format_bytes(row["out_bytes"]),
        format_known(row["bytes_per_second"]),
        format_duration(row["eta_seconds"])]
