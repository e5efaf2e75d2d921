"""What failures would lead to: of one named, or of the worst ones."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

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
        self._down = sorted(osd.id for osd in answer.osds.values()
                            if not osd.up and osd.is_in and osd.reweight > 0.0)

    def failure(self, figures: FailureFigures) -> CommandAnswer:
        """One failure: utilization of each class, free space of each pool, before and after."""
        recovery, answer = figures.recovery, self._answer
        classes: List[Row] = []
        for name, before in figures.before.classes.items():
            after: Optional[ClassUsage] = figures.after.classes.get(name)
            classes.append({
                "device_class": name, "osds": before.osds,
                "left_osds": after.osds if after is not None else 0,
                "max_utilization": before.max, "fullest_osd": before.fullest_osd,
                "failed_max_utilization": after.max if after is not None else None,
                "failed_fullest_osd": after.fullest_osd if after is not None else None})
        pools = self._pool_rows(figures)
        # before the failure everything in flight has arrived, or all of the plan is done
        columns = [Column("CLASS", is_name=True), *map(Column, (
            "OSDS", "LEFT", "%SOON" if self._plan is None else "%PLAN", "FULLEST", "%AFTER",
            "FULLEST"))]
        parts = [self._head(_named(recovery), figures), render_table(columns, [[
            row["device_class"], str(row["osds"]), str(row["left_osds"]),
            format_percent(row["max_utilization"]), format_osd(row["fullest_osd"]),
            format_percent(row["failed_max_utilization"]),
            format_osd(row["failed_fullest_osd"])] for row in classes]).split("\n")]
        if pools:
            parts.append(render_table(_POOLS, [[
                row["name"], str(row["id"]), format_bytes(row["stored"]),
                format_bytes(row["free_bytes"]), format_bytes(row["failed_free_bytes"] or 0),
                format_osd(row["failed_limiting_osd"]), str(row["undersized_pgs"] or ""),
                str(row["lost_pgs"] or "")] for row in pools[:_MOST_POOLS]]).split("\n"))
            more = len(pools) - _MOST_POOLS
            parts[-1] += [f"... {plural(more, 'smaller pool')}; --format json has all"] * (more > 0)
        return CommandAnswer({
            **self._head_json(), "failure": {
                "name": recovery.failure.name, "type": recovery.failure.type_name,
                "osds": sorted(recovery.failure.osds)},
            **_figures_json(figures), "backfill_toofull_pgids": sorted(recovery.too_full),
            "classes": classes, "pools": pools, "osds": [
                {"osd": osd, "used_bytes": answer.osds[osd].device_bytes(used),
                 "utilization": (used / answer.osds[osd].size_bytes
                                 if answer.osds[osd].size_bytes else None)}
                for osd, used in sorted(recovery.used.items())]},
            "\n\n".join("\n".join(part) for part in parts if part))

    def worst(self, types: Mapping[str, TypeFailures]) -> CommandAnswer:
        """The worst failures of each type."""
        first = _worst_of(types)
        parts = [self._head("the worst failure" if first is None
                            else f"the worst failure, of {_named(first.recovery)}", first)]
        for name, found in types.items():
            rows: List[List[str]] = []
            for figures in found.worst:
                recovery = figures.recovery
                rows.append([
                    recovery.failure.name, str(len(recovery.failure.osds)),
                    format_percent(recovery.max_utilization), format_osd(recovery.fullest_osd),
                    str(len(recovery.too_full)), str(sum(recovery.undersized.values())),
                    str(sum(recovery.lost.values())), format_bytes(recovery.copied_bytes),
                    _room(figures.after)])
            more, left = found.computed - len(found.worst), found.failures - found.computed
            parts.append(render_table((Column(name.upper(), is_name=True), *_WORST),
                                      rows).split("\n")
                         + [f"... {plural(more, 'other')}, less bad"] * (more > 0)
                         + [f"... {plural(left, 'other')} with less data, not computed"]
                         * (left > 0))
        data = {**self._head_json(),
                "worst": None if first is None else first.recovery.failure.name,
                "types": [{"type": name, "failures": found.failures,
                           "computed_failures": found.computed,
                           "worst": [{"name": figures.recovery.failure.name,
                                      "osds": sorted(figures.recovery.failure.osds),
                                      **_figures_json(figures)} for figures in found.worst]}
                          for name, found in types.items()]}
        return CommandAnswer(data, "\n\n".join("\n".join(part) for part in parts))

    def _head(self, what: str, figures: Optional[FailureFigures]) -> List[str]:
        """What is shown, what is so already beside the failure and makes it worse than the figures
        say, and what the failure leads to."""
        answer, recovery = self._answer, None if figures is None else figures.recovery
        end = "as if all could recover" if recovery and recovery.too_full else "once recovered"
        if any(osd.inbound_bytes for osd in answer.osds.values()):
            end += ", with all that moves now arrived"
        plan = f" with {self._plan} carried out" if self._plan is not None else ""
        lines = wrap("", f"{what}{plan}, {end}; osdmap e{answer.epoch},"
                     f" {format_duration(self._age)} old", 0)
        name, failed = ((recovery.failure.name, recovery.failure.osds) if recovery is not None
                        else ("NAME", frozenset()))
        down = [f"osd.{osd}" for osd in self._down if osd not in failed]
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
        more = " more" if self._down else ""
        for label, text, pools in (
                ("inactive:", " without service until enough of the data has been copied"
                 " (min_size)", recovery.inactive),
                ("undersized:", f"{more} left without an OSD for some shards",
                 recovery.undersized),
                ("lost:", " left with too few shards to recover the data", recovery.lost)):
            if pools:
                names = ", ".join(self._pools[pool].name if pool in self._pools else str(pool)
                                  for pool in sorted(pools))
                lines += wrap(label, f"{plural(sum(pools.values()), 'PG')}{text}: {names}")
        return lines + wrap("room:", f"{_room(figures.before)} -> {_room(figures.after)} if all"
                            " pools grow alike")

    def _head_json(self) -> Dict[str, Any]:
        return {"plan": self._plan, "osdmap_epoch": self._answer.epoch, "age_seconds": self._age,
                "applied_changes": self._answer.applied_changes,
                "down_osds": self._down, "degraded_pgs": self._answer.degraded_pgs,
                "backfillfull_ratio": self._answer.backfillfull_ratio}

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


def _named(recovery: Recovery) -> str:
    failure = recovery.failure
    kind = f"{failure.type_name} " if failure.type_name not in ("", "osd") else ""
    return f"{kind}{failure.name} ({plural(len(failure.osds), 'OSD')})"


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
