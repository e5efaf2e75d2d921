"""What OSDs that are added, removed or resized, and another pg_num, would lead to."""
from __future__ import annotations

from typing import Dict, List, Optional

from ...observation.cluster_view import ClusterView
from ...planner.bound.changed import WASTE, BoundFigures, ChangeFigures
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, named, plural, wrap)
from ...snapshot.model import Snapshot
from ...what_if.change import Changes
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import format_known
from .evaluation import joined, pool_lines

_NAMED = 4   # OSDs that are resized, and pools, in one line


def report_changes(changes: Changes, figures: ChangeFigures, view: ClusterView,
                   age_seconds: float) -> CommandAnswer:
    """The bounds with the changes, beside those of now. `then_`: with the changes made and all
    balanced, `failed_`: with the worst host lost after that, and its data placed on the others."""
    names = {pool.id: pool.name for pool in view.snapshot.pools.values()}
    now, then, failed, usage = figures.now, figures.then, figures.failed, view.usage_now()
    classes: List[Row] = [{
        "device_class": name,
        "max_utilization": usage.classes[name].max if name in usage.classes else None,
        **_class("", now, name), **_class("then_", then, name), **_class("failed_", failed, name)}
        for name in then.highest]
    pools: List[Row] = [{
        "id": pool, "name": names[pool], "stored": view.snapshot.pools[pool].stored_bytes,
        "free_bytes": usage.pools[names[pool]].free_bytes, **_pool("best_", now, pool),
        **_pool("then_", then, pool), **_pool("failed_", failed, pool)}
        for pool in sorted(then.free_bytes, key=lambda pool: (
            -view.snapshot.pools[pool].stored_bytes, pool))]
    room = usage.room.bytes if usage.room is not None else None
    data: Row = {
        "osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds,
        "added": [one._asdict() for one in changes.added], "added_bytes": changes.added_bytes,
        "removed_osds": sorted(changes.removed),
        "resized": [{"osd": osd, "size_bytes": size} for osd, size in changes.sizes],
        "pg_num": [{"id": pool, "name": names[pool], "pg_num": number}
                   for pool, number in changes.pg_nums],
        "unreached_osds": len(figures.unreached), "usable_ratio": figures.usable_ratio,
        "better_place": None if figures.better is None else {
            "where": figures.better[0], "usable_ratio": figures.better[1]},
        "room_bytes": room, "best_room_bytes": now.room_bytes,
        "then_room_bytes": then.room_bytes, "least_moved_bytes": then.moved_bytes,
        "failed_host": figures.failed_host or None,
        "failed_room_bytes": failed.room_bytes if failed is not None else None,
        "computed_hosts": figures.computed_hosts, "hosts": figures.hosts,
        "classes": classes, "pools": pools}
    head = "with " + "; ".join([
        *[one.sentence() for one in changes.added],
        *_others(changes, names)])
    lines = _unreached(figures, view.snapshot) + wrap(
        "", f"{head}: what is possible once all is balanced; osdmap e{view.snapshot.epoch},"
        f" {format_duration(age_seconds)} old", 0)
    lines += _usable(changes, figures)
    lines += wrap("moved:", f"at least {format_bytes(then.moved_bytes)}")
    lines += wrap("room:", f"{format_known(room)} now, {format_known(now.room_bytes)} balanced,"
                  f" {format_known(then.room_bytes)} then" + (
                      f", {format_known(failed.room_bytes)} with {figures.failed_host} failed"
                      if failed is not None else "") + ", if all pools grow alike")
    for what, found in (("", then), (f"with {figures.failed_host} failed ", failed)):
        lines += _short(what, found, view.snapshot)
    left = figures.hosts - figures.computed_hosts
    lines += wrap("failed:", f"{figures.failed_host} is the worst of {figures.computed_hosts} hosts"
                  f" with the most space; {left} others were not computed") if left else []
    parts = [lines, [render_table("CLASS<|%MAX|%BOUND|%WHOLE|%THEN|%WHOLE|%FAILED", [[
        row["device_class"], *[format_percent(row[key]) for key in (
            "max_utilization", "bound_utilization", "whole_utilization", "then_bound_utilization",
            "then_whole_utilization", "failed_bound_utilization")]] for row in classes])],
        pool_lines("POOL<|ID|STORED|FREE|BOUND|THEN|FAILED", pools, [[
            row["name"], str(row["id"]), *[format_known(row[key]) for key in (
                "stored", "free_bytes", "best_free_bytes", "then_free_bytes",
                "failed_free_bytes")]] for row in pools], "df")]
    return CommandAnswer(data, joined(parts))


def _others(changes: Changes, names: Dict[int, str]) -> List[str]:
    found = [f"{changes.removed_names} removed ({plural(len(changes.removed), 'OSD')})"] * bool(
        changes.removed)
    sizes = [f"osd.{osd} of {format_bytes(size)}" for osd, size in changes.sizes]
    found += [named(sizes, _NAMED)] * bool(sizes)
    return found + [f"{number} PGs in pool {names[pool]}" for pool, number in changes.pg_nums]


def _unreached(figures: ChangeFigures, snapshot: Snapshot) -> List[str]:
    takes = sorted({f"osd.{block.take}" if block.take >= 0 else snapshot.crush.buckets[
        block.take].name for pool in snapshot.pools.values() if pool.rule is not None
        for block in pool.rule.blocks})
    return wrap("", f"no pool's CRUSH rule reaches {plural(len(figures.unreached), 'OSD')} of those"
                f" that would be added: nothing would be placed there; rules take"
                f" {named(takes, _NAMED)}", 0) if figures.unreached else []


def _usable(changes: Changes, figures: ChangeFigures) -> List[str]:
    """The share of what is added that can be used, and where more of it could."""
    ratio, size = figures.usable_ratio, changes.added_bytes
    if ratio is None:
        return []
    text = f"{100.0 * min(ratio, 1.0):.0f}% of the {format_bytes(size)} that are added"
    if ratio > 1.0 + WASTE:
        text += f", and {format_bytes((ratio - 1.0) * size)} that are there and unusable now"
    elif ratio < 1.0 - WASTE:
        text += f"; {format_bytes((1.0 - ratio) * size)} are of no use there"
    if figures.better is not None:
        text += f"; {figures.better[0]}: {100.0 * min(figures.better[1], 1.0):.0f}%"
    return wrap("usable:", text)


def _short(what: str, figures: Optional[BoundFigures], snapshot: Snapshot) -> List[str]:
    """What has no place then."""
    if figures is None:
        return []
    short = figures.missing_shards
    full = [name for name, highest in figures.highest.items() if highest > snapshot.full_ratio]
    return (wrap("short:", f"{what}each PG of"
                 f" {named([snapshot.pools[pool].name for pool in short], _NAMED)} lacks a place for"
                 f" {plural(max(short.values()), 'shard')}") if short else []) + (
        wrap("full:", f"{what}the data of {named(full, _NAMED)} does not fit below full_ratio"
             f" ({format_percent(snapshot.full_ratio)}%)") if full else [])


def _class(prefix: str, figures: Optional[BoundFigures], name: str) -> Row:
    return {f"{prefix}bound_utilization": None if figures is None else figures.highest.get(name),
            f"{prefix}whole_utilization": None if figures is None else figures.whole.get(name)}


def _pool(prefix: str, figures: Optional[BoundFigures], pool: int) -> Row:
    return {f"{prefix}free_bytes": None if figures is None else figures.free_bytes.get(pool)}
