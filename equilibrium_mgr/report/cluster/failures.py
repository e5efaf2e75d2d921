"""What failures would lead to: of one named, or of the worst ones."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...gateway.pool_space import PoolSpaceNow
from ...plan.model import ClassUsage, Usage
from ...plan_service.failure_service import FailureAnswer
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, plural, wrap)
from ...what_if.recovery import FailureFigures, Recovery
from ...what_if.worst import TypeFailures
from ..command_answer import CommandAnswer
from ..table import Column, Row, render_table
from .pools import format_osd, room_json

_POOLS = (Column("POOL", is_name=True), *map(Column, (
    "ID", "STORED", "FREE", "AFTER", "LIMITED BY", "UNDERSIZED", "LOST")))
_WORST = tuple(map(Column, (
    "OSDS", "%AFTER", "FULLEST", "TOOFULL", "UNDERSIZED", "LOST", "COPIED", "ROOM")))
#: Lines of the table of pools.
_MOST_POOLS = 20
#: OSDs that are down which a line names.
_MOST_DOWN = 4


class FailureReport:
    """Renders an answer. `pools`: by id, as they are now; `plan`: the name of the plan it is of."""

    def __init__(self, answer: FailureAnswer, plan: Optional[str], age_seconds: float,
                 pools: Mapping[int, PoolSpaceNow]) -> None:
        self._answer = answer
        self._plan = plan
        self._age = age_seconds
        self._pools = pools

    def failure(self, figures: FailureFigures) -> CommandAnswer:
        """One failure: utilization of each class, free space of each pool, before and after."""
        recovery = figures.recovery
        classes, pools = _class_rows(figures), self._pool_rows(figures)
        parts = [[*self._head(_named(recovery), recovery), *self._result_lines(recovery),
                  *_room_lines(figures)],
                 render_table(self._class_columns(), [[
                     row["device_class"], str(row["osds"]), str(row["left_osds"]),
                     format_percent(row["max_utilization"]), format_osd(row["fullest_osd"]),
                     format_percent(row["failed_max_utilization"]),
                     format_osd(row["failed_fullest_osd"])] for row in classes]).split("\n"),
                 self._pool_lines(pools)]
        return CommandAnswer({
            **self._head_json(), "failure": {
                "name": recovery.failure.name, "type": recovery.failure.type_name,
                "osds": sorted(recovery.failure.osds)},
            **_figures_json(figures), "backfill_toofull_pgids": sorted(recovery.too_full),
            "classes": classes, "pools": pools, "osds": [
                {"osd": osd, "used_bytes": self._answer.osds[osd].device_bytes(used),
                 "utilization": self._utilization(osd, used)}
                for osd, used in sorted(recovery.used.items())]},
            "\n\n".join("\n".join(part) for part in parts if part))

    def _class_columns(self) -> List[Column]:
        """Before the failure everything in flight has arrived, or all of the plan is done."""
        before = "%SOON" if self._plan is None else "%PLAN"
        return [Column("CLASS", is_name=True), *map(Column, (
            "OSDS", "LEFT", before, "FULLEST", "%AFTER", "FULLEST"))]

    def worst(self, types: Mapping[str, TypeFailures]) -> CommandAnswer:
        """The worst failures of each type."""
        first = worst_of(types)
        parts = [self._head("the worst failure" if first is None
                            else f"the worst failure, of {_named(first.recovery)}",
                            None if first is None else first.recovery)]
        if first is not None:
            parts[0] += self._result_lines(first.recovery) + _room_lines(first)
        for name, found in types.items():
            table = render_table((Column(name.upper(), is_name=True), *_WORST), [
                [figures.recovery.failure.name, *_worst_cells(figures)]
                for figures in found.worst])
            more = found.computed - len(found.worst)
            left = found.failures - found.computed
            parts.append(table.split("\n")
                         + ([f"... {plural(more, 'other')}, less bad"] if more else [])
                         + ([f"... {plural(left, 'other')} with less data, not computed"]
                            if left else []))
        data = {**self._head_json(),
                "worst": None if first is None else first.recovery.failure.name,
                "types": [{"type": name, "failures": found.failures,
                           "computed_failures": found.computed,
                           "worst": [{"name": figures.recovery.failure.name,
                                      "osds": sorted(figures.recovery.failure.osds),
                                      **_figures_json(figures)} for figures in found.worst]}
                          for name, found in types.items()]}
        return CommandAnswer(data, "\n\n".join("\n".join(part) for part in parts))

    def _head(self, what: str, recovery: Optional[Recovery]) -> List[str]:
        plan = f" with {self._plan} carried out" if self._plan is not None else ""
        end = "as if all could recover" if recovery and recovery.too_full else "once recovered"
        if any(osd.inbound_bytes for osd in self._answer.osds.values()):
            end += ", with all that moves now arrived"
        return wrap("", f"{what}{plan}, {end}; osdmap e{self._answer.epoch},"
                    f" {format_duration(self._age)} old", 0) + self._trouble_lines(recovery)

    def _trouble_lines(self, recovery: Optional[Recovery]) -> List[str]:
        """What is so already, beside the failure, and makes it worse than the figures say."""
        name, failed = ((recovery.failure.name, recovery.failure.osds) if recovery is not None
                        else ("NAME", frozenset()))
        lines: List[str] = []
        down = [f"osd.{osd}" for osd in self._down_osds() if osd not in failed]
        if down:
            named = ",".join(down[:_MOST_DOWN] + ["..."] * (len(down) > _MOST_DOWN))
            count, whose, them = ((f"{len(down)} OSDs are", "their", "them") if down[1:]
                                  else (f"{named} is", "its", "it"))
            lines += wrap("down:", f"{count} down and in: {whose} PGs count as they are now, short"
                          f" of a shard; '--fail {name},{named}' has {them} out as well", 13)
        if self._answer.degraded_pgs:
            pgs = plural(self._answer.degraded_pgs, "PG")
            lines += wrap("degraded:", f"{pgs} now: if it failed before they are whole, more"
                          " could be lost", 13)
        return lines

    def _down_osds(self) -> List[int]:
        return sorted(osd.id for osd in self._answer.osds.values()
                      if not osd.up and osd.is_in and osd.reweight > 0.0)

    def _head_json(self) -> Dict[str, Any]:
        return {"plan": self._plan, "osdmap_epoch": self._answer.epoch, "age_seconds": self._age,
                "applied_changes": self._answer.applied_changes,
                "down_osds": self._down_osds(), "degraded_pgs": self._answer.degraded_pgs,
                "backfillfull_ratio": self._answer.backfillfull_ratio}

    def _result_lines(self, recovery: Recovery) -> List[str]:
        needed = " would be needed: not all of it can recover" if recovery.too_full else ""
        lines = wrap("highest:", f"{format_percent(recovery.max_utilization)}%"
                     f" ({format_osd(recovery.fullest_osd)}){needed}", 13) + wrap(
            "copied:", f"{plural(recovery.copied_shards, 'shard')},"
            f" {format_bytes(recovery.copied_bytes)}", 13)
        if recovery.too_full:
            lines += wrap("toofull:", f"{plural(len(recovery.too_full), 'PG')} would wait for a"
                          " target that has no room below backfillfull"
                          f" ({format_percent(self._answer.backfillfull_ratio)}%)", 13)
        more = " more" if self._down_osds() else ""
        for label, text, pools in (
                ("inactive:", " without service until enough of the data has been copied"
                 " (min_size)", recovery.inactive),
                ("undersized:", f"{more} left without an OSD for some shards",
                 recovery.undersized),
                ("lost:", " left with too few shards to recover the data", recovery.lost)):
            if pools:
                names = ", ".join(self._pools[pool].name if pool in self._pools else str(pool)
                                  for pool in sorted(pools))
                lines += wrap(label, f"{plural(sum(pools.values()), 'PG')}{text}: {names}", 13)
        return lines

    def _pool_rows(self, figures: FailureFigures) -> List[Row]:
        rows: List[Row] = []
        for name, before in figures.before.pools.items():
            after = figures.after.pools.get(name)
            space = self._pools.get(before.pool_id)
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
        rows.sort(key=lambda row: (-row["lost_pgs"], -row["undersized_pgs"], -row["stored"],
                                   row["id"]))
        return rows

    def _pool_lines(self, rows: Sequence[Row]) -> List[str]:
        shown = rows[:_MOST_POOLS]
        if not shown:
            return []
        lines = render_table(_POOLS, [[
            row["name"], str(row["id"]), format_bytes(row["stored"]),
            format_bytes(row["free_bytes"]), format_bytes(row["failed_free_bytes"] or 0),
            format_osd(row["failed_limiting_osd"]), str(row["undersized_pgs"] or ""),
            str(row["lost_pgs"] or "")] for row in shown]).split("\n")
        more = len(rows) - len(shown)
        return lines + ([f"... {plural(more, 'smaller pool')}; --format json has all"]
                        if more else [])

    def _utilization(self, osd: int, used: int) -> Optional[float]:
        size = self._answer.osds[osd].size_bytes
        return used / size if size else None


def worst_of(types: Mapping[str, TypeFailures]) -> Optional[FailureFigures]:
    """The worst failure of all types; None where there are no OSDs."""
    first = [found.worst[0] for found in types.values() if found.worst]
    return max(first, key=lambda figures: figures.recovery.severity(), default=None)


def worst_line(now: Optional[FailureAnswer], planned: Optional[FailureAnswer],
               name: str) -> List[str]:
    """One line on the worst failure before and after a plan, as far as it is known."""
    texts = [_short(answer) for answer in (now, planned)]
    if texts == [None, None]:
        return []
    return wrap("worst failure ", f"{texts[0] or 'not computed'} now,"
                f" {texts[1] or 'not computed'} with {name}", 14)


def _short(answer: Optional[FailureAnswer]) -> Optional[str]:
    figures = worst_of(answer.worst) if answer is not None and answer.worst is not None else None
    if figures is None:
        return None
    recovery = figures.recovery
    worse = [f"{count} {what}" for count, what in (
        (sum(recovery.lost.values()), "lost"), (sum(recovery.inactive.values()), "inactive"),
        (len(recovery.too_full), "toofull")) if count]
    return (f"{recovery.failure.name} leads to {format_percent(recovery.max_utilization)}%"
            + (f" (PGs: {', '.join(worse)})" if worse else ""))


def _named(recovery: Recovery) -> str:
    failure = recovery.failure
    kind = f"{failure.type_name} " if failure.type_name not in ("", "osd") else ""
    return f"{kind}{failure.name} ({plural(len(failure.osds), 'OSD')})"


def _class_rows(figures: FailureFigures) -> List[Row]:
    rows: List[Row] = []
    for name, before in figures.before.classes.items():
        after: Optional[ClassUsage] = figures.after.classes.get(name)
        rows.append({
            "device_class": name, "osds": before.osds,
            "left_osds": after.osds if after is not None else 0,
            "max_utilization": before.max, "fullest_osd": before.fullest_osd,
            "failed_max_utilization": after.max if after is not None else None,
            "failed_fullest_osd": after.fullest_osd if after is not None else None})
    return rows


def _figures_json(figures: FailureFigures) -> Dict[str, Any]:
    recovery = figures.recovery
    return {"max_utilization": recovery.max_utilization, "fullest_osd": recovery.fullest_osd,
            "copied_shards": recovery.copied_shards, "copied_bytes": recovery.copied_bytes,
            "backfill_toofull_pgs": len(recovery.too_full),
            "inactive_pgs": sum(recovery.inactive.values()),
            "undersized_pgs": sum(recovery.undersized.values()),
            "lost_pgs": sum(recovery.lost.values()),
            "room": room_json(figures.before.room), "failed_room": room_json(figures.after.room)}


def _worst_cells(figures: FailureFigures) -> List[str]:
    recovery = figures.recovery
    return [str(len(recovery.failure.osds)), format_percent(recovery.max_utilization),
            format_osd(recovery.fullest_osd), str(len(recovery.too_full)),
            str(sum(recovery.undersized.values())), str(sum(recovery.lost.values())),
            format_bytes(recovery.copied_bytes), _room(figures.after)]


def _room(usage: Usage) -> str:
    return format_bytes(usage.room.bytes) if usage.room is not None else ""


def _room_lines(figures: FailureFigures) -> List[str]:
    return wrap("room:", f"{_room(figures.before)} -> {_room(figures.after)} if all pools grow"
                " alike", 13)
