"""What failures would lead to: of one named, or of the worst ones."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...gateway.snapshot_reader import PoolSpaceNow
from ...plan.model import ClassUsage, Usage
from ...plan_service.failure_service import FailureAnswer
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, plural, wrap)
from ...what_if.recovery import FailureFigures, TypeFailures
from ..answer import Column, CommandAnswer, Row, render_table
from .cluster_tables import format_osd, room_json

_POOLS = (Column("POOL", is_name=True), *map(Column, (
    "ID", "STORED", "FREE", "AFTER", "LIMITED BY", "UNDERSIZED", "LOST")))
_WORST = tuple(map(Column, (
    "OSDS", "%AFTER", "FULLEST", "TOOFULL", "UNDERSIZED", "LOST", "COPIED", "ROOM")))
#: Lines of the table of pools.
_MOST_POOLS = 20
#: OSDs that are down which a line names.
_MOST_DOWN = 4


def report_failure(answer: FailureAnswer, plan: Optional[str], age_seconds: float,
                   pools: Mapping[int, PoolSpaceNow]) -> CommandAnswer:
    """What the failure that was asked for leads to, or the worst ones of each type. `pools`: by id,
    as they are now; `plan`: the name of the plan it is of."""
    down = sorted(osd.id for osd in answer.osds.values()
                  if not osd.up and osd.is_in and osd.reweight > 0.0)
    figures = answer.figures if answer.worst is None else _worst_of(answer.worst)
    what = "the worst failure" * (answer.worst is not None)
    if figures is not None:
        failure = figures.recovery.failure
        kind = f"{failure.type_name} " if failure.type_name not in ("", "osd") else ""
        what += (", of " * bool(what)
                 + f"{kind}{failure.name} ({plural(len(failure.osds), 'OSD')})")
    lines = _head(what, figures, answer, plan, age_seconds, down, pools)
    data = {"plan": plan, "osdmap_epoch": answer.epoch, "age_seconds": age_seconds,
            "applied_changes": answer.applied_changes, "down_osds": down,
            "degraded_pgs": answer.degraded_pgs, "backfillfull_ratio": answer.backfillfull_ratio}
    if answer.worst is not None:
        more, tables = _worst(answer.worst, figures)
    else:
        assert figures is not None
        more, tables = _one(figures, answer, plan, pools)
    return CommandAnswer({**data, **more},
                         "\n\n".join("\n".join(part) for part in [lines, *tables]))


def _one(figures: FailureFigures, answer: FailureAnswer, plan: Optional[str],
         space: Mapping[int, PoolSpaceNow]) -> Tuple[Row, List[List[str]]]:
    """One failure: utilization of each class, free space of each pool, before and after."""
    recovery = figures.recovery
    classes: List[Row] = []
    for name, before in figures.before.classes.items():
        after: Optional[ClassUsage] = figures.after.classes.get(name)
        classes.append({
            "device_class": name, "osds": before.osds,
            "left_osds": after.osds if after is not None else 0,
            "max_utilization": before.max, "fullest_osd": before.fullest_osd,
            "failed_max_utilization": after.max if after is not None else None,
            "failed_fullest_osd": after.fullest_osd if after is not None else None})
    pools = _pool_rows(figures, space)
    # before the failure everything in flight has arrived, or all of the plan is done
    columns = [Column("CLASS", is_name=True), *map(Column, (
        "OSDS", "LEFT", "%SOON" if plan is None else "%PLAN", "FULLEST", "%AFTER", "FULLEST"))]
    tables = [render_table(columns, [[
        row["device_class"], str(row["osds"]), str(row["left_osds"]),
        format_percent(row["max_utilization"]), format_osd(row["fullest_osd"]),
        format_percent(row["failed_max_utilization"]),
        format_osd(row["failed_fullest_osd"])] for row in classes]).split("\n")]
    if pools:
        more = len(pools) - _MOST_POOLS
        tables.append(render_table(_POOLS, [[
            row["name"], str(row["id"]), format_bytes(row["stored"]),
            format_bytes(row["free_bytes"]), format_bytes(row["failed_free_bytes"] or 0),
            format_osd(row["failed_limiting_osd"]), str(row["undersized_pgs"] or ""),
            str(row["lost_pgs"] or "")] for row in pools[:_MOST_POOLS]]).split("\n")
            + [f"... {plural(more, 'smaller pool')}; --format json has all"] * (more > 0))
    return {"failure": {"name": recovery.failure.name, "type": recovery.failure.type_name,
                        "osds": sorted(recovery.failure.osds)},
            **_figures_json(figures), "backfill_toofull_pgids": sorted(recovery.too_full),
            "classes": classes, "pools": pools, "osds": [
                {"osd": osd, "used_bytes": answer.osds[osd].device_bytes(used),
                 "utilization": (used / answer.osds[osd].size_bytes
                                 if answer.osds[osd].size_bytes else None)}
                for osd, used in sorted(recovery.used.items())]}, tables


def _worst(types: Mapping[str, TypeFailures],
           first: Optional[FailureFigures]) -> Tuple[Row, List[List[str]]]:
    """The worst failures of each type; `first`: of all."""
    tables: List[List[str]] = []
    for name, found in types.items():
        more, left = found.computed - len(found.worst), found.failures - found.computed
        tables.append(render_table((Column(name.upper(), is_name=True), *_WORST), [
            [recovery.failure.name, str(len(recovery.failure.osds)),
             format_percent(recovery.max_utilization), format_osd(recovery.fullest_osd),
             str(len(recovery.too_full)), str(sum(recovery.undersized.values())),
             str(sum(recovery.lost.values())), format_bytes(recovery.copied_bytes), _room(after)]
            for recovery, after in ((one.recovery, one.after) for one in found.worst)]).split("\n")
            + [f"... {plural(more, 'other')}, less bad"] * (more > 0)
            + [f"... {plural(left, 'other')} with less data, not computed"] * (left > 0))
    return {"worst": None if first is None else first.recovery.failure.name,
            "types": [{"type": name, "failures": found.failures,
                       "computed_failures": found.computed,
                       "worst": [{"name": figures.recovery.failure.name,
                                  "osds": sorted(figures.recovery.failure.osds),
                                  **_figures_json(figures)} for figures in found.worst]}
                      for name, found in types.items()]}, tables


def _head(what: str, figures: Optional[FailureFigures], answer: FailureAnswer,
          of_plan: Optional[str], age_seconds: float, all_down: Sequence[int],
          space: Mapping[int, PoolSpaceNow]) -> List[str]:
    """What is shown, what is so already beside the failure and makes it worse than the figures
    say, and what the failure leads to."""
    recovery = None if figures is None else figures.recovery
    end = "as if all could recover" if recovery and recovery.too_full else "once recovered"
    if any(osd.inbound_bytes for osd in answer.osds.values()):
        end += ", with all that moves now arrived"
    plan = f" with {of_plan} carried out" if of_plan is not None else ""
    lines = wrap("", f"{what}{plan}, {end}; osdmap e{answer.epoch},"
                 f" {format_duration(age_seconds)} old", 0)
    name, failed = ((recovery.failure.name, recovery.failure.osds) if recovery is not None
                    else ("NAME", frozenset()))
    down = [f"osd.{osd}" for osd in all_down if osd not in failed]
    if down:
        named = ",".join(down[:_MOST_DOWN] + ["..."] * (len(down) > _MOST_DOWN))
        count, whose, them = ((f"{len(down)} OSDs are", "their", "them") if down[1:]
                              else (f"{named} is", "its", "it"))
        lines += wrap("down:", f"{count} down and in: {whose} PGs count as they are now, short"
                      f" of a shard; '--fail {name},{named}' has {them} out as well")
    if answer.degraded_pgs:
        lines += wrap("degraded:", f"{plural(answer.degraded_pgs, 'PG')} now: if it failed"
                      " before they are whole, more could be lost")
    if figures is None or recovery is None:
        return lines
    needed = " would be needed: not all of it can recover" if recovery.too_full else ""
    lines += wrap("highest:", f"{format_percent(recovery.max_utilization)}%"
                  f" ({format_osd(recovery.fullest_osd)}){needed}")
    lines += wrap("copied:", f"{plural(recovery.copied_shards, 'shard')},"
                  f" {format_bytes(recovery.copied_bytes)}")
    if recovery.too_full:
        lines += wrap("toofull:", f"{plural(len(recovery.too_full), 'PG')} would wait for a"
                      " target that has no room below backfillfull"
                      f" ({format_percent(answer.backfillfull_ratio)}%)")
    more = " more" if all_down else ""
    for label, text, pools in (
            ("inactive:", " without service until enough of the data has been copied"
             " (min_size)", recovery.inactive),
            ("undersized:", f"{more} left without an OSD for some shards",
             recovery.undersized),
            ("lost:", " left with too few shards to recover the data", recovery.lost)):
        if pools:
            names = ", ".join(space[pool].name if pool in space else str(pool)
                              for pool in sorted(pools))
            lines += wrap(label, f"{plural(sum(pools.values()), 'PG')}{text}: {names}")
    return lines + wrap("room:", f"{_room(figures.before)} -> {_room(figures.after)} if all"
                        " pools grow alike")


def _pool_rows(figures: FailureFigures, pools: Mapping[int, PoolSpaceNow]) -> List[Row]:
    rows: List[Row] = []
    for name, before in figures.before.pools.items():
        after = figures.after.pools.get(name)
        space = pools.get(before.pool_id)
        rows.append({
            "id": before.pool_id, "name": name,
            "stored": before.stored_bytes if space is None or space.stored is None
            else space.stored,
            "free_bytes": before.free_bytes, "limiting_osd": before.limiting_osd,
            "failed_free_bytes": after.free_bytes if after is not None else None,
            "failed_limiting_osd": after.limiting_osd if after is not None else None,
            "inactive_pgs": figures.recovery.inactive.get(before.pool_id, 0),
            "undersized_pgs": figures.recovery.undersized.get(before.pool_id, 0),
            "lost_pgs": figures.recovery.lost.get(before.pool_id, 0)})
    return sorted(rows, key=lambda row: (-row["lost_pgs"], -row["undersized_pgs"],
                                         -row["stored"], row["id"]))


def _worst_of(types: Mapping[str, TypeFailures]) -> Optional[FailureFigures]:
    """The worst failure of all types; None where there are no OSDs."""
    first = [found.worst[0] for found in types.values() if found.worst]
    return max(first, key=lambda figures: figures.recovery.severity(), default=None)


def worst_line(now: Optional[FailureAnswer], planned: Optional[FailureAnswer],
               name: str) -> List[str]:
    """One line on the worst failure before and after a plan, as far as it is known."""
    texts: List[Optional[str]] = []
    for answer in (now, planned):
        figures = (_worst_of(answer.worst) if answer is not None and answer.worst is not None
                   else None)
        if figures is None:
            texts.append(None)
            continue
        recovery = figures.recovery
        worse = [f"{count} {what}" for count, what in (
            (sum(recovery.lost.values()), "lost"), (sum(recovery.inactive.values()), "inactive"),
            (len(recovery.too_full), "toofull")) if count]
        texts.append(
            f"{recovery.failure.name} leads to {format_percent(recovery.max_utilization)}%"
            + (f" (PGs: {', '.join(worse)})" if worse else ""))
    return [] if texts == [None, None] else wrap(
        "worst failure ", f"{texts[0] or 'not computed'} now,"
        f" {texts[1] or 'not computed'} with {name}", 14)


def _figures_json(figures: FailureFigures) -> Dict[str, Any]:
    recovery = figures.recovery
    return {"max_utilization": recovery.max_utilization, "fullest_osd": recovery.fullest_osd,
            "copied_shards": recovery.copied_shards, "copied_bytes": recovery.copied_bytes,
            "backfill_toofull_pgs": len(recovery.too_full),
            "inactive_pgs": sum(recovery.inactive.values()),
            "undersized_pgs": sum(recovery.undersized.values()),
            "lost_pgs": sum(recovery.lost.values()),
            "room": room_json(figures.before.room), "failed_room": room_json(figures.after.room)}


def _room(usage: Usage) -> str:
    return format_bytes(usage.room.bytes) if usage.room is not None else ""
