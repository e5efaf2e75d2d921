"""`eval`: how good a placement is, and what a plan would make of it."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..planner.plan import ClassUsage, Plan, PoolSpace, Usage
from .answer import Answer
from .text import format_bytes, format_duration, format_ratio, histogram_bar, table


def evaluate_cluster(usage: Usage, epoch: int, age_seconds: float) -> Answer:
    """The placement as it will be once everything in flight has arrived."""
    head = "osdmap epoch %d, seen %s ago" % (epoch, format_duration(age_seconds))
    plain = "\n\n".join([head, class_table(usage.classes), pool_table(usage.pools)])
    return Answer({"osdmap_epoch": epoch, "snapshot_age_seconds": age_seconds,
                   "classes": classes_json(usage.classes),
                   "pools": pools_json(usage.pools)}, plain)


def evaluate_pool(name: str, usage: Usage, epoch: int, age_seconds: float) -> Answer:
    """One pool's free space and what limits it."""
    pools = {name: usage.pools[name]}
    return Answer({"osdmap_epoch": epoch, "snapshot_age_seconds": age_seconds,
                   "pools": pools_json(pools)}, pool_table(pools))


def evaluate_plan(name: str, plan: Plan) -> Answer:
    """A plan's effect: the same figures before and after, and what they cost."""
    head = "plan %s: %d moves, %s, %s of pool space gained (%s)" % (
        name, len(plan.moves), format_bytes(plan.bytes), format_bytes(plan.gained_bytes),
        plan.stop_reason)
    plain = "\n\n".join([head, _class_changes(plan.before, plan.after),
                         _pool_changes(plan.before, plan.after), skipped_text(plan.skipped)])
    data = {"plan": name, "osdmap_epoch": plan.epoch, "moves": len(plan.moves),
            "bytes": plan.bytes, "gained_bytes": plan.gained_bytes,
            "stop_reason": plan.stop_reason, "skipped": plan.skipped,
            "before": usage_json(plan.before), "after": usage_json(plan.after)}
    return Answer(data, plain.rstrip())


def usage_json(usage: Usage) -> Dict[str, Any]:
    return {"classes": classes_json(usage.classes), "pools": pools_json(usage.pools)}


def classes_json(classes: Dict[str, ClassUsage]) -> Dict[str, Any]:
    return {name: dict(c._asdict(), histogram=list(c.histogram)) for name, c in classes.items()}


def pools_json(pools: Dict[str, PoolSpace]) -> Dict[str, Any]:
    return {name: p._asdict() for name, p in pools.items()}


def class_table(classes: Dict[str, ClassUsage]) -> str:
    rows = [[name, str(c.osds), format_bytes(c.size_bytes), format_bytes(c.used_bytes),
             format_ratio(c.max), format_ratio(c.min), format_ratio(c.mean),
             format_ratio(c.stddev), "osd.%d" % c.fullest_osd, "|%s|" % histogram_bar(c.histogram)]
            for name, c in classes.items()]
    return table(["CLASS", "OSDS", "SIZE", "USED", "MAX", "MIN", "MEAN", "STDDEV", "FULLEST",
                  "0%..100%"], rows)


def pool_table(pools: Dict[str, PoolSpace]) -> str:
    rows = [[name, str(p.pool_id), format_bytes(p.stored_bytes), format_bytes(p.free_bytes),
             _osd(p.limiting_osd), _bytes_or_blank(p.max_avail_bytes)]
            for name, p in pools.items()]
    return table(["POOL", "ID", "STORED", "FREE", "LIMITED BY", "MAX AVAIL"], rows)


def skipped_text(skipped: Dict[str, int]) -> str:
    """What stayed out of the plan, one reason a line."""
    if not skipped:
        return ""
    return "\n".join(["not moved:"] + ["  %6d  %s" % (count, reason)
                                       for reason, count in sorted(skipped.items())])


def _class_changes(before: Usage, after: Usage) -> str:
    rows: List[List[str]] = []
    for name, new in after.classes.items():
        old = before.classes[name]
        rows.append([name, str(new.osds)] + [
            "%s -> %s" % (format_ratio(a), format_ratio(b)) for a, b in (
                (old.max, new.max), (old.min, new.min), (old.mean, new.mean),
                (old.stddev, new.stddev))])
    return table(["CLASS", "OSDS", "MAX", "MIN", "MEAN", "STDDEV"], rows)


def _pool_changes(before: Usage, after: Usage) -> str:
    rows = [[name, str(new.pool_id), format_bytes(before.pools[name].free_bytes),
             format_bytes(new.free_bytes),
             format_bytes(new.free_bytes - before.pools[name].free_bytes),
             _osd(new.limiting_osd)] for name, new in after.pools.items()]
    return table(["POOL", "ID", "FREE BEFORE", "FREE AFTER", "GAINED", "LIMITED BY"], rows)


def _osd(osd: Optional[int]) -> str:
    return "" if osd is None else "osd.%d" % osd


def _bytes_or_blank(count: Optional[int]) -> str:
    return "" if count is None else format_bytes(count)
