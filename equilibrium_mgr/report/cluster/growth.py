"""`growth`: how fast the data grows, and when OSDs will be nearfull."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ...growth.forecast import (
    Forecast, Nearfull, Placed, PgNumAdvice, days_at_bound, forecast, members, pg_num_advice)
from ...growth.recorder import Growth
from ...growth.samples import SAMPLE_SECONDS
from ...growth.trend import (
    GROWING, LEAST_POINTS, LEAST_SECONDS, SHRINKING, STEADY, UNKNOWN, Trend)
from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_placement
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, plural, wrap)
from ..command_answer import CommandAnswer
from ..table import Column, Row, render_table
from .evaluation import Look
from .pools import format_osd

_DAY = 86_400.0
#: Advice on pg_num looks so many days ahead.
_AHEAD_DAYS = 30.0
#: Later than this many days nothing is said: trends do not last.
_FARTHEST_DAYS = 3650.0

_CLASSES = (Column("CLASS", is_name=True), *map(Column, (
    "OSDS", "USED", "A DAY", "NEARFULL IN", "FIRST", "PLANNED", "BEST")))
_POOLS = (Column("POOL", is_name=True), *map(Column, (
    "ID", "STORED", "A DAY", "NEARFULL IN", "FIRST", "PLANNED", "PGS", "ADVISED")))


class GrowthSources(NamedTuple):
    """What the answer is made of."""

    look: Look      # its `wanted`: changes still to be made, of the plan where one is named
    growth: Growth
    plan: Optional[str]                       # its name
    max_pg_shards: int                        # of an OSD, as Ceph allows them; 0 for no limit
    now: float                                # seconds since the epoch


class _Forecasts(NamedTuple):
    """Of the data as it lies, and with the changes."""

    placed: Placed
    now: Forecast
    planned_placed: Optional[Placed]
    planned: Optional[Forecast]


def report_growth(sources: GrowthSources) -> CommandAnswer:
    """Trends and the time left by device class and pool, until the first OSD is at nearfull_ratio;
    the data as it lies once everything in flight has arrived. What is stored and used is of now,
    the rest of the look, whose age is told."""
    found, look = _forecasts(sources), sources.look
    classes = class_growth(look.view, sources.growth, found.now, found.planned)
    pools = _pool_rows(sources, found)
    growth = sources.growth
    span = 0 if growth.since is None or growth.until is None else growth.until - growth.since
    parts = [_head(sources, span), render_table(_CLASSES, [[
        row["device_class"], str(row["osds"]), format_bytes(row["used_bytes"]),
        _rate(row), _left(row["nearfull_seconds"]), format_osd(row["first_osd"]),
        _left(row["planned_nearfull_seconds"]), _left(row["best_nearfull_seconds"])]
        for row in classes]).split("\n"), render_table(_POOLS, [[
            row["name"], str(row["id"]), format_bytes(row["stored"]), _rate(row),
            _left(row["nearfull_seconds"]), format_osd(row["first_osd"]),
            _left(row["planned_nearfull_seconds"]), str(row["pg_num"]),
            str(row["advised_pg_num"] or "")] for row in pools]).split("\n"),
        _advice_lines(pools)]
    return CommandAnswer({
        "samples": growth.samples, "since_at": growth.since, "until_at": growth.until,
        "sample_seconds": SAMPLE_SECONDS, "least_samples": LEAST_POINTS,
        "least_seconds": LEAST_SECONDS, "is_enough": _is_enough(growth, span),
        "plan": sources.plan, **look.to_json(),
        "nearfull_ratio": look.view.snapshot.nearfull_ratio,
        "classes": classes, "pools": pools},
        "\n\n".join("\n".join(part) for part in parts if part))


def class_growth(view: ClusterView, growth: Growth, now: Forecast,
                 planned: Optional[Forecast] = None) -> List[Row]:
    """One row for each device class. `nearfull_seconds`: until its first OSD is so; `planned_`
    with the changes, `best_` if it were as even as the rules allow; None where it does not grow or
    that is not known."""
    rows: List[Row] = []
    for name, usage in view.classes_now.items():
        osds, trend = members(view.snapshot, name), growth.device_class(name)
        first = now.first_of(osds)
        then = planned.first_of(osds) if planned is not None else None
        rows.append({
            "device_class": name, "osds": usage.osds, "size_bytes": usage.size_bytes,
            "used_bytes": usage.used_bytes, **_trend_json(trend),
            **_nearfull_json("", first), **_nearfull_json("planned_", then),
            "best_nearfull_seconds": _near(days_at_bound(
                view.snapshot, now, name, view.bounds.get(name), (first, then)))})
    return rows


def growth_rows(view: Optional[ClusterView], growth: Growth, at: float) -> List[Row]:
    """`class_growth` of the data as it lies once everything in flight has arrived, of the classes
    that grow; for reports that show it beside other things. `at`: now, seconds since the epoch."""
    if view is None or not any(trend.rate > 0.0 for trend in growth.pools.values()):
        return []
    now = forecast(view.snapshot, growth, Placed(view.used_soon, view.shards_soon),
                   max(0.0, at - view.snapshot.taken_at) / _DAY)
    return [row for row in class_growth(view, growth, now)
            if row["trend"] == GROWING and row["nearfull_seconds"] is not None]


def _forecasts(sources: GrowthSources) -> _Forecasts:
    view, wanted = sources.look.view, sources.look.wanted
    placed = Placed(view.used_soon, view.shards_soon)
    age_days = sources.look.age_seconds / _DAY
    now = forecast(view.snapshot, sources.growth, placed, age_days)
    if wanted is None:
        return _Forecasts(placed, now, None, None)
    found = planned_placement(view, wanted)
    planned = Placed(found.used, found.shards)
    return _Forecasts(placed, now, planned, forecast(view.snapshot, sources.growth, planned,
                                                     age_days))


def _pool_rows(sources: GrowthSources, found: _Forecasts) -> List[Row]:
    rows: List[Row] = []
    snapshot, space = sources.look.view.snapshot, sources.look.space
    for pool in snapshot.pools.values():
        trend = sources.growth.pool(pool.id)
        stored = space[pool.id].stored if pool.id in space else None
        planned = None if found.planned is None or found.planned_placed is None else (
            found.planned.first_of_pool(found.planned_placed, pool.id))
        advice = pg_num_advice(snapshot, found.placed, pool.id,
                               sources.max_pg_shards, _AHEAD_DAYS, trend.rate)
        rows.append({
            "id": pool.id, "name": pool.name, "pg_num": pool.pg_num,
            "stored": pool.stored_bytes if stored is None else stored,
            **_trend_json(trend), **_nearfull_json("", found.now.first_of_pool(
                found.placed, pool.id)), **_nearfull_json("planned_", planned),
            **_advice_json(advice)})
    rows.sort(key=lambda row: (-(row["growth_bytes_per_day"] or 0.0), -row["stored"], row["id"]))
    return rows


def _trend_json(trend: Trend) -> Row:
    return {"trend": trend.state, "growth_bytes_per_day": trend.bytes_per_day}


def _nearfull_json(prefix: str, found: Optional[Nearfull]) -> Row:
    left = _near(found.days) if found is not None else None
    return {f"{prefix}nearfull_seconds": left,
            f"{prefix}first_osd": found.osd if found is not None and left is not None else None}


def _near(days: Optional[float]) -> Optional[float]:
    """Seconds; None where that is too far ahead."""
    return days * _DAY if days is not None and days <= _FARTHEST_DAYS else None


def _advice_json(advice: Optional[PgNumAdvice]) -> Row:
    return {"advised_pg_num": advice.pg_num if advice is not None else None,
            "shard_ratio": advice.shard_ratio if advice is not None else None,
            "ahead_shard_ratio": advice.ahead_shard_ratio if advice is not None else None,
            "advised_shard_ratio": advice.advised_shard_ratio if advice is not None else None,
            "shards_per_osd": advice.shards_per_osd if advice is not None else None,
            "advised_shards_per_osd": (advice.advised_shards_per_osd
                                       if advice is not None else None)}


def _is_enough(growth: Growth, span: float) -> bool:
    return growth.samples >= LEAST_POINTS and span >= LEAST_SECONDS


def _head(sources: GrowthSources, span: float) -> List[str]:
    growth = sources.growth
    ratio = format_percent(sources.look.view.snapshot.nearfull_ratio)
    age = [sources.look.line()]
    what = f"{plural(growth.samples, 'sample')} over {format_duration(span)}"
    if not _is_enough(growth, span):
        return age + wrap("", f"not enough history yet: {what}; {LEAST_POINTS} over"
                    f" {format_duration(LEAST_SECONDS)} are needed, and one is taken every"
                    f" {format_duration(SAMPLE_SECONDS)}", 0)
    plan = "" if sources.plan is None else f"; PLANNED is with {sources.plan}"
    return age + wrap("", f"{what}; nearfull is {ratio}%{plan}; BEST is if data were as even as the"
                      " rules allow", 0)


def _rate(row: Row) -> str:
    if row["trend"] in (UNKNOWN, STEADY):
        return {UNKNOWN: "", STEADY: "steady"}[row["trend"]]
    sign = "" if row["trend"] == SHRINKING else "+"
    return sign + format_bytes(row["growth_bytes_per_day"])


def _left(seconds: Optional[float]) -> str:
    if seconds is None:
        return ""
    return "now" if seconds <= 0.0 else format_duration(seconds)


def _advice_lines(pools: Sequence[Row]) -> List[str]:
    lines: List[str] = []
    for row in pools:
        if row["advised_pg_num"] is not None:
            now, ahead = (format_percent(row[key]) for key in ("shard_ratio", "ahead_shard_ratio"))
            grows = f" ({ahead}% in {_AHEAD_DAYS:.0f} days)" if ahead != now else ""
            lines += wrap("pg_num ", f"{row['advised_pg_num']} of pool {row['name']} (now"
                          f" {row['pg_num']}): a shard is {now}% of an OSD{grows},"
                          f" {format_percent(row['advised_shard_ratio'])}% then;"
                          f" {row['shards_per_osd']:.0f} PG shards per OSD,"
                          f" {row['advised_shards_per_osd']:.0f} then", 7)
    return lines


def growth_line(rows: Sequence[Mapping[str, Any]], within_days: float) -> str:
    """The class that is nearfull first, where that is soon; empty where none is."""
    soon: List[Dict[str, Any]] = [dict(row) for row in rows if row["nearfull_seconds"] is not None
                                  and row["nearfull_seconds"] <= within_days * _DAY]
    if not soon:
        return ""
    row = min(soon, key=lambda one: float(one["nearfull_seconds"]))
    best = row["best_nearfull_seconds"]
    now, then = (_when(row["nearfull_seconds"]), _when(best) if best is not None else "")
    return (f"class {row['device_class']} grows by {format_bytes(row['growth_bytes_per_day'] or 0)}"
            f" a day: osd.{row['first_osd']} is nearfull {now}"
            + (f"; with all OSDs as even as can be, the first would be {then}" if then else ""))


def _when(seconds: float) -> str:
    return "now" if seconds <= 0.0 else f"in {_left(seconds)}"
