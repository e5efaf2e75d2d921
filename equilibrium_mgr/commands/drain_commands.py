"""`drain add`, `drain rm` and `drain ls`. OSDs are given by id or name, or by a bucket
above them."""
from __future__ import annotations

import errno
from typing import Dict, List

from ..drain.status import rule_without_osds, weighed_osds
from ..drain.drain_list import UnknownName, osds_by_name
from ..plan.model import TAKE_BACK
from ..report.answer import CommandAnswer, CommandError
from ..report.operations import drain_list
from ..runtime.formatting import plural, wrap
from .base import ModuleParts


def list_drains(parts: ModuleParts) -> CommandAnswer:
    """How far the drains are."""
    parts.balancer.drain_status()   # a new mgr reads it first
    parts.request_if_old()
    _, status = parts.newest()
    return drain_list(status, parts.settings(), parts.clock(), weighed_osds(
        parts.gateway.crush()) if status.drains.empty_osds else frozenset())


def add_drains(parts: ModuleParts, names: List[str]) -> CommandAnswer:
    """Begins to drain OSDs, and goes on with those that are on the list. Raises CommandError where
    nothing would be left to take the data, where the list could not be stored, and while shards are
    taken back to one of the OSDs: what would be left out of that is for the operator to decide on,
    as it is where the drain is there first."""
    parts.refuse_old_clients()
    gateway, balancer, found = parts.gateway, parts.balancer, _osds(parts, names)
    view, crush = balancer.status.view, gateway.crush()
    wanted = balancer.drain_status().drains.with_osds(found)
    usable = weighed_osds(crush).intersection(
        osd for osd, one in gateway.summary().osds.items() if one.is_in)
    if not usable - wanted.osds:
        raise CommandError(errno.EINVAL, "no OSD would be left to take data; drain fewer")
    rule = None if view is None else rule_without_osds(
        wanted.osds, usable, crush, {pool.rule_id for pool in view.snapshot.pools.values()})
    if rule is not None:
        raise CommandError(errno.EINVAL, "no OSD would be left to take data of pools with the"
                           f" CRUSH rule '{rule}'; drain fewer")
    if not wanted.fits:
        raise CommandError(errno.E2BIG, f"{plural(len(wanted.names), 'OSD')} are more than can"
                           " be stored as being drained; drain a part of them first")
    execution = balancer.execution
    if execution is not None and execution.name and execution.kind in TAKE_BACK:
        try:
            changes = parts.plan_store.get(execution.name).changes
        except (KeyError, ValueError):   # it has just been removed, which stops it
            changes = ()
        back = {osd for change in changes for osd in change.up_after
                if osd in found and osd not in change.up_before}
        if back:
            raise CommandError(errno.EBUSY, f"plan '{execution.name}' takes shards back to"
                               f" osd.{min(back)}; 'ceph equilibrium rm {execution.name}' stops it")
    balancer.change_drains(lambda drains: drains.with_osds(found))
    text = f"{_named(found)} being drained; 'ceph equilibrium drain ls' shows how far"
    executing = parts.balancer.plan_name
    if executing is not None:
        text += (f"; it begins once plan '{executing}' is done ('ceph equilibrium rm"
                 f" {executing}' stops that)")
    if gateway.builtin_balancer_active():
        text += ("; nothing is sent before 'ceph balancer off', since the built-in balancer is"
                 " active")
    return CommandAnswer({"osds": sorted(found)}, "\n".join(wrap("", text, 0)))


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
    text = f"{_named({osd: found[osd] for osd in wanted})} no longer being drained; "
    text += ("automatic balancing moves data back" if parts.settings().active else
             "automatic balancing is off, so nothing moves back by itself ('ceph equilibrium"
             " on' moves it)")
    return CommandAnswer({"osds": sorted(wanted)}, "\n".join(wrap("", text, 0)))


def _osds(parts: ModuleParts, names: List[str]) -> Dict[int, str]:
    """OSD id → name. Raises CommandError for a name that nothing has."""
    if not names:
        return {}
    try:
        return osds_by_name(names, parts.gateway.crush(), parts.gateway.summary().osds)
    except UnknownName as error:
        raise CommandError(errno.ENOENT, str(error)) from error


def _named(osds: Dict[int, str]) -> str:
    names = [f"osd.{osd}" for osd in sorted(osds)]
    return f"{names[0]} is" if len(names) == 1 else f"{plural(len(names), 'OSD')} are"
