"""`eval --add`, `--remove`, `--resize` and `--pg-num`, and the forecast of a drain."""
from __future__ import annotations

from typing import FrozenSet, List, Mapping, Optional, Set

from ...observation.cluster_view import ClusterView
from ...observation.movements import expected_time
from ...plan.model import Usage
from ...planner.bound.changed import WASTE, BoundFigures, ChangeFigures, bound_figures
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, named, named_osds, plural, wrap)
from ...snapshot.model import Pool, Snapshot
from ...what_if.change import Changes, without
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import Columns, cells_of, class_figures, format_known
from .evaluation import joined, pool_lines

_NAMED = 4   # OSDs, pools or takes in one line
_CLASS_HEAD = "CLASS<|%MAX|%BOUND|%WHOLE|%THEN|%WHOLE|%FAILED"
_CLASS_COLUMNS: Columns = {
    "device_class": str,
    "max_utilization": format_percent,
    "bound_utilization": format_percent,
    "whole_utilization": format_percent,
    "then_bound_utilization": format_percent,
    "then_whole_utilization": format_percent,
    "failed_bound_utilization": format_percent}
_POOL_HEAD = "POOL<|ID|STORED|FREE|BOUND|THEN|FAILED"
_POOL_COLUMNS: Columns = {
    "name": str,
    "id": str,
    "stored": format_bytes,
    "free_bytes": format_bytes,
    "best_free_bytes": format_bytes,
    "then_free_bytes": format_bytes,
    "failed_free_bytes": format_bytes}

#: Prefix of fields → the bounds: "" of the cluster as it is, "then_" with the changes made and all
#: balanced, "failed_" with the worst host lost after that, and its data recovered on the others.
_Stages = Mapping[str, BoundFigures]
_NO_FIGURES = BoundFigures({}, {}, None, {}, 0.0, 0, {})   # of a host that is the only one


def report_changes(changes: Changes, figures: ChangeFigures, view: ClusterView, epoch: int,
                   age_seconds: float) -> CommandAnswer:
    """Shows the bounds with the changes, beside those without.

    `epoch`, `age_seconds`: of the snapshot of the bounds, which may be older than the view. The
    highest utilization, free bytes and room of now are those of the view.
    """
    host, failed = figures.failed or ("", _NO_FIGURES)
    stages = {"": figures.now, "then_": figures.then, "failed_": failed}
    usage = view.usage_now()
    better = None
    if figures.better is not None:
        better = {"where": figures.better[0], "usable_ratio": figures.better[1]}
    classes = [_class_row(name, usage, stages) for name in figures.then.highest]
    largest = sorted(view.snapshot.pools.values(), key=lambda pool: (-pool.stored_bytes, pool.id))
    pools = [_pool_row(pool, usage, stages) for pool in largest]
    room = _room(usage, stages)
    then = figures.then
    snapshot = view.snapshot
    moved = then.moved_bytes
    data: Row = {
        "osdmap_epoch": epoch,
        "snapshot_age_seconds": age_seconds,
        "usable_ratio": figures.usable_ratio,
        "better_place": better,
        "least_moved_bytes": moved,
        **room,
        "classes": classes,
        "pools": pools}
    lines = _unused_lines(figures, snapshot)
    lines += wrap("", f"with {'; '.join(_words(changes, snapshot))}: what is possible once all"
                  f" is balanced; osdmap e{epoch}, {format_duration(age_seconds)} old", 0)
    lines += _usable_lines(changes, figures)
    lines += wrap("moved:", f"at least {format_bytes(moved)}")
    lines += wrap("room:", f"{_room_words(room, host)}, at most, if all pools grow alike")
    lines += _stage_lines("", then, snapshot)
    lines += _stage_lines(f"with {host} failed ", failed, snapshot)
    if host and figures.computed_hosts < figures.hosts:
        lines += wrap("failed:", f"{host} is the worst of the {figures.computed_hosts} hosts with"
                      f" the most space; of {figures.hosts}, time was too short for the others")
    table = render_table(_CLASS_HEAD, cells_of(classes, _CLASS_COLUMNS))
    cells = cells_of(pools, _POOL_COLUMNS)
    return CommandAnswer(data, joined([lines, [table], pool_lines(_POOL_HEAD, pools, cells, "df")]))


def _class_row(name: str, usage: Usage, stages: _Stages) -> Row:
    """Returns the figures of a device class, JSON-ready."""
    row = {"device_class": name, **class_figures("", usage.classes.get(name))}
    for prefix, bounds in stages.items():
        row[prefix + "bound_utilization"] = bounds.highest.get(name)
        row[prefix + "whole_utilization"] = bounds.whole.get(name)
    return row


def _pool_row(pool: Pool, usage: Usage, stages: _Stages) -> Row:
    """Returns the free space of a pool, JSON-ready."""
    row: Row = {
        "id": pool.id,
        "name": pool.name,
        "stored": pool.stored_bytes,
        "free_bytes": usage.pools[pool.name].free_bytes}
    for prefix, bounds in stages.items():
        row[(prefix or "best_") + "free_bytes"] = bounds.free_bytes.get(pool.id)
    return row


def _room(usage: Usage, stages: _Stages) -> Row:
    """Returns what all pools together can still take, JSON-ready."""
    room: Row = {"room_bytes": getattr(usage.room, "bytes", None)}
    for prefix, bounds in stages.items():
        room[(prefix or "best_") + "room_bytes"] = bounds.room_bytes
    return room


def _room_words(room: Row, host: str) -> str:
    """Returns the room for people. `host`: the one that `failed_` is about."""
    words = {
        "room_bytes": "now",
        "best_room_bytes": "balanced",
        "then_room_bytes": "then"}
    if host:
        words["failed_room_bytes"] = f"with {host} failed"
    return ", ".join([f"{format_known(room[key])} {word}" for key, word in words.items()])


def _unused_lines(figures: ChangeFigures, snapshot: Snapshot) -> List[str]:
    """Says which of the added OSDs get no data."""
    lines: List[str] = []
    if figures.unreached:
        takes: Set[str] = set()
        for pool in snapshot.pools.values():
            takes.update([snapshot.crush.name_of(block.take) for block in pool.blocks])
        lines += wrap("", f"no pool's CRUSH rule reaches {plural(figures.unreached, 'OSD')} of"
                      " those that would be added: nothing would be placed there; rules take"
                      f" {named(sorted(takes), _NAMED)}", 0)
    if figures.passing_pools:
        lines += wrap("", f"{named(figures.passing_pools, _NAMED)} would place nothing on some of"
                      " the OSDs that would be added: the CRUSH rule chooses of buckets, such as"
                      " racks, that they would not be in", 0)
    return lines


def _words(changes: Changes, snapshot: Snapshot) -> List[str]:
    """Returns each change in words."""
    words: List[str] = []
    for one in changes.added:
        osds = f"{plural(one.osds, 'OSD')} of {format_bytes(one.size_bytes)}"
        words.append(f"{osds}, class {one.device_class}, in host {one.host} under {one.bucket}")
    if changes.removed:
        words.append(f"{named_osds(sorted(changes.removed), _NAMED)} removed")
    words += [f"osd.{osd} of {format_bytes(size)}" for osd, size in changes.sizes]
    words += [f"{plural(pg_num, 'PG')} in pool {snapshot.pools[pool].name}"
              for pool, pg_num in changes.pg_nums]
    return words


def _usable_lines(changes: Changes, figures: ChangeFigures) -> List[str]:
    """Says how much of the added bytes can be filled; nothing if no bytes are added."""
    ratio = figures.usable_ratio
    if ratio is None:
        return []
    added = sum([one.osds * one.size_bytes for one in changes.added])
    more = (ratio - 1.0) * added
    text = f"{_at_most_all(ratio)} of the {format_bytes(added)} that are added"
    if ratio > 1.0 + WASTE:
        text += f", and {format_bytes(more)} that are there and unusable now"
    elif ratio < 1.0 - WASTE:
        text += f"; {format_bytes(-more)} are of no use there"
    if figures.better is not None:
        where, usable = figures.better
        text += f"; {where}: {_at_most_all(usable)}"
    return wrap("usable:", text)


def _at_most_all(ratio: float) -> str:
    return f"{100.0 * min(ratio, 1.0):.0f}%"


def _stage_lines(begin: str, bounds: BoundFigures, snapshot: Snapshot) -> List[str]:
    """Names the pools and classes that do not fit. `begin`: names the stage, in front of each
    sentence."""
    lines = short_lines(begin, bounds.missing_shards)
    full = [name for name, highest in bounds.highest.items() if highest > snapshot.full_ratio]
    if full:
        lines += wrap("full:", f"{begin}the data of {named(full, _NAMED)} does not fit below"
                      f" full_ratio ({format_percent(snapshot.full_ratio)}%)")
    return lines


def drain_forecast(view: ClusterView, osds: FrozenSet[int]) -> Row:
    """Returns the figures after a drain of these OSDs, once all is balanced, JSON-ready. They are
    those of `eval --remove`. `expected_seconds`: of the OSD that has most to send or to get."""
    snapshot = view.snapshot
    then = bound_figures(without(snapshot, osds), with_whole=False)
    left = {osd: snapshot.osds[osd].target_bytes for osd in osds & snapshot.osds.keys()}
    stay = [osd.id for osd in snapshot.osds.values() if osd.is_for_data and osd.id not in osds]
    each = sum(left.values()) // max(1, len(stay))
    seconds = None
    expected = expected_time(view.rates, view.movements, {**dict.fromkeys(stay, each), **left})
    if expected is not None:
        seconds, _ = expected
    return {
        "least_moved_bytes": then.moved_bytes,
        "then_room_bytes": then.room_bytes,
        "missing_shards": dict(then.missing_shards),
        "expected_seconds": seconds,
        "classes": [{"device_class": name, "then_bound_utilization": ratio}
                    for name, ratio in sorted(then.highest.items())]}


def forecast_lines(forecast: Optional[Row]) -> List[str]:
    """Returns the forecast for people."""
    if forecast is None:
        return ["what that leads to is not known yet: the cluster is being looked at"]
    text = f"at least {format_bytes(forecast['least_moved_bytes'])} move"
    if forecast["expected_seconds"] is not None:
        text += f", about {format_duration(forecast['expected_seconds'])}"
    highest = [f"{row['device_class']} {format_percent(row['then_bound_utilization'])}%"
               for row in forecast["classes"]]
    text += (f"; OSDs are {', '.join(highest)} full at best then; room for"
             f" {format_known(forecast['then_room_bytes'])}")
    return wrap("forecast: ", text, 10) + short_lines("", forecast["missing_shards"])


def short_lines(begin: str, missing: Mapping[str, int]) -> List[str]:
    """Names the pools that lack places for shards. `missing`: pool → shards that
    each of its PGs has no place for."""
    if not missing:
        return []
    return wrap("short:", f"{begin}each PG of {named([*missing], _NAMED)} lacks a place for"
                f" {plural(max(missing.values()), 'shard')}")
