"""The figures of OSDs, of device classes and of pools, of now as `ceph osd df` and `ceph df` have
them and of what is to come, with the tables of these.

`moves`: every shard in flight, who moves it, and how much of it is left.
"""
from __future__ import annotations

import errno
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...gateway.cluster_summary import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...observation.movements import HALTING, Movement, Rate, by_state, states_text
from ...plan.model import PgChange, PoolSpace, Room, Usage
from ...plan.options import osd_id, osds_named
from ...plan.usage import class_usage
from ...planner.bound.pool_space import PoolSpaceBound
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ...runtime.time_slice import grouped
from ...snapshot.model import Snapshot, pg_number
from ...snapshot.operator_weights import held_advice
from ..answer import (
    CommandAnswer, CommandError, Row, Table, limited_rows, render_table, rest_line)

#: OSDs that are held to a share, each of which has a sentence.
_HELD_SHOWN = 10


def osd_figures(view: ClusterView, wanted: Optional[Sequence[PgChange]]) -> List[Row]:
    """One row for each OSD, by id.

    Utilizations are ratios. `size_bytes`, `used_bytes`, `utilization` and `pgs` are of now; None
    for an OSD without statistics. `soon_`: when everything in flight has arrived. `planned_`: when
    the `wanted` changes have been made too; None without `wanted`. `best_`: in the most even
    placement that the rules allow. `moving_`: shards in flight, `waiting_`: of wanted changes.
    """
    planned = view.planned(wanted).used if wanted is not None else {}
    best = view.utilization_bounds.utilizations if view.utilization_bounds is not None else {}
    moving_in = Counter(move.target for move in view.movements)
    moving_out = Counter(move.source for move in view.movements)
    waiting_in: Counter[int] = Counter()
    waiting_out: Counter[int] = Counter()
    for change in wanted or ():
        waiting_in.update(change.gained_by)
        waiting_out.update(change.lost_by)
    rows: List[Row] = []
    for _, osd in sorted(view.snapshot.osds.items()):
        known, number = osd.has_statistics, osd.id
        used = view.used_now.get(number, osd.used_bytes)
        now, soon, later = (
            None if count is None or not known or osd.size_bytes <= 0 else count / osd.size_bytes
            for count in (used, view.used_soon.get(number), planned.get(number)))
        is_out = not osd.is_in or osd.reweight <= 0.0
        status = [word for holds, word in (   # in Ceph's words
            (not osd.up, "destroyed" if osd.destroyed else "down"), (is_out, "out"),
            (not is_out and osd.reweight < 1.0, f"reweight {osd.reweight:.4f}"),
            (number in view.snapshot.stale_osds, "no new statistics"),
            (not (known or is_out), "no statistics")) if holds]
        rows.append({
            "id": number, "device_class": osd.device_class, "host": osd.host,
            "size_bytes": osd.device_size if known else None,
            "used_bytes": view.device_used_now.get(number, used) if known else None,
            "utilization": now, "soon_utilization": soon, "planned_utilization": later,
            "best_utilization": best.get(number), "pgs": view.counts.acting.get(number, 0),
            "moving_in": moving_in[number], "waiting_in": waiting_in[number],
            "moving_out": moving_out[number], "waiting_out": waiting_out[number],
            "status": status})
    return rows


def held_sentences(snapshot: Snapshot) -> List[str]:
    """A sentence for each of the first OSDs, and one that counts the rest."""
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    sentences = [held_advice(osd) for osd in held[:_HELD_SHOWN]]
    rest = rest_line(len(sentences), len(held), "OSD")
    return sentences + ([f"{rest} are held to a share of the size"] if rest else [])


def class_rows(view: ClusterView, planned_used: Optional[Mapping[int, int]] = None) -> List[Row]:
    """One dictionary for each device class, in the order of names; OSDs that are out or without
    statistics do not count.

    Utilizations are ratios: `utilization` is used bytes ÷ size of the class; it, max, min and
    stddev are of now, as OSDs report them, those that are being drained too. What is to be is of
    the OSDs that take data, and None where a class has none. `soon_`: once everything in flight has
    arrived. `planned_`: by `planned_used`, OSD id → bytes; None without it. `bound_`: no legal
    placement that keeps the operator's weights has a lower maximum, one that does not may; None
    where that is not known of the class by itself.
    """
    later = (("soon_", class_usage(view.snapshot, view.used_soon)),
             ("planned_", {} if planned_used is None else class_usage(view.snapshot, planned_used)))
    rows: List[Row] = []
    for name, now in view.classes_now.items():
        row: Row = {
            "device_class": name, "osds": now.osds, "size_bytes": now.size_bytes,
            "used_bytes": now.used_bytes,
            "utilization": now.used_bytes / now.size_bytes if now.size_bytes else None,
            "max_utilization": now.max, "fullest_osd": now.fullest_osd,
            "min_utilization": now.min, "stddev": now.stddev,
            "bound_utilization": view.bounds.get(name)}
        for prefix, usages in later:
            usage = usages.get(name)
            row.update({f"{prefix}max_utilization": usage and usage.max,
                        f"{prefix}fullest_osd": usage and usage.fullest_osd,
                        f"{prefix}min_utilization": usage and usage.min,
                        f"{prefix}stddev": usage and usage.stddev})
        rows.append(row)
    return rows


def class_table(rows: Sequence[Dict[str, Any]]) -> Table:
    """One line for each dictionary of `class_rows`, in per cent."""
    return ("CLASS<|OSDS|SIZE|%USE|%MAX|FULLEST|%MIN|STDDEV|%SOON|%PLAN|%BOUND", [[
        row["device_class"], str(row["osds"]), format_bytes(row["size_bytes"]),
        format_percent(row["utilization"]), format_percent(row["max_utilization"]),
        f"osd.{row['fullest_osd']}", format_percent(row["min_utilization"]),
        format_percent(row["stddev"]), format_percent(row["soon_max_utilization"]),
        format_percent(row["planned_max_utilization"]),
        format_percent(row["bound_utilization"])] for row in rows])


def pool_rows(view: ClusterView, space: Mapping[int, PoolSpaceNow], now: Usage,
              planned: Optional[Usage]) -> List[Row]:
    """One row for each pool, fullest first.

    `stored`, `percent_used` and `max_avail` are Ceph's own, in its words. `free_bytes`: what
    clients can still write into the pool alone before its first OSD is at full_ratio, as data lies
    now. `planned_`: as it lies by the `planned` usage; None without that. `best_free_bytes`: no
    placement has more.
    """
    bounds = view.utilization_bounds.pool_space if view.utilization_bounds is not None else {}
    rows: List[Row] = []
    for pool in view.snapshot.pools.values():
        if pool.id not in space:   # deleted since
            continue
        ceph = space[pool.id]
        rows.append({
            "id": pool.id, "name": ceph.name, "pg_num": pool.pg_num, "stored": ceph.stored,
            "percent_used": ceph.percent_used, "max_avail": ceph.max_avail,
            **_free("", now.pools.get(pool.name)),
            **_free("planned_", planned.pools.get(pool.name) if planned is not None else None),
            "best_free_bytes": best_free_bytes(bounds.get(pool.id))})
    return sorted(rows, key=lambda row: (-(row["percent_used"] or 0.0), row["id"]))


def pool_table(rows: Sequence[Dict[str, Any]]) -> Table:
    """One line for each row of `pool_rows`."""
    return ("POOL<|ID|PGS|STORED|%USED|FREE|LIMITED BY|PLANNED|MAX AVAIL", [[
        row["name"], str(row["id"]), str(row["pg_num"]), format_known(row["stored"]),
        format_percent(row["percent_used"]), format_known(row["free_bytes"]),
        format_osd(row["limiting_osd"]), format_known(row.get("planned_free_bytes")),
        format_known(row["max_avail"])] for row in rows])


def room_lines(now: Optional[Room], planned: Optional[Room], when: str) -> List[str]:
    """The headline: what fits if all pools grow in proportion to their data."""
    texts = ["unknown" if room is None else format_bytes(room.bytes) + (
        f" ({format_osd(room.limiting_osd)})" if room.limiting_osd is not None else "")
        for room in (now, planned)]
    then = "" if planned is None else f", {texts[1]} {when}"
    return wrap("room ", f"if all pools grow alike: {texts[0]} now{then}", 5)


def best_free_bytes(bound: Optional[PoolSpaceBound]) -> Optional[int]:
    """The bound of a pool's free space; None where it is not known."""
    return bound.free_bytes if bound is not None else None


def room_json(room: Optional[Room]) -> Optional[Dict[str, Any]]:
    """JSON-ready; None where it is not known."""
    return room._asdict() if room is not None else None


def format_known(count: Optional[int]) -> str:
    """Bytes as `ceph df` prints them; empty where they are not known."""
    return "" if count is None else format_bytes(count)


def format_osd(osd: Optional[int]) -> str:
    """'osd.3'; empty for None."""
    return "" if osd is None else f"osd.{osd}"


def _free(prefix: str, space: Optional[PoolSpace]) -> Dict[str, Any]:
    return {f"{prefix}free_bytes": space.free_bytes if space is not None else None,
            f"{prefix}limiting_osd": space.limiting_osd if space is not None else None}


#: Rows of the table without --limit; JSON has all then.
ROWS_SHOWN = 40


def report_moves(view: ClusterView, age_seconds: float, what: Optional[str], pool: Optional[str],
                 waiting_shards: int, limit: Optional[int]) -> CommandAnswer:
    """The shards that `_shards_of` finds; `waiting_shards`: of the execution, not sent yet. Raises
    CommandError for a limit below 1."""
    snapshot, pools = view.snapshot, view.snapshot.pools
    shards = _shards_of(view, what, pool)
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
    rate = view.rates.all_now.per_second if view.rates.all_now.seconds and (
        HALTING.isdisjoint(snapshot.flags)) else None
    data: Dict[str, Any] = {
        "osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds,
        "moves": rows if limit is None else shown, "shards": len(rows), "left_bytes": left,
        "bytes_per_second": rate, "waiting_shards": waiting_shards}
    lines = [render_table("PG<|POOL<|FROM|TO|SIZE|LEFT|STATE<|WHOSE<", [[
        row["pgid"], row["pool"] or str(row["pool_id"]), format_osd(row["source"]),
        format_osd(row["target"]), format_bytes(row["bytes"]), format_bytes(row["left_bytes"]),
        row["state"], row["origin"]] for row in shown])] if rows else ["nothing moves"]
    lines.append(rest_line(len(shown), len(rows), "shard"))
    running = sum(shard.is_running for shard in shards)
    at = f", at {format_bytes(rate)}/s" if running and rate and everything else ""
    lines += wrap("", f"{plural(len(shards), 'shard')}, {format_bytes(left)} left{at}"
                  f"{states_text(by_state(shards))}", 0) if shards else ()
    if waiting_shards and everything:
        lines += wrap("", f"{plural(waiting_shards, 'planned shard')} not sent yet;"
                      " 'ceph equilibrium status' tells why", 0)
    lines.append(f"placement of osdmap e{snapshot.epoch}, {format_duration(age_seconds)} old")
    return CommandAnswer(data, "\n".join(line for line in lines if line))


def _shards_of(view: ClusterView, what: Optional[str], pool: Optional[str]) -> List[Movement]:
    """The shards in flight of the OSD (3 or osd.3), PG, pool, or host or other bucket that `what`
    names, in this order; of all for None. `pool`: the name of the pool that it would name. Raises
    CommandError for what is none of these."""
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
    """What is still to come to each OSD and to leave it, of the shards that `_shards_of` finds; the
    OSDs with the most to come first."""
    shards = _shards_of(view, what, pool)
    coming = grouped((shard.target, shard.left_bytes) for shard in shards)
    leaving = grouped((shard.source, shard.left_bytes) for shard in shards)
    rows: List[Row] = []
    for osd in sorted([osd for osd in {*coming, *leaving} if osd is not None]):
        gets, loses = coming.get(osd, []), leaving.get(osd, [])
        left, rate = sum(gets), view.rates.by_osd.get(osd, Rate()).per_second
        rows.append({
            "osd": osd, "in_shards": len(gets), "in_bytes": left,
            "out_shards": len(loses), "out_bytes": sum(loses),
            "bytes_per_second": rate or None, "eta_seconds": left / rate if rate else None})
    rows.sort(key=lambda row: -row["in_bytes"])
    shown = limited_rows(rows, limit)
    cells = [[f"osd.{row['osd']}", str(row["in_shards"]), format_bytes(row["in_bytes"]),
              str(row["out_shards"]), format_bytes(row["out_bytes"]),
              format_known(row["bytes_per_second"]), format_duration(row["eta_seconds"])]
             for row in shown]
    table = render_table("OSD<|IN|LEFT|OUT|LEFT|IN PER SECOND|TIME LEFT", cells)
    lines = [table if rows else "nothing moves", rest_line(len(shown), len(rows), "OSD"),
             f"placement of osdmap e{view.snapshot.epoch}, {format_duration(age_seconds)} old"]
    return CommandAnswer(
        {"osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds,
         "osds": shown}, "\n".join(line for line in lines if line))
