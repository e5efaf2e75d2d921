"""`eval`: figures of a placement, and of what a plan makes of it."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from ...plan.aim_comparison import AimComparison
from ...plan.model import ClassUsage, Plan, PoolSpace, Usage
from ...runtime.formatting import format_bytes, format_duration, format_ratio, histogram_bar, table
from ...snapshot.model import Snapshot
from .aims import aims_json, aims_table
from ..command_answer import CommandAnswer
from .held_osds import held_json, held_sentences

_LOOK_STARTED = "; a new look has been started"


def evaluate_cluster(usage: Usage, bounds: Mapping[str, float], epoch: int, age_seconds: float,
                     now: Optional[Mapping[str, ClassUsage]] = None,
                     snapshot: Optional[Snapshot] = None,
                     look_started: bool = False) -> CommandAnswer:
    """The placement as it will be once everything in flight has arrived.

    `bounds`: device class → lowest maximum of the utilization that the rules allow, where known.
    `now`: the classes as OSDs report them. `snapshot` has the OSDs that are held to a share.
    `look_started`: newer figures are on their way.
    """
    head = (f"osdmap epoch {epoch}, seen {format_duration(age_seconds)} ago"
            f"{_LOOK_STARTED if look_started else ''}")
    held = "\n".join(held_sentences(snapshot)) if snapshot is not None else ""
    plain = "\n\n".join([head, class_table(usage.classes, bounds, now)]
                        + ([held] if held else []) + [pool_table(usage.pools)])
    return CommandAnswer({"osdmap_epoch": epoch, "snapshot_age_seconds": age_seconds,
                   "look_started": look_started,
                   "classes": classes_json(usage.classes, bounds, now),
                   "held_osds": held_json(snapshot) if snapshot is not None else [],
                   "pools": pools_json(usage.pools)}, plain)


def evaluate_pool(name: str, usage: Usage, epoch: int, age_seconds: float) -> CommandAnswer:
    """The free space of one pool, and the OSD that limits it."""
    pools = {name: usage.pools[name]}
    return CommandAnswer({"osdmap_epoch": epoch, "snapshot_age_seconds": age_seconds,
                   "pools": pools_json(pools)}, pool_table(pools))


def evaluate_plan(name: str, plan: Plan, comparison: Optional[AimComparison] = None,
                  epoch: Optional[int] = None) -> CommandAnswer:
    """A plan's figures before and after, its bytes and moves, and those of the other aims.

    `epoch`: of the newest osdmap.
    """
    head = (f"plan {name}, aim {plan.aim}: {len(plan.moves)} moves, {format_bytes(plan.bytes)},"
            f" {format_bytes(plan.gained_bytes)} of pool space gained ({plan.stop_reason})")
    if epoch is not None and epoch > plan.epoch:
        head += (f"\nmade at osdmap epoch {plan.epoch}, now it is {epoch}: what stands before the"
                 " arrows, and as FREE BEFORE, is of then")
    plain = "\n\n".join([head, _class_changes(plan), _pool_changes(plan.before, plan.after),
                         aims_table(plan, comparison), skipped_text(plan.skipped)])
    data = {"plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch, "moves": len(plan.moves),
            "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
            "stop_reason": plan.stop_reason, "skipped": plan.skipped,
            "before": usage_json(plan.before, plan.bounds),
            "after": usage_json(plan.after, plan.bounds), "aims": aims_json(plan, comparison),
            "options_known": comparison is not None and comparison.options_known}
    return CommandAnswer(data, plain.rstrip())


def usage_json(usage: Usage, bounds: Mapping[str, float]) -> Dict[str, Any]:
    """Figures of classes and pools, JSON-ready."""
    return {"classes": classes_json(usage.classes, bounds), "pools": pools_json(usage.pools)}


def classes_json(classes: Dict[str, ClassUsage], bounds: Mapping[str, float],
                 now: Optional[Mapping[str, ClassUsage]] = None) -> Dict[str, Any]:
    """Device class → figures, JSON-ready; with `now` also those of the present."""
    found: Dict[str, Any] = {}
    for name, c in classes.items():
        found[name] = dict(c._asdict(), histogram=list(c.histogram), bound=bounds.get(name))
        if now is not None:
            present = now.get(name)
            found[name].update(max_now=present.max if present else None,
                               fullest_osd_now=present.fullest_osd if present else None,
                               used_bytes_now=present.used_bytes if present else None)
    return found


def pools_json(pools: Dict[str, PoolSpace]) -> Dict[str, Any]:
    """Pool name → figures, JSON-ready."""
    return {name: p._asdict() for name, p in pools.items()}


def class_table(classes: Dict[str, ClassUsage], bounds: Mapping[str, float],
                now: Optional[Mapping[str, ClassUsage]] = None) -> str:
    """One line for each device class.

    USED and MAX NOW, the fullest OSD, are as OSDs report them; the other columns are for the time
    when everything in flight has arrived.
    """
    head = ["CLASS", "OSDS", "SIZE", "USED", "MAX NOW", "MAX", "BOUND", "MIN", "MEAN", "STDDEV",
            "FULLEST", "0%..100%"]
    rows = [[name, str(c.osds), format_bytes(c.size_bytes),
             format_bytes(now[name].used_bytes if now and name in now else c.used_bytes),
             _ratio_or_blank(now[name].max if now and name in now else None),
             format_ratio(c.max), _ratio_or_blank(bounds.get(name)), format_ratio(c.min),
             format_ratio(c.mean), format_ratio(c.stddev), f"osd.{c.fullest_osd}",
             f"|{histogram_bar(c.histogram)}|"]
            for name, c in classes.items()]
    if now is None:
        head, rows = head[:4] + head[5:], [row[:4] + row[5:] for row in rows]
    return table(head, rows)


def pool_table(pools: Dict[str, PoolSpace]) -> str:
    """One line for each pool."""
    rows = [[name, str(p.pool_id), format_bytes(p.stored_bytes), format_bytes(p.free_bytes),
             _osd(p.limiting_osd), _bytes_or_blank(p.max_avail_bytes)]
            for name, p in pools.items()]
    return table(["POOL", "ID", "STORED", "FREE", "LIMITED BY", "MAX AVAIL"], rows)


def skipped_text(skipped: Dict[str, int]) -> str:
    """How many PGs could not be moved, one reason a line."""
    if not skipped:
        return ""
    return "\n".join(["not moved:"] + [f"  {count:6}  {reason}"
                                       for reason, count in sorted(skipped.items())])


def _class_changes(plan: Plan) -> str:
    rows: List[List[str]] = []
    for name, new in plan.after.classes.items():
        old = plan.before.classes[name]
        highest, *others = [f"{format_ratio(a)} -> {format_ratio(b)}" for a, b in (
            (old.max, new.max), (old.min, new.min), (old.mean, new.mean),
            (old.stddev, new.stddev))]
        rows.append([name, str(new.osds), highest, _ratio_or_blank(plan.bounds.get(name)),
                     *others])
    return table(["CLASS", "OSDS", "MAX", "BOUND", "MIN", "MEAN", "STDDEV"], rows)


def _pool_changes(before: Usage, after: Usage) -> str:
    rows = [[name, str(new.pool_id), format_bytes(before.pools[name].free_bytes),
             format_bytes(new.free_bytes),
             format_bytes(new.free_bytes - before.pools[name].free_bytes),
             _osd(new.limiting_osd)] for name, new in after.pools.items()]
    return table(["POOL", "ID", "FREE BEFORE", "FREE AFTER", "GAINED", "LIMITED BY"], rows)


def _osd(osd: Optional[int]) -> str:
    return "" if osd is None else f"osd.{osd}"


def _ratio_or_blank(ratio: Optional[float]) -> str:
    return "" if ratio is None else format_ratio(ratio)


def _bytes_or_blank(count: Optional[int]) -> str:
    return "" if count is None else format_bytes(count)
