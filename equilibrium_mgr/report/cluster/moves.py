"""`moves`: every shard in flight, who moves it and how much is left; and the sums of each OSD."""
from __future__ import annotations

from collections import Counter
from errno import ENOENT
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...control.steering import Steered
from ...observation.cluster_view import ClusterView
from ...observation.movements import (
    HALTING, ORIGINS, STEERED, Movement, by_state, states_text)
from ...plan.options import osd_id, osds_named
from ...runtime.formatting import format_bytes, format_duration, plural, wrap
from ...runtime.time_slice import grouped
from ...snapshot.model import pg_number
from ..answer import CommandAnswer, CommandError, Row, limited_rows, render_table, rest_line
from .cluster_tables import (
    Columns, age_json, age_line, cells_of, format_osd, text_of)

#: Rows of the table without --limit. JSON has all rows then.
_ROWS_SHOWN = 40
_HEAD = "PG<|POOL<|FROM|TO|SIZE|LEFT|STATE<|WHOSE<"
_COLUMNS: Columns = {
    "pgid": str,
    "pool": str,
    "source": format_osd,
    "target": format_osd,
    "bytes": format_bytes,
    "left_bytes": format_bytes,
    "state": str,
    "origin": str}
_HEAD_BY_OSD = "OSD<|IN|LEFT|OUT|LEFT|IN PER SECOND|TIME LEFT"
_COLUMNS_BY_OSD: Columns = {
    "osd": format_osd,
    "in_shards": str,
    "in_bytes": format_bytes,
    "out_shards": str,
    "out_bytes": format_bytes,
    "bytes_per_second": format_bytes,
    "eta_seconds": format_duration}
_NOTHING = "nothing moves"


def report_moves(view: ClusterView, age_seconds: float, what: Optional[str], pool: Optional[str],
                 waiting_shards: int, limit: Optional[int],
                 steered: Optional[Steered] = None) -> CommandAnswer:
    """Shows the shards that `_shards_of` finds. `waiting_shards`: shards of the execution that are
    not sent yet. `steered`: as in the status. Raises CommandError for a limit below 1, or as
    `_shards_of` does."""
    shards = sorted(_shards_of(view, what, pool), key=_order)
    rows = [_row(view, shard) for shard in shards]
    shown = listed = limited_rows(rows, limit)
    if limit is None:
        shown = rows[:_ROWS_SHOWN]
    left = sum([shard.left_bytes for shard in shards])
    rate = _cluster_rate(view)
    origins = Counter([shard.origin for shard in shards])
    held = steered.held_shards if steered else 0
    data: Dict[str, Any] = {
        **age_json(view, age_seconds),
        "moves": listed,
        "shards": len(rows),
        "left_bytes": left,
        "bytes_per_second": rate,
        "waiting_shards": waiting_shards,
        "held_shards": held}
    lines = [_NOTHING]
    if shards:
        at = ""
        is_running = any([shard.is_running for shard in shards])
        if is_running and rate and not what:
            at = f", at {format_bytes(rate)}/s"
        total = (f"{plural(len(shards), 'shard')}, {format_bytes(left)} left{at}"
                 f"{states_text(by_state(shards))}")
        lines = [render_table(_HEAD, cells_of(shown, _COLUMNS))]
        lines.append(rest_line(len(shown), len(rows), "shard"))
        lines += wrap("", total, 0)
    if not what and (held or origins[STEERED]):
        lines += wrap("whose: ", _whose_text(origins, held), 7)
    if waiting_shards and not what:
        lines += wrap("", f"{plural(waiting_shards, 'planned shard')} not sent yet;"
                      " 'ceph equilibrium status' tells why", 0)
    lines.append(age_line(view, age_seconds))
    return CommandAnswer(data, text_of(lines))


def _whose_text(origins: Mapping[str, int], held: int) -> str:
    """Returns how many shards each origin moves, and how many equilibrium holds."""
    said = ", ".join(f"{origins[origin]} {origin}" for origin in ORIGINS if origins.get(origin))
    if not held:
        return said
    return f"{said}; {plural(held, 'shard')} held where their data is, and not moving"


def _order(shard: Movement) -> Tuple[Any, ...]:
    """Sorts shards: first those that are being copied, then by state. The PGs of a pool are in
    Ceph's order."""
    number = pg_number(shard.pgid)
    return not shard.is_running, shard.state, shard.pool_id, number, shard.target or 0


def _row(view: ClusterView, shard: Movement) -> Row:
    """Returns a shard, JSON-ready. It has no `source` if no OSD has this copy any more."""
    return {**shard._asdict(), "pool": view.snapshot.pools[shard.pool_id].name}


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
    shards = list(view.movements)
    snapshot = view.snapshot
    if not what:
        return shards
    if what in snapshot.pgs:
        return [shard for shard in shards if shard.pgid == what]
    ids = [one.id for one in snapshot.pools.values() if one.name == pool]
    if ids and osd_id(what) not in snapshot.osds:
        return [shard for shard in shards if shard.pool_id in ids]
    osds = osds_named(what, snapshot.crush)
    if osds is None:
        raise CommandError(ENOENT, f"'{what}' is no OSD, no host, no pool and no PG")
    return [shard for shard in shards if not osds.isdisjoint((shard.source, shard.target))]


def report_moves_by_osd(view: ClusterView, age_seconds: float, what: Optional[str],
                        pool: Optional[str], limit: Optional[int]) -> CommandAnswer:
    """Shows how much is still to move to and from each OSD, of the shards that `_shards_of` finds.
    The OSD that gets most comes first."""
    shards = _shards_of(view, what, pool)
    coming = grouped((shard.target, shard.left_bytes) for shard in shards)
    leaving = grouped((shard.source, shard.left_bytes) for shard in shards)
    running = {shard.target for shard in shards if shard.is_running}
    # an OSD that waits for its turn got nothing for minutes
    rates = {osd: rate.per_second for osd, rate in view.rates.by_osd.items() if osd in running}
    rows: List[Row] = []
    for osd in sorted([osd for osd in {*coming, *leaving} if osd is not None]):
        rows.append(_row_of_osd(osd, coming.get(osd, []), leaving.get(osd, []), rates.get(osd)))
    rows.sort(key=lambda row: -row["in_bytes"])
    shown = limited_rows(rows, limit)
    lines = [_NOTHING]
    if rows:
        lines = [render_table(_HEAD_BY_OSD, cells_of(shown, _COLUMNS_BY_OSD))]
    lines.append(rest_line(len(shown), len(rows), "OSD"))
    lines.append(age_line(view, age_seconds))
    return CommandAnswer({**age_json(view, age_seconds), "osds": shown}, text_of(lines))


def _row_of_osd(osd: int, coming: List[int], leaving: List[int],
                rate: Optional[float]) -> Row:
    """Returns the sums of an OSD, JSON-ready. `coming`, `leaving`: bytes left of each shard."""
    left = sum(coming)
    seconds = None
    if rate:
        seconds = left / rate
    return {
        "osd": osd,
        "in_shards": len(coming),
        "in_bytes": left,
        "out_shards": len(leaving),
        "out_bytes": sum(leaving),
        "bytes_per_second": rate,
        "eta_seconds": seconds}
