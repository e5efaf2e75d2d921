"""`optimize`, `show`, `dump`, `ls`, `rm`, `reset` and `execute`. All of them raise CommandError
where they cannot be carried out."""
from __future__ import annotations

import errno
from typing import Any, Dict, FrozenSet, List, Optional, Sequence

from ..control.balancing_scope import osd_filter, plan_options
from ..control.journal import COMPLETED, outcome_code
from ..crush.placement import PlacementRule
from ..crush.rule import ERASURE_TYPES, UnsupportedRule
from ..execution.guards import CURE_BUILTIN
from ..plan.model import BALANCE, MOTIONLESS, Plan, usage_to_dict
from ..plan.options import AIMS, OsdFilter
from ..plan.store import MAX_PLANS, valid_plan_name
from ..plan_service.plan_service import MAX_PLANS_IN_PROGRESS
from ..report.answer import CommandAnswer, CommandError, render_table
from ..report.cluster.evaluation import format_change
from ..runtime.formatting import (
    format_bytes, format_percent, format_time, parse_size, plural, wrap)
from ..snapshot.model import pool_of
from .base import ModuleParts

READY, PLANNING, EXECUTING, OUTDATED = "ready", "planning", "executing", "outdated"
NO_PLANS = "no plans; 'ceph equilibrium optimize <name>' makes one"
#: Field of OsdFilter → the argument that has its names.
_FLAGS = {"sources": "--from", "targets": "--to", "spared": "--not"}


def optimize(parts: ModuleParts, name: str, replace: bool, pools: Sequence[str],
             max_moves: Optional[int], max_bytes: Optional[str], device_class: Optional[str],
             aim: Optional[str], osds: Sequence[Sequence[str]], repair: bool,
             rule: Optional[str]) -> CommandAnswer:
    """Starts to make a plan, which is kept; `replace`: in place of one of that name. Its options
    are the settings, with what the arguments replace; `osds`: names of OSDs and buckets, several in
    one with commas between, of --from and --to, each of which replaces its option, and of --not,
    which adds to what not_buckets spares."""
    _refuse_name(parts, name, replace)
    settings, gateway = parts.settings(), parts.gateway
    # one that names nothing counts as a name, which nothing has
    given = OsdFilter(*[frozenset([one.strip() for text in texts for one in text.split(",")
                                   if one.strip()] or texts) or None for texts in osds])
    for field, unknown in given.scope(gateway.crush()).unknown:
        raise CommandError(errno.ENOENT, f"{_FLAGS[field]} '{unknown}': no OSD and no CRUSH bucket"
                           " has this name; 'ceph osd tree' shows them")
    usual = osd_filter(settings)
    chosen = OsdFilter(given.sources or usual.sources, given.targets or usual.targets,
                       (given.spared or frozenset()) | (usual.spared or frozenset()) or None)
    scope, names = chosen.scope(gateway.crush()), {
        pool: name for name, pool in gateway.pool_ids_by_name().items()}
    pool_ids = parts.pool_ids(pools) if pools else settings.pool_ids
    known, size = gateway.device_classes(), parse_size(max_bytes) if max_bytes is not None else None
    if device_class is not None and device_class not in known:
        raise CommandError(errno.ENOENT, f"no OSD has the device class '{device_class}';"
                           f" there are: {', '.join(sorted(known))}")
    if max_moves is not None and max_moves < 1:
        raise CommandError(errno.EINVAL, "--max-moves must be at least 1")
    if max_bytes is not None and not size:
        raise CommandError(errno.EINVAL,
                           f"--max-bytes '{max_bytes}' is no size; write it like 500G or 1T")
    if aim is not None and aim not in AIMS:
        raise CommandError(errno.EINVAL,
                           f"--aim '{aim}' is not known; use one of {', '.join(AIMS)}")
    classes = settings.device_classes if device_class is None else frozenset((device_class,))
    options = plan_options(settings, gateway.crush())._replace(
        sources=scope.sources, targets=scope.targets, pool_ids=pool_ids, limited_to=chosen.words(
            [names.get(pool, str(pool)) for pool in sorted(pool_ids or ())], classes),
        device_classes=classes,
        max_moves=max_moves, max_bytes=size, aim=settings.aim if aim is None else aim,
        repair=repair or rule is not None,
        rule_id=None if rule is None else _rule_to_be(parts, rule, pool_ids if pools else None))
    if not parts.plan_service.submit_named(name, options, settings.max_plan_seconds):
        raise CommandError(errno.EAGAIN, parts.progress(name))
    parts.request_if_old()   # for the `eval` that the answer names
    return CommandAnswer({"plan": name, "state": "planning", "aim": options.aim},
                         f"{name}: planning; 'ceph equilibrium eval {name}' shows it when it is"
                         " made")


def _rule_to_be(parts: ModuleParts, name: str, pool_ids: Optional[FrozenSet[int]]) -> int:
    """Id of the CRUSH rule that pools are to get. Raises CommandError where they could not, where
    no placement may be legal before and after, and where automatic balancing is on."""
    if parts.settings().active:
        raise CommandError(errno.EPERM, "automatic balancing is on, does not know of the rule and"
                           " would move shards back; run 'ceph equilibrium off' first")
    crush, known = parts.gateway.crush(), parts.required()[0].snapshot.pools
    rules = {str(rule.get("rule_name")): number for number, rule in crush.rules.items()}
    if name not in rules:
        raise CommandError(errno.ENOENT, f"no CRUSH rule is named '{name}'; there are:"
                           f" {', '.join(sorted(rules))}")
    if not pool_ids:
        raise CommandError(errno.EINVAL, "--rule needs the pools that are to get the rule")
    rule = crush.rules[rules[name]]
    for pool in [known[pool] for pool in sorted(pool_ids & known.keys())]:
        if pool.erasure != (rule.get("type") in ERASURE_TYPES):
            raise CommandError(errno.EINVAL, f"rule '{name}' is not of the type of pool"
                               f" '{pool.name}'")
        try:
            osds = PlacementRule(crush, rule, pool.size, pool.positional).osds()
        except UnsupportedRule as why:
            raise CommandError(errno.EINVAL, f"rule '{name}': {why}") from None
        if pool.rule is not None and osds.keys().isdisjoint(pool.rule.osds()):
            raise CommandError(
                errno.EINVAL, f"rule '{name}' takes no OSD that the rule of pool '{pool.name}'"
                " takes, so that nothing can move before: 'ceph osd set norebalance', set the"
                " rule, then 'ceph equilibrium freeze'")
    return rules[name]


def _refuse_name(parts: ModuleParts, name: str, replace: bool) -> None:
    """Raises CommandError for a name under which no plan can be made now, and where too many plans
    are kept; plans in the making count as kept."""
    if not valid_plan_name(name):
        raise CommandError(errno.EINVAL, f"'{name}' is no name for a plan: use up to 64"
                           " letters, digits, '_', '.' and '-'")
    in_progress = [plan for plan in parts.plan_service.plans_in_progress() if plan]
    if name in in_progress:
        raise CommandError(errno.EAGAIN, parts.progress(name))
    kept = set(parts.plan_store.heads()).union(in_progress)
    if name not in kept and len(kept) >= MAX_PLANS:
        raise CommandError(errno.ENOSPC, f"{len(kept)} plans are kept or being made already;"
                           " remove some with 'ceph equilibrium rm'")
    if len(in_progress) >= MAX_PLANS_IN_PROGRESS:
        raise CommandError(
            errno.EAGAIN, f"{len(in_progress)} plans are being made or wait for it; try again"
            " when one is there, or cancel one with 'ceph equilibrium rm'")
    if name == parts.balancer.plan_name:
        raise CommandError(errno.EBUSY, f"plan '{name}' is being executed")
    if name in kept and not replace:
        raise CommandError(errno.EEXIST, f"plan '{name}' is kept already; use another name, or"
                           " '--replace' to have it made anew")


def show(parts: ModuleParts, name: str) -> CommandAnswer:
    """The plan as shell commands that an operator can read, keep and run."""
    plan = parts.plan(name)
    commands = [change.command() for change in plan.changes]
    return CommandAnswer({"plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
                   "moves": moves_json(plan), "bytes": plan.bytes, "commands": commands},
                  "\n".join(_comment(name, plan) + commands))


def dump(parts: ModuleParts, name: str) -> CommandAnswer:
    """Everything that the plan holds as JSON, its moves as a table."""
    plan = parts.plan(name)
    table = render_table("PG<|FROM|TO|SIZE|FROM %USE|TO %USE", [
        [m.pgid, f"osd.{m.source}", f"osd.{m.target}", format_bytes(m.bytes),
         f"{format_percent(m.source_before)} -> {format_percent(m.source_after)}",
         f"{format_percent(m.target_before)} -> {format_percent(m.target_after)}"]
        for m in plan.moves])
    data = {
        "plan": name, "aim": plan.aim, "osdmap_epoch": plan.epoch,
        "stop_reason": plan.stop_reason, "bounds": plan.bounds,
        "moves": moves_json(plan), "bytes": plan.bytes,
        "upmap_items": {c.pgid: [list(pair) for pair in c.items] for c in plan.changes},
        "raw": {c.pgid: list(c.raw) for c in plan.changes},
        "predicted_up": {c.pgid: list(c.up_after) for c in plan.changes},
        "before": usage_to_dict(plan.before), "after": usage_to_dict(plan.after),
        "skipped": plan.skipped}
    return CommandAnswer(data, "\n".join([*_comment(name, plan), table]))


def moves_json(plan: Plan) -> List[Dict[str, Any]]:
    """The moves, JSON-ready; utilizations are ratios, which checkers of plans compare."""
    return [{"pgid": m.pgid, "from": m.source, "to": m.target, "bytes": m.bytes,
             "objects": m.objects,
             "from_utilization_before": m.source_before, "from_utilization_after": m.source_after,
             "to_utilization_before": m.target_before, "to_utilization_after": m.target_after}
            for m in plan.moves]


def _comment(name: str, plan: Plan) -> List[str]:
    lines = [f"# plan {name}, {plan.purpose}, made at osdmap epoch {plan.epoch}:",
             f"# {plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"]
    for device_class, after in plan.after.classes.items():
        before = plan.before.classes[device_class]
        lines.append(f"# class {device_class}: max utilization {format_percent(before.max)}% ->"
                     f" {format_percent(after.max)}%, stddev {format_percent(before.stddev)} ->"
                     f" {format_percent(after.stddev)}")
    room, later = plan.before.room, plan.after.room
    if room is not None and later is not None:   # plans that are made for no gain have none
        lines.append(f"# room if all pools grow alike: {format_bytes(room.bytes)} ->"
                     f" {format_bytes(later.bytes)}")
    return lines


def list_all(parts: ModuleParts) -> CommandAnswer:
    """Kept plans by name, and then those that are being made for the first time."""
    in_progress, summary = parts.plan_service.plans_in_progress(), parts.summary()
    executing, history = parts.balancer.plan_name, parts.balancer.status.history
    plans: List[Dict[str, Any]] = []
    for head in sorted(parts.plan_store.heads().values(), key=lambda head: head.name):
        reason = parts.outdated_reason(head.name, summary)
        state = (PLANNING if head.name in in_progress else EXECUTING if head.name == executing
                 else COMPLETED if any(   # as it was made last; entries may be garbled
                     entry.get("plan") == head.name and not entry.get("automatic")
                     and isinstance(entry.get("started_at"), (int, float))
                     and entry["started_at"] >= head.created_at
                     and outcome_code(str(entry.get("outcome"))) == COMPLETED for entry in history)
                 else READY if reason is None else OUTDATED)
        plans.append({
            "plan": head.name, "state": state, "kind": head.kind, "aim": head.aim,
            "shards": head.moves, "bytes": head.bytes,
            # what moves nothing gains nothing: it only changes what was still to come
            "room_gained_bytes": None if head.kind in MOTIONLESS else head.room_gained_bytes,
            "osdmap_epoch": head.osdmap_epoch, "created_at": head.created_at,
            "outdated_reason": reason if state == OUTDATED else None})
    kept = {plan["plan"] for plan in plans}
    plans += [{"plan": progress.plan, "state": PLANNING, "kind": BALANCE, "aim": progress.aim,
               "shards": progress.moves, "bytes": None,
               "room_gained_bytes": None, "osdmap_epoch": None, "created_at": progress.started_at,
               "outdated_reason": None} for progress in in_progress.values()
              if progress.plan and progress.plan not in kept]
    if not plans:
        return CommandAnswer({"plans": []}, NO_PLANS)
    rows: List[List[str]] = []
    outdated: List[str] = []
    for plan in plans:
        size, room, epoch = plan["bytes"], plan["room_gained_bytes"], plan["osdmap_epoch"]
        rows.append([
            plan["state"], plan["aim"] if plan["kind"] == BALANCE else plan["kind"],
            str(plan["shards"]), "" if size is None else format_bytes(size),
            format_change(room),
            "" if epoch is None else str(epoch), format_time(plan["created_at"]), plan["plan"]])
        if plan["state"] == OUTDATED:
            outdated += wrap("", f"{plan['plan']} is outdated: {plan['outdated_reason']}; 'ceph"
                             f" equilibrium optimize {plan['plan']} --replace' makes it anew", 2)
    table = render_table("STATE<|AIM<|SHARDS|SIZE|ROOM|EPOCH|CREATED (UTC)|PLAN<", rows)
    return CommandAnswer({"plans": plans}, "\n".join([table, *outdated]))


def remove(parts: ModuleParts, names: List[str]) -> CommandAnswer:
    """Forgets kept plans, cancels those in the making, and stops one that is executed: of that
    nothing more is sent when this returns."""
    stopped = None
    if not all(name.strip() for name in names):   # as a shell variable that is not set leaves it
        raise CommandError(errno.EINVAL, "the name of a plan is empty")
    for name in names:
        execution = parts.balancer.stop_plan(name)
        if execution is not None:
            stopped = name
        cancelled = parts.plan_service.cancel(name)
        try:
            parts.plan_store.remove(name)
        except KeyError:
            if not (cancelled or execution):
                raise CommandError(errno.ENOENT, f"no plan is named '{name}'") from None
    parts.wake()
    said = f"removed {', '.join(names)}" if names else "no plans to remove"
    if stopped is not None:
        said += f"\nnothing more of {stopped} is sent; what it has sent goes on"
    return CommandAnswer({"removed": names, "stopped_plan": stopped}, said)


def reset(parts: ModuleParts) -> CommandAnswer:
    """As `remove`, of all plans but one that is being executed."""
    names = set(parts.plan_store.heads()).union(parts.plan_service.plans_in_progress())
    return remove(parts, sorted(names - {parts.balancer.plan_name or "", ""}))


def execute(parts: ModuleParts, name: str) -> CommandAnswer:
    """Hands a kept plan to the serve loop, which carries it out."""
    plan = parts.plan(name)
    if parts.gateway.builtin_balancer_active():
        raise CommandError(errno.EPERM,
                           f"the built-in balancer is active; run '{CURE_BUILTIN}' first")
    parts.refuse_old_clients()
    gone: FrozenSet[int] = frozenset(pool_of(change.pgid) for change in plan.changes).difference(
        parts.gateway.pool_ids_by_name().values())
    if gone:
        raise CommandError(errno.ENOENT, f"plan '{name}' moves PGs of pool"
                           f" {', '.join(map(str, sorted(gone)))}, which is gone; make a new plan")
    if not plan.changes:
        return CommandAnswer({"plan": name, "state": COMPLETED, "shards": 0, "bytes": 0,
                              "outdated_reason": None},
                             f"{name}: nothing to move")
    view, pgs = parts.balancer.status.view, len(plan.changes)
    applicable = (list(plan.changes) if view is None
                  else parts.gateway.applicable(plan.changes, view.snapshot))
    if not applicable and parts.balancer.plan_name is None:
        raise CommandError(errno.ENOENT, f"nothing is left to do of plan '{name}': its"
                           f" {plural(pgs, 'PG is', 'PGs are')} elsewhere by now; make a new plan")
    if not parts.balancer.execute(name, plan):
        raise parts.busy(parts.balancer.plan_name)
    reason = parts.outdated_reason(name, parts.summary())
    pgids = {change.pgid for change in applicable}
    moves = [move for move in plan.moves if move.pgid in pgids]
    size = sum(move.bytes for move in moves)
    lines = [f"{name}: executing {plural(len(moves), 'shard')}, {format_bytes(size)}",
             "'ceph equilibrium status' shows how far it is",
             f"'ceph equilibrium rm {name}' stops it"]
    if len(applicable) < pgs:
        lines += wrap("", f"left out: {pgs - len(applicable)} of its {plural(pgs, 'PG')} are"
                      " elsewhere by now", 0)
    if reason is not None:
        lines += wrap("", f"it is outdated ({reason}): what of it is not legal any more is left"
                      " out", 0)
    return CommandAnswer({"plan": name, "state": "executing", "shards": len(moves),
                          "bytes": size, "outdated_reason": reason}, "\n".join(lines))
