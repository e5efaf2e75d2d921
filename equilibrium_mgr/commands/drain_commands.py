"""`drain add`, `drain rm` and `drain ls`: OSDs by id or name, or by a bucket above them."""
from __future__ import annotations

import errno
from typing import Dict, FrozenSet, List

from ..drain.drain_list import osds_by_name
from ..observation.cluster_view import ClusterView
from ..plan.model import TAKE_BACK
from ..report.answer import CommandAnswer, CommandError, Row
from ..report.cluster.changes import drain_forecast, forecast_lines
from ..report.operations import drain_list
from ..runtime.formatting import format_percent, plural, wrap
from .base import ModuleParts


def list_drains(parts: ModuleParts) -> CommandAnswer:
    """How far the drains are."""
    parts.balancer.drain_status()   # a new mgr reads it first
    parts.request_if_old()
    _, status = parts.newest()
    return drain_list(status, parts.settings(), parts.clock(),
                      _weighed(parts) if status.drains.empty_osds else frozenset())


def _weighed(parts: ModuleParts) -> FrozenSet[int]:
    """The OSDs that CRUSH places on: those with a weight."""
    return frozenset(osd for bucket in parts.gateway.crush().buckets.values()
                     for osd, weight in bucket.items if weight > 0.0)


def add_drains(parts: ModuleParts, names: List[str], force: bool,
               dry_run: bool) -> CommandAnswer:
    """Begins to drain OSDs, and goes on with those that are on the list. Raises CommandError where
    nothing would be left to take the data, where the data would not fit below full_ratio, unless
    with `force`, where the list could not be stored, and while shards are
    taken back to one of the OSDs: what would be left out of that is for the operator to decide on,
    as it is where the drain is there first."""
    parts.refuse_old_clients()
    gateway, balancer, found = parts.gateway, parts.balancer, _osds(parts, names)
    view, wanted = balancer.status.view, balancer.drain_status().drains.with_osds(found)
    left = _weighed(parts).intersection(
        osd for osd, one in gateway.summary().osds.items() if one.is_in) - wanted.osds
    short = [pool.name for pool in (() if view is None else view.snapshot.pools.values())
             for block in pool.blocks
             if wanted.osds.intersection(block.weights) and left.isdisjoint(block.weights)]
    if short or not left:
        of_pool = f" of pool '{short[0]}'" if short else ""
        raise CommandError(errno.EINVAL,
                           f"no OSD would be left to take data{of_pool}; drain fewer")
    if not wanted.fits:
        raise CommandError(errno.E2BIG, f"{plural(len(wanted.names), 'OSD')} are more than can"
                           " be stored as being drained; drain a part of them first")
    execution = balancer.execution
    if execution is not None and execution.name and execution.kind in TAKE_BACK:
        try:
            changes = parts.plan_store.get(execution.name).changes
        except (KeyError, ValueError):   # it has just been removed, which stops it
            changes = ()
        back = {osd for change in changes for osd in change.gained_by if osd in found}
        if back:
            raise CommandError(errno.EBUSY, f"plan '{execution.name}' takes shards back to"
                               f" osd.{min(back)}; 'ceph equilibrium rm {execution.name}' stops it")
    forecast = None if view is None else drain_forecast(view, wanted.osds)
    if view is not None and forecast is not None and not force:
        _refuse_too_much(forecast, view)
    lines = forecast_lines(forecast)
    data = {"osds": sorted(found), "forecast": forecast,
            "state": "dry-run" if dry_run else "executing"}
    if dry_run:
        text = f"{plural(len(found), 'OSD')} would be drained"
        return CommandAnswer(data, "\n".join([*wrap("", text, 0), *lines]))
    balancer.change_drains(lambda drains: drains.with_osds(found))
    executing = parts.balancer.plan_name
    text = "; ".join([clause for holds, clause in (
        (True, f"{_being(found)} being drained; 'ceph equilibrium drain ls' shows how far"),
        (executing, f"it begins once plan '{executing}' is done ('ceph equilibrium rm {executing}'"
         " stops that)"),
        (gateway.builtin_balancer_active(), "nothing is sent before 'ceph balancer off', since the"
         " built-in balancer is active")) if holds])
    return CommandAnswer(data, "\n".join([*wrap("", text, 0), *lines]))


def _refuse_too_much(forecast: Row, view: ClusterView) -> None:
    """Raises CommandError if the drain keeps the data of a class from fitting below full_ratio."""
    full_ratio = view.snapshot.full_ratio
    for row in forecast["classes"]:
        without = view.bounds.get(row["device_class"], 0.0)
        if row["then_bound_utilization"] > max(full_ratio, without):
            raise CommandError(
                errno.ENOSPC, "the data would not fit: the fullest OSD of class"
                f" {row['device_class']} could not be below"
                f" {format_percent(row['then_bound_utilization'])}%, above full_ratio"
                f" ({format_percent(full_ratio)}%); drain fewer or add capacity; --force drains"
                " what can leave")


def remove_drains(parts: ModuleParts, names: List[str]) -> CommandAnswer:
    """Ends the drain of OSDs."""
    drains = parts.balancer.drain_status().drains
    by_name = drains.by_name()
    found = {osd: name for name in names for osd in by_name.get(name, ())}
    found.update(_osds(parts, [name for name in names if name not in by_name]))
    wanted = frozenset(found) & drains.osds
    if not wanted:
        raise CommandError(errno.ENOENT, "none of these OSDs is being drained;"
                           " 'ceph equilibrium drain ls' lists those that are")
    parts.balancer.change_drains(lambda drains: drains.without(wanted))
    text = f"{_being({osd: found[osd] for osd in wanted})} no longer being drained; "
    text += ("automatic balancing moves data back" if parts.settings().active else
             "automatic balancing is off, so nothing moves back by itself ('ceph equilibrium"
             " on' moves it)")
    return CommandAnswer({"osds": sorted(wanted)}, "\n".join(wrap("", text, 0)))


def _osds(parts: ModuleParts, names: List[str]) -> Dict[int, str]:
    """OSD id → name. Raises CommandError for a name that nothing has."""
    try:
        return osds_by_name(names, parts.gateway.crush(), parts.gateway.summary().osds)
    except ValueError as error:
        raise CommandError(errno.ENOENT, str(error)) from error


def _being(osds: Dict[int, str]) -> str:
    names = [f"osd.{osd}" for osd in sorted(osds)]
    return f"{names[0]} is" if len(names) == 1 else f"{plural(len(names), 'OSD')} are"
