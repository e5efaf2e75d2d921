"""`drain add`, `drain rm` and `drain ls`: OSDs by id or name, or by a bucket above them."""
from __future__ import annotations

from errno import E2BIG, EBUSY, EINVAL, ENOENT, ENOSPC
from typing import Collection, Dict, FrozenSet, List, Optional, Set

from ..drain.drain_list import osds_by_name
from ..observation.cluster_view import ClusterView
from ..plan.model import TAKE_BACK
from ..report.answer import CommandAnswer, CommandError, Row
from ..report.cluster.changes import drain_forecast, forecast_lines
from ..report.cluster.cluster_tables import text_of
from ..report.operations import drain_list
from ..runtime.formatting import format_percent, plural, wrap
from ..snapshot.model import Pool
from .base import ModuleParts


def list_drains(parts: ModuleParts) -> CommandAnswer:
    """Shows how far the drains are."""
    parts.balancer.drain_status()   # a new mgr reads the list first
    _, status, _ = parts.refreshed()
    weighed: FrozenSet[int] = frozenset()
    if status.drains.empty_osds:
        weighed = _weighed(parts)
    return drain_list(status, parts.settings(), parts.clock(), weighed)


def _weighed(parts: ModuleParts) -> FrozenSet[int]:
    """Returns the OSDs that CRUSH places data on: those with a weight."""
    found: Set[int] = set()
    for bucket in parts.gateway.crush().buckets.values():
        found.update([osd for osd, weight in bucket.items if weight > 0.0])
    return frozenset(found)


def add_drains(parts: ModuleParts, names: List[str], force: bool,
               dry_run: bool) -> CommandAnswer:
    """Begins to drain OSDs, and continues the drain of OSDs on the list.

    Raises CommandError if a name means no OSD, if clients are too old, if no OSD would be left for
    the data, if the data would not fit below full_ratio (not with `force`), and if the list is too
    long to be stored. Raises it also while a plan takes shards back to one of the OSDs: the
    operator decides which of the two to give up.
    """
    parts.refuse_old_clients()
    balancer = parts.balancer
    found = _osds(parts, names)
    forecast = None
    view = balancer.status.view
    wanted = balancer.drain_status().drains.with_osds(found)
    _refuse_without_target(parts, wanted.osds, view)
    if not wanted.fits:
        raise CommandError(E2BIG, f"{plural(len(wanted.names), 'OSD')} are more than can"
                           " be stored as being drained; drain a part of them first")
    _refuse_while_taken_back(parts, found)
    if view is not None:
        forecast = drain_forecast(view, wanted.osds)
        if not force:
            _refuse_too_much(forecast, view)
    state = "dry-run"
    text = f"{plural(len(found), 'OSD')} would be drained"
    if not dry_run:
        balancer.change_drains(lambda drains: drains.with_osds(found))
        state = "executing"
        text = _begun(parts, found)
    data = {"osds": sorted(found), "forecast": forecast, "state": state}
    return CommandAnswer(data, text_of(wrap("", text, 0) + forecast_lines(forecast)))


def _refuse_without_target(parts: ModuleParts, drained: FrozenSet[int],
                           view: Optional[ClusterView]) -> None:
    """Raises CommandError if no OSD would be left that takes the data of the drained ones."""
    osds_in = [osd for osd, one in parts.gateway.summary().osds.items() if one.is_in]
    left = _weighed(parts).intersection(osds_in) - drained
    pools: Collection[Pool] = ()
    if view is not None:
        pools = view.snapshot.pools.values()
    for pool in pools:
        for block in pool.blocks:
            if left.isdisjoint(block.weights) and not drained.isdisjoint(block.weights):
                raise _no_target(f" of pool '{pool.name}'")
    if not left:
        raise _no_target("")


def _no_target(of_pool: str) -> CommandError:
    return CommandError(EINVAL, f"no OSD would be left to take data{of_pool}; drain fewer")


def _refuse_while_taken_back(parts: ModuleParts, osds: Collection[int]) -> None:
    """Raises CommandError while a plan takes shards back to one of the OSDs."""
    execution = parts.balancer.execution
    if execution is None or execution.kind not in TAKE_BACK:
        return
    name = execution.name
    try:
        changes = parts.plan_store.get(name).changes
    except (KeyError, ValueError):   # it has just been removed, which stops it
        return
    gained = frozenset().union(*[change.gained_by for change in changes])
    back = gained.intersection(osds)
    if back:
        raise CommandError(EBUSY, f"plan '{name}' takes shards back to osd.{min(back)}; 'ceph"
                           f" equilibrium rm {name}' stops it")


def _refuse_too_much(forecast: Row, view: ClusterView) -> None:
    """Raises CommandError if the drain keeps the data of a class from fitting below full_ratio."""
    full_ratio = view.snapshot.full_ratio
    for row in forecast["classes"]:
        name = row["device_class"]
        then = row["then_bound_utilization"]
        if then > max(full_ratio, view.bounds.get(name, 0.0)):
            raise CommandError(
                ENOSPC, f"the data would not fit: the fullest OSD of class {name} could not"
                f" be below {format_percent(then)}%, above full_ratio"
                f" ({format_percent(full_ratio)}%); drain fewer or add capacity; --force drains"
                " what can leave")


def _begun(parts: ModuleParts, osds: Dict[int, str]) -> str:
    """Says that a drain has begun, and why it waits."""
    text = f"{_being(osds)} being drained; 'ceph equilibrium drain ls' shows how far"
    executing = parts.balancer.plan_name
    if executing:
        text += (f"; it begins once plan '{executing}' is done ('ceph equilibrium rm {executing}'"
                 " stops that)")
    if parts.gateway.builtin_balancer_active():
        text += ("; nothing is sent before 'ceph balancer off', since the built-in balancer is"
                 " active")
    return text


def remove_drains(parts: ModuleParts, names: List[str]) -> CommandAnswer:
    """Ends the drain of OSDs."""
    drains = parts.balancer.drain_status().drains
    by_name = drains.by_name()
    others = []
    found: Dict[int, str] = {}
    for name in names:
        if name in by_name:   # as it was given to `drain add`
            found.update(dict.fromkeys(by_name[name], name))
        else:
            others.append(name)
    found.update(_osds(parts, others))
    wanted = {osd: name for osd, name in found.items() if osd in drains.osds}
    if not wanted:
        raise CommandError(ENOENT, "none of these OSDs is being drained;"
                           " 'ceph equilibrium drain ls' lists those that are")
    parts.balancer.change_drains(lambda drains: drains.without(frozenset(wanted)))
    then = ("automatic balancing is off, so nothing moves back by itself ('ceph equilibrium on'"
            " moves it)")
    if parts.settings().active:
        then = "automatic balancing moves data back"
    text = f"{_being(wanted)} no longer being drained; {then}"
    return CommandAnswer({"osds": sorted(wanted)}, text_of(wrap("", text, 0)))


def _osds(parts: ModuleParts, names: List[str]) -> Dict[int, str]:
    """Returns OSD id → name. Raises CommandError for a name that nothing has."""
    try:
        return osds_by_name(names, parts.gateway.crush(), parts.gateway.summary().osds)
    except ValueError as error:
        raise CommandError(ENOENT, str(error)) from error


def _being(osds: Collection[int]) -> str:
    if len(osds) == 1:
        return f"osd.{min(osds)} is"
    return f"{plural(len(osds), 'OSD')} are"
