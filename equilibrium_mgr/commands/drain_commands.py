"""`drain add`, `drain rm` and `drain ls`."""
from __future__ import annotations

import errno
from typing import Dict, List

from ..drain.nothing_left import rule_without_osds, weighed_osds
from ..drain.osd_names import UnknownName, osds_by_name
from ..plan.kinds import TAKE_BACK
from ..report.command_answer import CommandAnswer, CommandError
from ..report.drains import Loop, drain_list
from ..runtime.formatting import plural, wrap
from .current_view import CurrentView
from .module_parts import ModuleParts
from .plan_commands import refuse_old_clients


class DrainCommands:
    """OSDs are given by id or name, or by a bucket above them."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts

    def list(self) -> CommandAnswer:
        """How far the drains are."""
        parts, view = self._parts, CurrentView(self._parts)
        parts.balancer.drain_status()   # a new mgr reads it first
        view.request_if_old()
        _, loop = view.newest()
        return drain_list(loop.drains, loop.view, Loop(
            loop, parts.settings(), parts.clock(),
            weighed_osds(parts.gateway.crush()) if loop.drains.empty_osds else frozenset()))

    def add(self, names: List[str]) -> CommandAnswer:
        """Begins to drain OSDs, and goes on with those that are on the list."""
        refuse_old_clients(self._parts.gateway)
        found = self._osds(names)
        self._refuse_drain(found)
        self._refuse_what_comes_back(found)
        self._parts.balancer.change_drains(lambda drains: drains.with_osds(found))
        text = f"{_named(found)} being drained; 'ceph equilibrium drain ls' shows how far"
        executing = self._parts.executing()
        if executing is not None:
            text += (f"; it begins once plan '{executing}' is done ('ceph equilibrium rm"
                     f" {executing}' stops that)")
        if self._parts.gateway.builtin_balancer_active():
            text += ("; nothing is sent before 'ceph balancer off', since the built-in balancer is"
                     " active")
        return CommandAnswer({"osds": sorted(found)}, "\n".join(wrap("", text, 0)))

    def _refuse_drain(self, found: Dict[int, str]) -> None:
        """Raises CommandError where nothing would be left to take the data, and where the list
        could not be stored."""
        drains, view = self._parts.balancer.drain_status().drains, self._parts.balancer.status.view
        wanted, osds = drains.with_osds(found), self._parts.gateway.summary().osds
        crush = self._parts.gateway.crush()
        usable = weighed_osds(crush).intersection(osd for osd, one in osds.items() if one.is_in)
        if not usable - wanted.osds:
            raise CommandError(errno.EINVAL, "no OSD would be left to take data; drain fewer")
        rule = None if view is None else rule_without_osds(
            wanted.osds, usable, crush,
            {pool.rule_id for pool in view.snapshot.pools.values()})
        if rule is not None:
            raise CommandError(errno.EINVAL, "no OSD would be left to take data of pools with the"
                               f" CRUSH rule '{rule}'; drain fewer")
        if not wanted.fits:
            raise CommandError(errno.E2BIG, f"{plural(len(wanted.names), 'OSD')} are more than can"
                               " be stored as being drained; drain a part of them first")

    def _refuse_what_comes_back(self, found: Dict[int, str]) -> None:
        """Raises CommandError while shards are taken back to one of the OSDs: what would be left
        out of that is for the operator to decide on, as it is where the drain is there first."""
        execution = self._parts.balancer.execution
        if execution is None or not execution.name or execution.kind not in TAKE_BACK:
            return
        try:
            changes = self._parts.plan_store.get(execution.name).changes
        except (KeyError, ValueError):   # it has just been removed, which stops it
            return
        back = {osd for change in changes for osd in change.up_after
                if osd in found and osd not in change.up_before}
        if back:
            raise CommandError(errno.EBUSY, f"plan '{execution.name}' takes shards back to"
                               f" osd.{min(back)}; 'ceph equilibrium rm {execution.name}' stops it")

    def remove(self, names: List[str]) -> CommandAnswer:
        """Ends the drain of OSDs."""
        drains = self._parts.balancer.drain_status().drains
        by_name, given = drains.by_name(), set(names)
        found = {osd: name for name in given & set(by_name) for osd in by_name[name]}
        found.update(self._osds([name for name in names if name not in by_name]))
        wanted = frozenset(found) & drains.osds
        if not wanted:
            raise CommandError(errno.ENOENT, "none of these OSDs is being drained;"
                               " 'ceph equilibrium drain ls' lists those that are")
        self._parts.balancer.change_drains(lambda drains: drains.without(wanted))
        text = f"{_named({osd: found[osd] for osd in wanted})} no longer being drained; "
        text += ("automatic balancing moves data back" if self._parts.settings().active else
                 "automatic balancing is off, so nothing moves back by itself ('ceph equilibrium"
                 " on' moves it)")
        return CommandAnswer({"osds": sorted(wanted)}, "\n".join(wrap("", text, 0)))

    def _osds(self, names: List[str]) -> Dict[int, str]:
        """OSD id → name. Raises CommandError for a name that nothing has."""
        if not names:
            return {}
        gateway = self._parts.gateway
        try:
            return osds_by_name(names, gateway.crush(), gateway.summary().osds)
        except UnknownName as error:
            raise CommandError(errno.ENOENT, str(error)) from error


def _named(osds: Dict[int, str]) -> str:
    names = [f"osd.{osd}" for osd in sorted(osds)]
    return f"{names[0]} is" if len(names) == 1 else f"{plural(len(names), 'OSD')} are"
