"""What OSDs that are added, removed or resized, and another pg_num, would lead to."""
from __future__ import annotations

from typing import FrozenSet, List, Mapping, Optional

from ...observation.cluster_view import ClusterView
from ...observation.movements import expected_time
from ...planner.bound.changed import WASTE, ChangeFigures, bound_figures
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, named, named_osds, plural, wrap)
from ...what_if.change import Changes, without
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import format_known
from .evaluation import joined, pool_lines

_NAMED = 4   # OSDs, pools or takes in one line


def report_changes(changes: Changes, figures: ChangeFigures, view: ClusterView, epoch: int,
                   age_seconds: float) -> CommandAnswer:
    """The bounds with the changes, beside those without. `epoch`, `age_seconds`: of their snapshot,
    which may be older than the view, whose highest utilization, free bytes and room are shown.
    `then_`: with the changes made and all balanced, `failed_`: with the worst host lost after that,
    and its data placed on the others."""
    snapshot, usage, ratio = view.snapshot, view.usage_now(), figures.usable_ratio
    now, then, (host, failed) = figures.now, figures.then, figures.failed or ("", None)
    stages = [("", now), ("then_", then), *([("failed_", failed)] if failed is not None else [])]
    classes: List[Row] = [{
        "device_class": name,
        "max_utilization": usage.classes[name].max if name in usage.classes else None,
        **{f"{prefix}bound_utilization": one.highest.get(name) for prefix, one in stages},
        **{f"{prefix}whole_utilization": one.whole.get(name) for prefix, one in stages}}
        for name in then.highest]
    pools: List[Row] = [{
        "id": pool.id, "name": pool.name, "stored": pool.stored_bytes,
        "free_bytes": usage.pools[pool.name].free_bytes,
        **{f"{prefix or 'best_'}free_bytes": one.free_bytes.get(pool.id) for prefix, one in stages}}
        for pool in sorted(snapshot.pools.values(), key=lambda pool: (-pool.stored_bytes, pool.id))]
    room = {"room_bytes": usage.room.bytes if usage.room is not None else None,
            **{f"{prefix or 'best_'}room_bytes": one.room_bytes for prefix, one in stages}}
    data: Row = {
        "osdmap_epoch": epoch, "snapshot_age_seconds": age_seconds,
        "usable_ratio": ratio,
        "better_place": None if figures.better is None else {
            "where": figures.better[0], "usable_ratio": figures.better[1]},
        "least_moved_bytes": then.moved_bytes, **room, "classes": classes, "pools": pools}
    takes = sorted({snapshot.crush.name_of(block.take) for pool in snapshot.pools.values()
                    for block in pool.blocks})
    lines = wrap("", f"no pool's CRUSH rule reaches {plural(figures.unreached, 'OSD')} of those"
                 " that would be added: nothing would be placed there; rules take"
                 f" {named(takes, _NAMED)}", 0) if figures.unreached else []
    lines += wrap("", f"{named(figures.passing_pools, _NAMED)} would place nothing on some of the"
                  " OSDs that would be added: the CRUSH rule chooses of buckets, such as racks,"
                  " that they would not be in", 0) if figures.passing_pools else []
    lines += wrap("", "with " + "; ".join([
        *[f"{plural(one.osds, 'OSD')} of {format_bytes(one.size_bytes)}, class {one.device_class},"
          f" in host {one.host} under {one.bucket}" for one in changes.added],
        *[f"{named_osds(sorted(changes.removed), _NAMED)} removed"
          for _ in list(changes.removed)[:1]],
        *[f"osd.{osd} of {format_bytes(size)}" for osd, size in changes.sizes],
        *[f"{plural(number, 'PG')} in pool {snapshot.pools[pool].name}"
          for pool, number in changes.pg_nums]])
        + f": what is possible once all is balanced; osdmap e{epoch},"
          f" {format_duration(age_seconds)} old", 0)
    if ratio is not None:
        added = sum(one.osds * one.size_bytes for one in changes.added)
        more = (ratio - 1.0) * added
        lines += wrap("usable:", f"{100.0 * min(ratio, 1.0):.0f}% of the"
                      f" {format_bytes(added)} that are added" + (
                          f", and {format_bytes(more)} that are there and unusable now"
                          if ratio > 1.0 + WASTE else
                          f"; {format_bytes(-more)} are of no use there"
                          if ratio < 1.0 - WASTE else "") + (
                          f"; {figures.better[0]}: {100.0 * min(figures.better[1], 1.0):.0f}%"
                          if figures.better is not None else ""))
    lines += wrap("moved:", f"at least {format_bytes(then.moved_bytes)}")
    lines += wrap("room:", ", ".join([f"{format_known(room[key])} {words}" for key, words in (
        ("room_bytes", "now"), ("best_room_bytes", "balanced"), ("then_room_bytes", "then"),
        ("failed_room_bytes", f"with {host} failed")) if key in room])
        + ", at most, if all pools grow alike")
    for what, one in zip(("", f"with {host} failed "), [bounds for _, bounds in stages[1:]]):
        lines += short_lines(what, one.missing_shards)
        full = [name for name, highest in one.highest.items() if highest > snapshot.full_ratio]
        lines += wrap("full:", f"{what}the data of {named(full, _NAMED)} does not fit below"
                      f" full_ratio ({format_percent(snapshot.full_ratio)}%)") if full else []
    if figures.computed_hosts < figures.hosts and host:
        lines += wrap("failed:", f"{host} is the worst of the {figures.computed_hosts} hosts with"
                      f" the most space; of {figures.hosts}, time was too short for the others")
    return CommandAnswer(data, joined([
        lines, [render_table("CLASS<|%MAX|%BOUND|%WHOLE|%THEN|%WHOLE|%FAILED", [[
            row["device_class"], *[format_percent(row.get(key)) for key in (
                "max_utilization", "bound_utilization", "whole_utilization",
                "then_bound_utilization", "then_whole_utilization", "failed_bound_utilization")]]
            for row in classes])],
        pool_lines("POOL<|ID|STORED|FREE|BOUND|THEN|FAILED", pools, [[
            row["name"], str(row["id"]), *[format_known(row.get(key)) for key in (
                "stored", "free_bytes", "best_free_bytes", "then_free_bytes",
                "failed_free_bytes")]] for row in pools], "df")]))


def drain_forecast(view: ClusterView, osds: FrozenSet[int]) -> Row:
    """What it leads to that these OSDs are drained, JSON-ready, once all is balanced; as `eval
    --remove` has it. `expected_seconds`: by the OSD that has most to send or to get."""
    then = bound_figures(without(view.snapshot, osds), with_whole=False)
    left = {osd.id: osd.target_bytes for osd in view.snapshot.osds.values() if osd.id in osds}
    stay = [osd.id for osd in view.snapshot.osds.values()
            if osd.is_for_data and osd.id not in osds]
    each = sum(left.values()) // max(1, len(stay))
    expected = expected_time(view.rates, view.movements, {**dict.fromkeys(stay, each), **left})
    return {
        "least_moved_bytes": then.moved_bytes, "then_room_bytes": then.room_bytes,
        "missing_shards": dict(then.missing_shards),
        "expected_seconds": expected[0] if expected is not None else None,
        "classes": [{"device_class": name, "then_bound_utilization": ratio}
                    for name, ratio in sorted(then.highest.items())]}


def forecast_lines(forecast: Optional[Row]) -> List[str]:
    """The forecast for people."""
    if forecast is None:
        return ["what that leads to is not known yet: the cluster is being looked at"]
    highest = ", ".join([f"{row['device_class']} {format_percent(row['then_bound_utilization'])}%"
                         for row in forecast["classes"]])
    seconds = forecast["expected_seconds"]
    lasts = "" if seconds is None else f", about {format_duration(seconds)}"
    lines = wrap("forecast: ", f"at least {format_bytes(forecast['least_moved_bytes'])} move"
                 f"{lasts}; OSDs are {highest} full"
                 f" at best then; room for {format_known(forecast['then_room_bytes'])}", 10)
    return lines + short_lines("", forecast["missing_shards"])


def short_lines(begin: str, missing: Mapping[str, int]) -> List[str]:
    """Pools that lack places for shards, for people."""
    return wrap("short:", f"{begin}each PG of {named([*missing], _NAMED)} lacks a place for"
                f" {plural(max(missing.values()), 'shard')}") if missing else []
