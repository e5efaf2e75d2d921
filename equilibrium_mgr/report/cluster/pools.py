"""`df`: what clients can still write, into each pool and into all of them."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...gateway.pool_space import PoolSpaceNow
from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_usage
from ...plan.model import PgChange, PoolSpace, Room, Usage
from ...planner.bound.pool_space import PoolSpaceBound
from ...runtime.formatting import format_bytes, format_duration, format_percent, wrap
from ..command_answer import CommandAnswer
from ..table import Column, Row, SortKeys, limited_rows, render_table, rest_line, sorted_rows

_COLUMNS = (Column("POOL", is_name=True),) + tuple(Column(title) for title in (
    "ID", "PGS", "STORED", "%USED", "FREE", "LIMITED BY", "PLANNED", "MAX AVAIL"))

#: Keys of `--sort`.
POOL_SORT_KEYS: SortKeys = {
    "used": lambda row: row["percent_used"], "stored": lambda row: row["stored"],
    "free": lambda row: row["free_bytes"], "planned": lambda row: row["planned_free_bytes"],
    "pgs": lambda row: row["pg_num"], "id": lambda row: row["id"],
    "name": lambda row: row["name"]}


def report_df(view: ClusterView, age_seconds: float, space: Mapping[int, PoolSpaceNow],
              plan: Optional[str], wanted: Optional[Sequence[PgChange]],
              sort: Optional[str] = None, limit: Optional[int] = None) -> CommandAnswer:
    """`plan`: name of the plan whose changes are `wanted`; None for those of the execution, which
    are None where nothing is executed. Raises CommandError for a wrong `sort` or `limit`."""
    now, planned = view.usage_now(), None if wanted is None else planned_usage(view, wanted)
    rows = pool_rows(view, space, now, planned)
    rows = rows if sort is None else sorted_rows(rows, sort, POOL_SORT_KEYS)
    shown, later = limited_rows(rows, limit), planned.room if planned is not None else None
    data = {"osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds, "plan": plan,
            "room": room_json(now.room), "planned_room": room_json(later), "pools": shown}
    when = f"with plan {plan}" if plan is not None else "with the plan"
    lines = [f"placement of osdmap e{view.snapshot.epoch}, {format_duration(age_seconds)} old",
             *room_lines(now.room, later, when)]
    if shown:
        lines += ["", pool_table(shown)]
    return CommandAnswer(data, "\n".join(
        lines + [line for line in [rest_line(len(shown), len(rows), "pool")] if line]))


def pool_rows(view: ClusterView, space: Mapping[int, PoolSpaceNow], now: Usage,
              planned: Optional[Usage]) -> List[Row]:
    """One row for each pool, fullest first.

    `stored`, `percent_used` and `max_avail` are Ceph's own, in its words. `free_bytes`: what
    clients can still write into the pool alone before its first OSD is at full_ratio, as data lies
    now. `planned_`: as it lies by the `planned` usage; None without that. `best_free_bytes`: no
    placement has more, for `best_free_limit`.
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
            **best_free(bounds.get(pool.id))})
    return sorted(rows, key=lambda row: (-(row["percent_used"] or 0.0), row["id"]))


def pool_table(rows: Sequence[Dict[str, Any]]) -> str:
    """One line for each row of `pool_rows`."""
    return render_table(_COLUMNS, [[
        row["name"], str(row["id"]), str(row["pg_num"]), format_known(row["stored"]),
        format_percent(row["percent_used"]), format_known(row["free_bytes"]),
        format_osd(row["limiting_osd"]), format_known(row["planned_free_bytes"]),
        format_known(row["max_avail"])] for row in rows])


def room_lines(now: Optional[Room], planned: Optional[Room],
               when: str = "with the plan") -> List[str]:
    """The headline: what fits if all pools grow in proportion to their data."""
    texts = ["unknown" if room is None else format_bytes(room.bytes) + (
        f" ({format_osd(room.limiting_osd)})" if room.limiting_osd is not None else "")
        for room in (now, planned)]
    then = "" if planned is None else f", {texts[1]} {when}"
    return wrap("room ", f"if all pools grow alike: {texts[0]} now{then}", 5)


def best_free(bound: Optional[PoolSpaceBound]) -> Dict[str, Any]:
    """The bound of a pool's free space and what sets it, JSON-ready."""
    return {"best_free_bytes": bound.free_bytes if bound is not None else None,
            "best_free_limit": bound.kind if bound is not None else None}


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
