"""`eval --fail` and `eval --worst-failure`: what follows from one failure, or the worst ones."""
from __future__ import annotations

import math
from typing import FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ...gateway.cluster_summary import PoolSpaceNow
from ...plan.model import ClassUsage, Usage
from ...plan_service.plan_service import FailureAnswer, SteeredRecovery
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, named, plural, wrap)
from ...snapshot.model import Osd
from ...what_if.failure import Recovery, TypeFailures
from ..answer import CommandAnswer, Row, render_table
from .cluster_tables import (
    Columns, cells_of, class_figures, format_osd, pool_figures, room_json, room_text)
from .evaluation import joined

#: Lines of the table of pools.
_MOST_POOLS = 20
#: A line names at most so many of the OSDs that are down.
_MOST_DOWN = 4


def _count(number: int) -> str:
    return str(number or "")


def _bytes_if_any(count: int) -> str:
    return format_bytes(count) if count else ""


def _number_of(osds: Sequence[int]) -> str:
    return str(len(osds))


_CLASS_COLUMNS: Columns = {
    "device_class": str,
    "osds": str,
    "left_osds": str,
    "max_utilization": format_percent,
    "fullest_osd": format_osd,
    "failed_max_utilization": format_percent,
    "failed_fullest_osd": format_osd}
_POOL_HEAD = "POOL<|ID|STORED|FREE|AFTER|LIMITED BY|UNDERSIZED|LOST"
_POOL_COLUMNS: Columns = {
    "name": str,
    "id": str,
    "stored": format_bytes,
    "free_bytes": format_bytes,
    "failed_free_bytes": format_bytes,
    "failed_limiting_osd": format_osd,
    "undersized_pgs": _count,
    "lost_pgs": _count}
WORST_HEAD = "OSDS|%AFTER|FULLEST|%PEAK|NO ROOM|COPIED|UNDERSIZED|LOST"
WORST_COLUMNS: Columns = {
    "name": str,
    "osds": _number_of,
    "max_utilization": format_percent,
    "fullest_osd": format_osd,
    "peak_utilization": format_percent,
    "no_room_bytes": _bytes_if_any,
    "copied_bytes": format_bytes,
    "undersized_pgs": str,
    "lost_pgs": str}
#: Name of the second row of a failure: of the same with steering.
_STEERED = "  steered"

#: The advised backfillfull_ratio is higher by this than the utilization that is needed (percentage
#: points).
_RATIO_MARGIN = 0.5

_Part = List[str]   # lines of a screen


def report_failure(answer: FailureAnswer, plan: Optional[str], age_seconds: float,
                   pools: Mapping[int, PoolSpaceNow]) -> CommandAnswer:
    """Shows the failure that was asked for, or the worst failures of each type.

    `plan`: the name of the plan that is done before the failure, if any. `pools`: by id, as they
    are now.
    """
    down = sorted([osd.id for osd in answer.osds.values() if _is_down(osd)])
    data = {
        "plan": plan,
        "osdmap_epoch": answer.epoch,
        "age_seconds": age_seconds,
        "down_osds": down,
        "backfillfull_ratio": answer.backfillfull_ratio}
    if answer.worst is None:
        found = answer.recovery
        assert found is not None
        more, tables = _one(found, answer, plan, pools)
    else:
        found = _worst_of_all(answer.worst)
        more, tables = _worst(answer, answer.worst, found)
    lines = _head(found, answer, plan, age_seconds, down)
    if found is not None:
        lines += _consequences(found, answer, down, pools)
    return CommandAnswer({**data, **more}, joined([lines, *tables]))


def _is_down(osd: Osd) -> bool:
    return osd.is_in and osd.reweight > 0.0 and not osd.up


def _worst_of_all(types: Mapping[str, TypeFailures]) -> Optional[Recovery]:
    firsts = [found.worst[0] for found in types.values() if found.worst]
    return max(firsts, key=Recovery.severity, default=None)


def _one(recovery: Recovery, answer: FailureAnswer, plan: Optional[str],
         space: Mapping[int, PoolSpaceNow]) -> Tuple[Row, List[_Part]]:
    """Returns the data and the tables of one failure: utilization of each class and free space of
    each pool, before and after."""
    failure = recovery.failure
    classes = [_class_row(name, before, recovery.after.classes.get(name))
               for name, before in answer.before.classes.items()]
    pools = [_pool_row(name, answer.before, recovery, space) for name in answer.before.pools]
    pools.sort(key=lambda row: (-row["lost_pgs"], -row["undersized_pgs"], -row["stored"],
                                row["id"]))
    osds = [_osd_row(answer.osds[osd], used) for osd, used in sorted(recovery.used.items())]
    data = {
        "failure": {
            "name": failure.name,
            "type": failure.type_name,
            "osds": sorted(failure.osds)},
        **_figures_json(answer, recovery),
        "classes": classes,
        "pools": pools,
        "osds": osds}
    # before the failure everything in flight has arrived, and all of the plan is done
    before = "%PLAN"
    if plan is None:
        before = "%SOON"
    head = f"CLASS<|OSDS|LEFT|{before}|FULLEST|%AFTER|FULLEST"
    tables = [[render_table(head, cells_of(classes, _CLASS_COLUMNS))]]
    if pools:
        cells = cells_of(pools[:_MOST_POOLS], _POOL_COLUMNS)
        tables.append([render_table(_POOL_HEAD, cells)])
    if len(pools) > _MOST_POOLS:
        more = plural(len(pools) - _MOST_POOLS, "more pool")
        tables[-1].append(f"... {more}; --format json has all")
    return data, tables


def _class_row(name: str, before: ClassUsage, after: Optional[ClassUsage]) -> Row:
    """Returns a device class before and after a failure; after is None if no OSD is left."""
    return {
        "device_class": name,
        "osds": before.osds,
        "left_osds": getattr(after, "osds", 0),
        **class_figures("", before),
        **class_figures("failed_", after)}


def _pool_row(name: str, usage: Usage, recovery: Recovery,
              space: Mapping[int, PoolSpaceNow]) -> Row:
    """Returns a pool before and after a failure. `usage`: before."""
    before = usage.pools[name]
    pool = before.pool_id
    stored = before.stored_bytes
    now = space.get(pool)
    if now is not None and now.stored is not None:
        stored = now.stored
    return {
        "id": pool,
        "name": name,
        "stored": stored,
        **pool_figures("", before),
        **pool_figures("failed_", recovery.after.pools[name]),
        "inactive_pgs": recovery.inactive.get(pool, 0),
        "undersized_pgs": recovery.undersized.get(pool, 0),
        "lost_pgs": recovery.lost.get(pool, 0)}


def _osd_row(osd: Osd, used: int) -> Row:
    """Returns an OSD after a failure. `used`: its used bytes then."""
    utilization = None
    if osd.size_bytes:
        utilization = used / osd.size_bytes
    return {"osd": osd.id, "used_bytes": osd.device_bytes(used), "utilization": utilization}


def _worst(answer: FailureAnswer, types: Mapping[str, TypeFailures],
           first: Optional[Recovery]) -> Tuple[Row, List[_Part]]:
    """Returns the data and the tables of the worst failures of each type. `first`: the worst of
    all."""
    tables: List[_Part] = []
    rows: List[Row] = []
    for name, found in types.items():
        more = found.computed - len(found.worst)
        left = found.failures - found.computed
        worst = [_worst_row(answer, one) for one in found.worst]
        cells = [cell for one in found.worst for cell in worst_cells(answer, one)]
        lines = [render_table(f"{name.upper()}<|{WORST_HEAD}", cells)]
        if more > 0:
            lines.append(f"... {plural(more, 'other')}, less bad")
        if left > 0:
            lines.append(f"... {plural(left, 'other')} with less data, not computed")
        tables.append(lines)
        rows.append({"type": name, "failures": found.failures, "worst": worst})
    worst_name = None
    if first is not None:
        worst_name = first.failure.name
    return {"worst": worst_name, "types": rows}, tables


def _worst_row(answer: FailureAnswer, recovery: Recovery) -> Row:
    """Returns one of the worst failures of a type, JSON-ready."""
    failure = recovery.failure
    return {
        "name": failure.name,
        "osds": sorted(failure.osds),
        **_figures_json(answer, recovery)}


def worst_cells(answer: FailureAnswer, recovery: Recovery) -> List[List[str]]:
    """Returns the lines of one of the worst failures in a table of WORST_COLUMNS: by CRUSH alone,
    and with steering if that is known."""
    row = _worst_row(answer, recovery)
    rows = [row]
    if row["steered"] is not None:
        rows.append({**dict.fromkeys(WORST_COLUMNS), **row["steered"], "name": _STEERED})
    return cells_of(rows, WORST_COLUMNS)


def _head(recovery: Optional[Recovery], answer: FailureAnswer, plan: Optional[str],
          age_seconds: float, down: Sequence[int]) -> List[str]:
    """Returns the first lines: the failure shown, and existing problems that make it worse than the
    figures. `down`: OSDs that are down and in already."""
    what: List[str] = []
    failed: FrozenSet[int] = frozenset()
    done = ""
    end = "once recovered"
    if answer.worst is not None:
        what.append("the worst failure")
    if recovery is not None:
        name, type_name, failed = recovery.failure
        if type_name not in ("", "osd"):
            name = f"{type_name} {name}"
        what.append(f"{name} ({plural(len(failed), 'OSD')})")
    if any([osd.inbound_bytes for osd in answer.osds.values()]):
        end += ", with all that moves now arrived"
    if plan is not None:
        done = f" with {plan} carried out"
    lines = wrap("", f"{', of '.join(what)}{done}, {end}; osdmap e{answer.epoch},"
                 f" {format_duration(age_seconds)} old", 0)
    others = [f"osd.{osd}" for osd in down if osd not in failed]
    if others:
        lines += wrap("down:", f"{named(others, _MOST_DOWN)}, and in: their PGs count as they are"
                      " now, short of a shard; name them as well to have them out")
    if answer.degraded_pgs:
        lines += wrap("degraded:", f"{plural(answer.degraded_pgs, 'PG')} now: until they are whole,"
                      " more could be lost by a failure")
    return lines


def _consequences(recovery: Recovery, answer: FailureAnswer, down: Sequence[int],
                  space: Mapping[int, PoolSpaceNow]) -> List[str]:
    """Returns the lines of the consequences of a failure. `down`: OSDs that are down and
    in already."""
    steered = answer.steered.get(recovery.failure)
    lines = wrap("by CRUSH:", _outcome(answer, recovery))
    if steered is not None:
        lines += wrap("steered:", _steered_outcome(answer, steered))
    advice = room_advice(answer, recovery)
    if advice:
        lines += wrap("to do:", advice)
    left = "left"
    if down:
        left = "more left"
    lines += _pgs_lines("inactive:", recovery.inactive, "without service until enough of the data"
                        " has been copied (min_size)", space)
    unplaced = format_bytes(recovery.unplaced_bytes)
    lines += _pgs_lines("undersized:", recovery.undersized, f"{left} without an OSD for some"
                        f" shards, {unplaced}, until what failed is replaced", space)
    lines += _pgs_lines("lost:", recovery.lost, "left with too few shards to recover the data",
                        space)
    before = room_text(room_json(answer.before.room))
    after = room_text(room_json(recovery.after.room))
    return lines + wrap("room:", f"{before} -> {after} by CRUSH, if all pools grow alike")


def _outcome(answer: FailureAnswer, recovery: Recovery) -> str:
    """Says how full OSDs get after a failure, what is copied, and what has no room."""
    highest, fullest = recovery.fullest
    peak, on_the_way = recovery.peak
    text = f"fullest at {format_percent(highest)}% (osd.{fullest})"
    if recovery.too_full:
        text += (f" if all found room; {plural(len(recovery.too_full), 'PG')},"
                 f" {format_bytes(recovery.no_room_bytes)} to copy, without room below"
                 f" backfillfull ({format_percent(answer.backfillfull_ratio)}%)")
    return (f"{text}; meanwhile at most {format_percent(peak)}% (osd.{on_the_way});"
            f" {plural(recovery.copied_shards, 'shard')} to copy,"
            f" {format_bytes(recovery.copied_bytes)}")


def _steered_outcome(answer: FailureAnswer, steered: SteeredRecovery) -> str:
    """Says the same as `_outcome` if shards are steered, and how many go elsewhere or stay."""
    text = ""
    if not answer.steers:
        text = "if automatic balancing, steer_recovery and hold_placement were on: "
    text += _outcome(answer, steered.recovery)
    if steered.elsewhere:
        text += f", {steered.elsewhere} to other OSDs than CRUSH's"
    if steered.held:
        held = plural(steered.held, "shard stays where its", "shards stay where their")
        text += f"; {held} data is"
    if not steered.is_finished:
        text += "; the search was cut short, so it may become better"
    return text


def room_advice(answer: FailureAnswer, recovery: Recovery) -> str:
    """Says what gives all shards room after a failure; empty if they have it."""
    steered = answer.steered.get(recovery.failure)
    best = recovery
    if steered is not None:
        best = steered.recovery
    if not recovery.too_full or answer.steers and not best.too_full:
        return ""
    if not best.too_full:
        return ("'ceph config set mgr mgr/equilibrium/steer_recovery true', the same of"
                " hold_placement, and 'ceph equilibrium on' if it is off: then all find room")
    needed, osd = best.fullest
    assert needed is not None and osd is not None
    missing = format_bytes(best.no_room_bytes)
    text = (f"add OSDs of class {answer.osds[osd].device_class} with more than {missing} of room,"
            " or delete more than that before it happens")
    ratio = math.ceil(100.0 * needed + _RATIO_MARGIN) / 100.0
    if ratio < answer.full_ratio:
        text += f"; in the outage 'ceph osd set-backfillfull-ratio {ratio:g}' lets all in"
    return text


def _pgs_lines(label: str, pgs: Mapping[int, int], text: str,
               space: Mapping[int, PoolSpaceNow]) -> List[str]:
    """Says how many PGs are affected, and names their pools. `pgs`: pool id → PGs. `text`: how they
    are affected."""
    if not pgs:
        return []
    names = [space[pool].name if pool in space else str(pool) for pool in sorted(pgs)]
    return wrap(label, f"{plural(sum(pgs.values()), 'PG')} {text}: {', '.join(names)}")


def _figures_json(answer: FailureAnswer, recovery: Recovery) -> Row:
    return {
        **_outcome_json(recovery),
        "steered": _steered_json(answer.steered.get(recovery.failure)),
        "to_do": room_advice(answer, recovery),
        "inactive_pgs": sum(recovery.inactive.values()),
        "undersized_pgs": sum(recovery.undersized.values()),
        "lost_pgs": sum(recovery.lost.values()),
        "room": room_json(answer.before.room)}


def _outcome_json(recovery: Recovery) -> Row:
    """Returns the figures that steering changes."""
    highest, fullest = recovery.fullest
    peak, _ = recovery.peak
    return {
        "max_utilization": highest,
        "fullest_osd": fullest,
        "peak_utilization": peak,
        "copied_shards": recovery.copied_shards,
        "copied_bytes": recovery.copied_bytes,
        "backfill_toofull_pgs": len(recovery.too_full),
        "no_room_bytes": recovery.no_room_bytes}


def _steered_json(steered: Optional[SteeredRecovery]) -> Optional[Row]:
    if steered is None:
        return None
    return {
        **_outcome_json(steered.recovery),
        "elsewhere_shards": steered.elsewhere,
        "held_shards": steered.held,
        "is_finished": steered.is_finished}
