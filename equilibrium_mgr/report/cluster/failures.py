"""What failures would lead to: of one named, or of the worst ones."""
from __future__ import annotations

from typing import FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ...gateway.cluster_summary import PoolSpaceNow
from ...plan.model import ClassUsage, Usage
from ...plan_service.plan_service import FailureAnswer
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, named, plural, wrap)
from ...what_if.failure import Recovery, TypeFailures
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import format_osd, room_json

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
    found = answer.recovery if answer.worst is None else max(
        (of_type.worst[0] for of_type in answer.worst.values() if of_type.worst),
        key=Recovery.severity, default=None)   # the worst of all types
    lines = _head(found, answer, plan, age_seconds, down, pools)
    data = {"plan": plan, "osdmap_epoch": answer.epoch, "age_seconds": age_seconds,
            "down_osds": down,
            "degraded_pgs": answer.degraded_pgs, "backfillfull_ratio": answer.backfillfull_ratio}
    if answer.worst is not None:
        more, tables = _worst(answer, answer.worst, found)
    else:
        assert found is not None
        more, tables = _one(found, answer, plan, pools)
    return CommandAnswer({**data, **more},
                         "\n\n".join("\n".join(part) for part in [lines, *tables]))


def _one(recovery: Recovery, answer: FailureAnswer, plan: Optional[str],
         space: Mapping[int, PoolSpaceNow]) -> Tuple[Row, List[List[str]]]:
    """One failure: utilization of each class, free space of each pool, before and after."""
    classes: List[Row] = []
    for name, before in answer.before.classes.items():
        after: Optional[ClassUsage] = recovery.after.classes.get(name)
        classes.append({
            "device_class": name, "osds": before.osds,
            "left_osds": after.osds if after is not None else 0,
            "max_utilization": before.max, "fullest_osd": before.fullest_osd,
            "failed_max_utilization": after.max if after is not None else None,
            "failed_fullest_osd": after.fullest_osd if after is not None else None})
    pools: List[Row] = []
    for name, free in answer.before.pools.items():
        left, now = recovery.after.pools[name], space.get(free.pool_id)
        pools.append({
            "id": free.pool_id, "name": name,
            "stored": free.stored_bytes if now is None or now.stored is None else now.stored,
            "free_bytes": free.free_bytes, "limiting_osd": free.limiting_osd,
            "failed_free_bytes": left.free_bytes, "failed_limiting_osd": left.limiting_osd,
            "inactive_pgs": recovery.inactive.get(free.pool_id, 0),
            "undersized_pgs": recovery.undersized.get(free.pool_id, 0),
            "lost_pgs": recovery.lost.get(free.pool_id, 0)})
    pools.sort(key=lambda row: (-row["lost_pgs"], -row["undersized_pgs"], -row["stored"],
                                row["id"]))
    # before the failure everything in flight has arrived, or all of the plan is done
    soon = "%SOON" if plan is None else "%PLAN"
    tables = [render_table(f"CLASS<|OSDS|LEFT|{soon}|FULLEST|%AFTER|FULLEST", [[
        row["device_class"], str(row["osds"]), str(row["left_osds"]),
        format_percent(row["max_utilization"]), format_osd(row["fullest_osd"]),
        format_percent(row["failed_max_utilization"]),
        format_osd(row["failed_fullest_osd"])] for row in classes]).split("\n")]
    if pools:
        more = len(pools) - _MOST_POOLS
        tables.append(render_table("POOL<|ID|STORED|FREE|AFTER|LIMITED BY|UNDERSIZED|LOST", [[
            row["name"], str(row["id"]), format_bytes(row["stored"]),
            format_bytes(row["free_bytes"]), format_bytes(row["failed_free_bytes"]),
            format_osd(row["failed_limiting_osd"]), str(row["undersized_pgs"] or ""),
            str(row["lost_pgs"] or "")] for row in pools[:_MOST_POOLS]]).split("\n")
            + [f"... {plural(more, 'smaller pool')}; --format json has all"] * (more > 0))
    return {"failure": {"name": recovery.failure.name, "type": recovery.failure.type_name,
                        "osds": sorted(recovery.failure.osds)},
            **_figures_json(answer, recovery),
            "classes": classes, "pools": pools, "osds": [
                {"osd": osd, "used_bytes": answer.osds[osd].device_bytes(used),
                 "utilization": (used / answer.osds[osd].size_bytes
                                 if answer.osds[osd].size_bytes else None)}
                for osd, used in sorted(recovery.used.items())]}, tables


def _worst(answer: FailureAnswer, types: Mapping[str, TypeFailures],
           first: Optional[Recovery]) -> Tuple[Row, List[List[str]]]:
    """The worst failures of each type; `first`: of all."""
    tables: List[List[str]] = []
    for name, found in types.items():
        more, left = found.computed - len(found.worst), found.failures - found.computed
        head = f"{name.upper()}<|OSDS|%AFTER|FULLEST|TOOFULL|UNDERSIZED|LOST|COPIED|ROOM"
        tables.append(render_table(head, [
            [one.failure.name, str(len(one.failure.osds)), format_percent(one.fullest[0]),
             format_osd(one.fullest[1]), str(len(one.too_full)), str(sum(one.undersized.values())),
             str(sum(one.lost.values())), format_bytes(one.copied_bytes), _room(one.after)]
            for one in found.worst]).split("\n")
            + [f"... {plural(more, 'other')}, less bad"] * (more > 0)
            + [f"... {plural(left, 'other')} with less data, not computed"] * (left > 0))
    return {"worst": None if first is None else first.failure.name,
            "types": [{"type": name, "failures": found.failures,
                       "worst": [{"name": one.failure.name, "osds": sorted(one.failure.osds),
                                  **_figures_json(answer, one)} for one in found.worst]}
                      for name, found in types.items()]}, tables


def _head(recovery: Optional[Recovery], answer: FailureAnswer, of_plan: Optional[str],
          age_seconds: float, all_down: Sequence[int],
          space: Mapping[int, PoolSpaceNow]) -> List[str]:
    """What is shown, what is so already beside the failure and makes it worse than the figures
    say, and what the failure leads to."""
    what = ["the worst failure"] * (answer.worst is not None)
    failed: FrozenSet[int] = frozenset()
    if recovery is not None:
        name, type_name, failed = recovery.failure
        kind = f"{type_name} " if type_name not in ("", "osd") else ""
        what.append(f"{kind}{name} ({plural(len(failed), 'OSD')})")
    end = "as if all could recover" if recovery and recovery.too_full else "once recovered"
    if any(osd.inbound_bytes for osd in answer.osds.values()):
        end += ", with all that moves now arrived"
    plan = f" with {of_plan} carried out" if of_plan is not None else ""
    lines = wrap("", f"{', of '.join(what)}{plan}, {end}; osdmap e{answer.epoch},"
                 f" {format_duration(age_seconds)} old", 0)
    down = [f"osd.{osd}" for osd in all_down if osd not in failed]
    if down:
        lines += wrap("down:", f"{named(down, _MOST_DOWN)}, and in: their PGs count as they are"
                      " now, short of a shard; name them as well to have them out")
    if answer.degraded_pgs:
        lines += wrap("degraded:", f"{plural(answer.degraded_pgs, 'PG')} now: if it failed"
                      " before they are whole, more could be lost")
    if recovery is None:
        return lines
    needed = " would be needed: not all of it can recover" if recovery.too_full else ""
    highest, fullest = recovery.fullest
    lines += wrap("highest:", f"{format_percent(highest)}% ({format_osd(fullest)}){needed}")
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
    return lines + wrap("room:", f"{_room(answer.before)} -> {_room(recovery.after)} if all"
                        " pools grow alike")


def _figures_json(answer: FailureAnswer, recovery: Recovery) -> Row:
    return {"max_utilization": recovery.fullest[0], "fullest_osd": recovery.fullest[1],
            "copied_bytes": recovery.copied_bytes,
            "backfill_toofull_pgs": len(recovery.too_full),
            "inactive_pgs": sum(recovery.inactive.values()),
            "undersized_pgs": sum(recovery.undersized.values()),
            "lost_pgs": sum(recovery.lost.values()),
            "room": room_json(answer.before.room)}


def _room(usage: Usage) -> str:
    return format_bytes(usage.room.bytes) if usage.room is not None else ""
