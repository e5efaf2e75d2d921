"""`optimize`, `show`, `dump`, `ls`, `rm`, `reset` and `execute`. They raise CommandError if they
cannot be carried out."""
from __future__ import annotations

from errno import EAGAIN, EBUSY, EEXIST, EINVAL, ENOENT, EPERM
from typing import Any, Collection, FrozenSet, List, Mapping, Optional, Sequence

from ..control.balancing_scope import osd_filter, plan_options
from ..control.journal import COMPLETED
from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import PlacementRule
from ..crush.rule import ERASURE_TYPES, UnsupportedRule
from ..execution.guards import CURE_BUILTIN
from ..gateway.cluster_summary import ClusterSummary
from ..plan.model import BALANCE, MOTIONLESS, Move, Plan, usage_to_dict
from ..plan.options import AIMS, OsdFilter
from ..plan.store import PlanHead, valid_plan_name
from ..plan_service.plan_service import MAX_PLANS_IN_PROGRESS
from ..report.answer import CommandAnswer, CommandError, Row, render_table
from ..report.cluster.cluster_tables import (
    Columns, cells_of, format_osd, text_of)
from ..report.cluster.evaluation import format_change
from ..report.history import episode_json
from ..runtime.formatting import (
    format_bytes, format_percent, format_time, parse_size, plural, wrap)
from ..snapshot.model import Pool, pool_of
from .base import ModuleParts

READY = "ready"
PLANNING = "planning"
EXECUTING = "executing"
OUTDATED = "outdated"
_NO_PLANS = "no plans; 'ceph equilibrium optimize <name>' makes one"
#: Field of OsdFilter → the argument that has its names.
_FLAGS = {"sources": "--from", "targets": "--to", "spared": "--not"}


_HEAD = "STATE<|AIM<|SHARDS|SIZE|ROOM|EPOCH|CREATED (UTC)|PLAN<"
_COLUMNS: Columns = {
    "state": str,
    "purpose": str,
    "shards": str,
    "bytes": format_bytes,
    "room_gained_bytes": format_change,
    "osdmap_epoch": str,
    "created_at": format_time,
    "plan": str}
_MOVES_HEAD = "PG<|FROM|TO|SIZE|FROM %USE|AFTER|TO %USE|AFTER"
_MOVES_COLUMNS: Columns = {
    "pgid": str,
    "from": format_osd,
    "to": format_osd,
    "bytes": format_bytes,
    "from_utilization_before": format_percent,
    "from_utilization_after": format_percent,
    "to_utilization_before": format_percent,
    "to_utilization_after": format_percent}


def optimize(parts: ModuleParts, name: str, replace: bool, pools: Optional[Sequence[str]],
             max_moves: Optional[int], max_bytes: Optional[str], device_class: Optional[str],
             aim: Optional[str], osds: Sequence[Optional[Sequence[str]]], repair: bool,
             rule: Optional[str]) -> CommandAnswer:
    """Starts to make a plan, which is kept. Arguments replace options of the module.

    `replace`: the plan may replace one of the same name. `osds`: the texts of --from, --to and
    --not. The first two replace their option; --not adds to not_buckets.
    """
    _refuse_name(parts, name, replace)
    settings = parts.settings()
    gateway = parts.gateway
    crush = gateway.crush()
    names = parts.pool_names()
    chosen = _filter(osds, osd_filter(settings), crush)
    scope = chosen.scope(crush)
    given_ids = parts.pool_ids(pools) if pools else None
    pool_ids = settings.pool_ids if given_ids is None else given_ids
    classes = settings.device_classes
    rule_id = size = None
    if device_class is not None:
        classes = frozenset((device_class,))
        known = gateway.device_classes()
        if device_class not in known:
            raise CommandError(ENOENT, f"no OSD has the device class '{device_class}';"
                               f" there are: {', '.join(sorted(known))}")
    if max_moves is not None and max_moves < 1:
        raise CommandError(EINVAL, "--max-moves must be at least 1")
    if max_bytes is not None:
        size = parse_size(max_bytes)
        if not size:
            raise CommandError(EINVAL, f"--max-bytes '{max_bytes}' is no size; write it like"
                               " 500G or 1T")
    if aim is not None and aim not in AIMS:
        raise CommandError(EINVAL,
                           f"--aim '{aim}' is not known; use one of {', '.join(AIMS)}")
    if rule is not None:
        rule_id = _rule_to_be(parts, rule, given_ids)
    limited_to = [names.get(pool, str(pool)) for pool in sorted(pool_ids or ())]
    options = plan_options(settings, crush)._replace(
        sources=scope.sources,
        targets=scope.targets,
        pool_ids=pool_ids,
        limited_to=chosen.words(limited_to, classes),
        device_classes=classes,
        max_moves=max_moves,
        max_bytes=size,
        aim=aim or settings.aim,
        levels_load=settings.balance_load,
        repair=repair or rule is not None,
        rule_id=rule_id)
    if not parts.plan_service.submit_named(name, options, settings.max_plan_seconds):
        raise parts.being_made(name)
    parts.refreshed()   # for the `eval` that the answer names
    return CommandAnswer({"plan": name, "state": PLANNING, "aim": options.aim},
                         f"{name}: planning; 'ceph equilibrium eval {name}' shows it when it is"
                         " made")


def _filter(osds: Sequence[Optional[Sequence[str]]], usual: OsdFilter,
            crush: CrushHierarchy) -> OsdFilter:
    """Returns the filter of a plan. `osds`: the texts of --from, --to and --not. `usual`: the
    filter by the options of the module. Raises CommandError for a name that nothing has."""
    given = OsdFilter(*[_names(texts) for texts in osds])
    for field, unknown in given.scope(crush).unknown:
        raise CommandError(ENOENT, f"{_FLAGS[field]} '{unknown}': no OSD and no CRUSH bucket"
                           " has this name; 'ceph osd tree' shows them")
    sources = given.sources or usual.sources
    targets = given.targets or usual.targets
    spared = frozenset().union(given.spared or (), usual.spared or ())
    return OsdFilter(sources, targets, spared or None)


def _names(texts: Optional[Sequence[str]]) -> Optional[FrozenSet[str]]:
    """Returns the names in the texts; None for no text. A text has several names with commas
    between. A text without a name counts as a name, which nothing has."""
    if not texts:
        return None
    names = frozenset([name.strip() for name in ",".join(texts).split(",")]) - {""}
    return names or frozenset(texts)


def _rule_to_be(parts: ModuleParts, name: str, pool_ids: Optional[FrozenSet[int]]) -> int:
    """Returns the id of the CRUSH rule that pools are to get. Raises CommandError if a pool cannot
    get it, and if automatic balancing is on."""
    if parts.settings().active:
        raise CommandError(EPERM, "automatic balancing is on, does not know of the rule and"
                           " would move shards back; run 'ceph equilibrium off' first")
    crush = parts.gateway.crush()
    pools = parts.required()[0].snapshot.pools
    rules = {str(rule.get("rule_name")): number for number, rule in crush.rules.items()}
    if name not in rules:
        raise CommandError(ENOENT, f"no CRUSH rule is named '{name}'; there are:"
                           f" {', '.join(sorted(rules))}")
    if not pool_ids:
        raise CommandError(EINVAL, "--rule needs the pools that are to get the rule")
    for pool in sorted(pool_ids & pools.keys()):
        _refuse_rule(name, crush.rules[rules[name]], pools[pool], crush)
    return rules[name]


def _refuse_rule(name: str, rule: Mapping[str, Any], pool: Pool, crush: CrushHierarchy) -> None:
    """Raises CommandError if a pool cannot get a CRUSH rule, or if its present rule takes none of
    the OSDs: then no placement is legal both before and after."""
    if pool.erasure != (rule.get("type") in ERASURE_TYPES):
        raise CommandError(EINVAL, f"rule '{name}' is not of the type of pool '{pool.name}'")
    try:
        osds = PlacementRule(crush, rule, pool.size, pool.is_grouped).osds()
    except UnsupportedRule as why:
        raise CommandError(EINVAL, f"rule '{name}': {why}") from None
    if pool.rule is not None and osds.keys().isdisjoint(pool.rule.osds()):
        raise CommandError(
            EINVAL, f"rule '{name}' takes no OSD that the rule of pool '{pool.name}' takes,"
            " so that nothing can move before: 'ceph osd set norebalance', set the rule, then 'ceph"
            " equilibrium freeze'")


def _refuse_name(parts: ModuleParts, name: str, replace: bool) -> None:
    """Raises CommandError if no plan of this name can be made now, and if too many plans are kept.
    Plans that are being made count as kept."""
    if not valid_plan_name(name):
        raise CommandError(EINVAL, f"'{name}' is no name for a plan: use up to 64"
                           " letters, digits, '_', '.' and '-'")
    in_progress = set(parts.plan_service.plans_in_progress()) - {""}
    if name in in_progress:
        raise parts.being_made(name)
    is_kept = name in parts.plan_store.heads()
    if not is_kept:
        parts.refuse_more_plans()
    if len(in_progress) >= MAX_PLANS_IN_PROGRESS:
        raise CommandError(
            EAGAIN, f"{len(in_progress)} plans are being made or wait for it; try again"
            " when one is there, or cancel one with 'ceph equilibrium rm'")
    if name == parts.balancer.plan_name:
        raise CommandError(EBUSY, f"plan '{name}' is being executed")
    if is_kept and not replace:
        raise CommandError(EEXIST, f"plan '{name}' is kept already; use another name, or"
                           " '--replace' to have it made anew")


def show_plan(parts: ModuleParts, name: str) -> CommandAnswer:
    """Shows the plan as shell commands that an operator can read, keep and run."""
    plan = parts.plan(name)
    commands = [change.command() for change in plan.changes]
    data = {**_plan_json(name, plan), "commands": commands}
    return CommandAnswer(data, text_of(_comment(name, plan) + commands))


def dump_plan(parts: ModuleParts, name: str) -> CommandAnswer:
    """Shows the plan's moves as a table; as JSON also what they rest on and lead to."""
    plan = parts.plan(name)
    data = {
        **_plan_json(name, plan),
        "stop_reason": plan.stop_reason,
        "bounds": plan.bounds,
        "upmap_items": {change.pgid: list(map(list, change.items)) for change in plan.changes},
        "raw": {change.pgid: list(change.raw) for change in plan.changes},
        "predicted_up": {change.pgid: list(change.up_after) for change in plan.changes},
        "before": usage_to_dict(plan.before),
        "after": usage_to_dict(plan.after),
        "skipped": plan.skipped}
    cells = cells_of(data["moves"], _MOVES_COLUMNS)
    return CommandAnswer(
        data, text_of([*_comment(name, plan), render_table(_MOVES_HEAD, cells)]))


def _plan_json(name: str, plan: Plan) -> Row:
    """Returns the JSON that `show` and `dump` have in common."""
    return {
        "plan": name,
        "aim": plan.aim,
        "osdmap_epoch": plan.epoch,
        "moves": [_move_json(move) for move in plan.moves],
        "bytes": plan.bytes}


def _change(before: float, after: float) -> str:
    return f"{format_percent(before)} -> {format_percent(after)}"


def _move_json(move: Move) -> Row:
    """Returns a move, JSON-ready. Utilizations are ratios, which checkers of plans compare."""
    return {
        "pgid": move.pgid,
        "from": move.source,
        "to": move.target,
        "bytes": move.bytes,
        "objects": move.objects,
        "from_utilization_before": move.source_before,
        "from_utilization_after": move.source_after,
        "to_utilization_before": move.target_before,
        "to_utilization_after": move.target_after}


def _comment(name: str, plan: Plan) -> List[str]:
    """Returns the figures of a plan as comments of a shell script."""
    lines = [f"# plan {name}, {plan.purpose}, made at osdmap epoch {plan.epoch}:",
             f"# {plural(len(plan.moves), 'shard')}, {format_bytes(plan.bytes)}"]
    for device_class, after in plan.after.classes.items():
        before = plan.before.classes[device_class]
        lines.append(f"# class {device_class}: max %USE {_change(before.max, after.max)}, stddev"
                     f" {_change(before.stddev, after.stddev)}")
    room = plan.before.room
    later = plan.after.room
    if room is not None and later is not None:   # plans that are made for no gain have none
        lines.append(f"# room if all pools grow alike: {format_bytes(room.bytes)} ->"
                     f" {format_bytes(later.bytes)}")
    return lines


def list_plans(parts: ModuleParts) -> CommandAnswer:
    """Shows kept plans by name, and then those that are being made for the first time."""
    in_progress = parts.plan_service.plans_in_progress()
    heads = parts.plan_store.heads()
    summary = parts.summary()
    plans = [_kept_row(parts, heads[name], in_progress, summary) for name in sorted(heads)]
    for name, progress in in_progress.items():
        if name and name not in heads:
            plans.append(_row(
                name, PLANNING, BALANCE, progress.aim, progress.moves, progress.started_at))
    if not plans:
        return CommandAnswer({"plans": []}, _NO_PLANS)
    lines = [render_table(_HEAD, cells_of(plans, _COLUMNS))]
    for plan in plans:
        if plan["state"] == OUTDATED:
            lines += wrap("", f"{plan['plan']} is outdated: {plan['outdated_reason']}; 'ceph"
                          f" equilibrium optimize {plan['plan']} --replace' makes it anew", 2)
    return CommandAnswer({"plans": plans}, text_of(lines))


def _kept_row(parts: ModuleParts, head: PlanHead, in_progress: Collection[str],
              summary: Optional[ClusterSummary]) -> Row:
    """Returns a kept plan, JSON-ready."""
    row = _row(head.name, READY, head.kind, head.aim, head.moves, head.created_at)
    row.update(bytes=head.bytes, osdmap_epoch=head.osdmap_epoch)
    if head.kind not in MOTIONLESS:   # these change only moves that have not been made
        row["room_gained_bytes"] = head.room_gained_bytes
    reason = parts.outdated_reason(head.name, summary)
    if head.name in in_progress:
        row["state"] = PLANNING
    elif head.name == parts.balancer.plan_name:
        row["state"] = EXECUTING
    elif _is_completed(head, parts.balancer.status.history):
        row["state"] = COMPLETED
    elif reason is not None:
        row.update(state=OUTDATED, outdated_reason=reason)
    return row


def _row(name: str, state: str, kind: str, aim: str, shards: int, created_at: float) -> Row:
    """Returns a plan, JSON-ready, without the fields that only kept plans have. Its purpose is the
    aim, or the kind if it is not for balance."""
    return {
        "plan": name,
        "state": state,
        "kind": kind,
        "aim": aim,
        "purpose": aim if kind == BALANCE else kind,
        "shards": shards,
        "bytes": None,
        "room_gained_bytes": None,
        "osdmap_epoch": None,
        "created_at": created_at,
        "outdated_reason": None}


def _is_completed(head: PlanHead, history: Sequence[Mapping[str, Any]]) -> bool:
    """Returns True if the plan has been completed since it was made."""
    for entry in history:
        run = episode_json(entry, 0.0)
        is_completed = run["plan"] == head.name and run["outcome"] == COMPLETED
        if is_completed and not entry.get("automatic"):
            if (run["started_at"] or 0.0) >= head.created_at:
                return True
    return False


def remove_plans(parts: ModuleParts, names: List[str]) -> CommandAnswer:
    """Forgets kept plans, cancels those that are being made, and stops one that is executed. When
    this returns, nothing more of that plan is sent."""
    stopped = None
    if not all([name.strip() for name in names]):   # as an unset variable of a shell
        raise CommandError(EINVAL, "the name of a plan is empty")
    for name in names:
        execution = parts.balancer.stop_plan(name)
        if execution is not None:
            stopped = name
        cancelled = parts.plan_service.cancel(name)
        try:
            parts.plan_store.remove(name)
        except KeyError:
            if not cancelled and execution is None:
                raise CommandError(ENOENT, f"no plan is named '{name}'") from None
    parts.wake()
    said = f"removed {', '.join(names)}" if names else "no plans to remove"
    if stopped is not None:
        said += f"\nnothing more of {stopped} is sent; what it has sent goes on"
    return CommandAnswer({"removed": names, "stopped_plan": stopped}, said)


def remove_all_plans(parts: ModuleParts) -> CommandAnswer:
    """Removes all plans except one that is being executed."""
    return remove_plans(parts, sorted(parts.plan_names() - {parts.balancer.plan_name}))


def execute_plan(parts: ModuleParts, name: str) -> CommandAnswer:
    """Hands a kept plan to the serve loop, which carries it out."""
    plan = parts.plan(name)
    gateway = parts.gateway
    if gateway.builtin_balancer_active():
        raise CommandError(EPERM,
                           f"the built-in balancer is active; run '{CURE_BUILTIN}' first")
    parts.refuse_old_clients()
    pools = {pool_of(change.pgid) for change in plan.changes}
    gone = pools.difference(gateway.pool_ids_by_name().values())
    if gone:
        raise CommandError(ENOENT, f"plan '{name}' moves PGs of pool"
                           f" {', '.join(map(str, sorted(gone)))}, which is gone; make a new plan")
    balancer = parts.balancer
    view = balancer.status.view
    applicable = list(plan.changes)
    pgs = len(applicable)
    if not applicable:
        return CommandAnswer(_execute_json(name, COMPLETED, 0, 0, None), f"{name}: nothing to move")
    if view is not None:
        applicable = gateway.applicable(applicable, view.snapshot)
    if not applicable and balancer.plan_name is None:
        raise CommandError(ENOENT, f"nothing is left to do of plan '{name}': its"
                           f" {plural(pgs, 'PG is', 'PGs are')} elsewhere by now; make a new plan")
    if not balancer.execute(name, plan):
        raise parts.busy(balancer.plan_name)
    reason = parts.outdated_reason(name, parts.summary())
    pgids = {change.pgid for change in applicable}
    sizes = [move.bytes for move in plan.moves if move.pgid in pgids]
    shards = len(sizes)
    size = sum(sizes)
    lines = [f"{name}: executing {plural(shards, 'shard')}, {format_bytes(size)}",
             "'ceph equilibrium status' shows how far it is",
             f"'ceph equilibrium rm {name}' stops it"]
    if len(applicable) < pgs:
        lines += wrap("", f"left out: {pgs - len(applicable)} of its {plural(pgs, 'PG')} are"
                      " elsewhere by now", 0)
    if reason is not None:
        lines += wrap("", f"it is outdated ({reason}): what of it is not legal any more is left"
                      " out", 0)
    return CommandAnswer(_execute_json(name, EXECUTING, shards, size, reason), text_of(lines))


def _execute_json(name: str, state: str, shards: int, size: int, reason: Optional[str]) -> Row:
    return {
        "plan": name,
        "state": state,
        "shards": shards,
        "bytes": size,
        "outdated_reason": reason}
