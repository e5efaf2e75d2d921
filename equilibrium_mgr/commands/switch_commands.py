"""`on` and `off`, and `pool ls`, `pool add` and `pool rm`: the options active and pool_ids.

`freeze`: pins what is remapped to where its data is.
"""
from __future__ import annotations

import errno
from typing import FrozenSet, List

from ..freeze.freeze import freeze
from ..plan.model import FREEZE, TAKE_BACK, topology_mark, topology_of
from ..report.answer import CommandAnswer, CommandError
from ..report.operations import report_freeze
from ..runtime.formatting import named, wrap
from .base import ModuleParts, with_figures


#: OSDs that are named in an answer.
_NAMED = 10


def switch_on(parts: ModuleParts) -> CommandAnswer:
    """Switches automatic balancing on, and the built-in balancer off where it moves data."""
    gateway, execution = parts.gateway, parts.balancer.execution
    parts.refuse_old_clients()
    if execution is not None and execution.name and execution.kind in TAKE_BACK:
        raise CommandError(errno.EBUSY, f"plan '{execution.name}' takes changes back, which"
                           " automatic balancing would make again; 'ceph equilibrium rm"
                           f" {execution.name}' stops it")
    builtin_was_active = gateway.builtin_balancer_active()
    if builtin_was_active:
        gateway.switch_off_builtin_balancer()
    gateway.set_option("active", "true")
    drains = parts.balancer.drain_status().drains
    resumed = sorted(drains.osds) if drains.is_paused else []
    parts.balancer.switch_on(builtin_was_active)
    sentences = ["automatic balancing is on"]
    if resumed:
        sentences.append(f"the drain of {named([f'osd.{osd}' for osd in resumed], _NAMED)} goes on"
                         f" ('ceph equilibrium drain rm {' '.join(drains.by_name())}' ends it)")
    if builtin_was_active:
        sentences.append("the built-in balancer was switched off")
    elif gateway.builtin_balancer_on():
        sentences.append("the built-in balancer stays on: in mode"
                         f" {gateway.builtin_balancer_mode()} it moves no data")
    return CommandAnswer({"active": True, "builtin_balancer_switched_off": builtin_was_active,
                          "resumed_drains": resumed}, _lines(sentences))


def switch_off(parts: ModuleParts) -> CommandAnswer:
    """Switches automatic balancing off, and stops the execution of a kept plan."""
    gateway = parts.gateway
    gateway.set_option("active", "false")
    stopped = parts.balancer.switch_off()
    sentences = ["automatic balancing is off"]
    drains = parts.balancer.drains.status
    if drains.drains.is_paused:
        sentences.append(f"the drain of {drains.named} is paused ('ceph equilibrium drain add"
                         f" {' '.join(drains.drains.by_name())}' goes on)")
    if stopped:
        sentences.append(f"the execution of plan '{stopped}' was stopped")
    if not gateway.builtin_balancer_on() and gateway.builtin_balancer_runs():
        sentences.append("the built-in balancer stays off ('ceph balancer on' brings it back)")
    return CommandAnswer({"active": False, "stopped_plan": stopped,
                          "drain_paused": drains.drains.is_paused}, _lines(sentences))


def _lines(sentences: List[str]) -> str:
    return "\n".join(line for sentence in sentences for line in wrap("", sentence, 0))


def list_pools(parts: ModuleParts) -> CommandAnswer:
    """The pools that balancing is limited to; none in JSON where all are balanced."""
    names = {pool: name for name, pool in parts.gateway.pool_ids_by_name().items()}
    pools = [names.get(pool, f"{pool} (gone)")
             for pool in sorted(parts.settings().pool_ids or ())]
    return CommandAnswer({"pools": pools}, "\n".join(pools) or (
        "all pools are balanced; 'ceph equilibrium pool add <pool>' limits it to some"))


def add_pools(parts: ModuleParts, pools: List[str]) -> CommandAnswer:
    """Limits balancing to these pools beside those named before."""
    return _limit_to(parts, (parts.settings().pool_ids or frozenset()) | parts.pool_ids(pools))


def remove_pools(parts: ModuleParts, pools: List[str]) -> CommandAnswer:
    """Takes pools off the list, ids of pools that are gone among them.

    Refuses to leave the list empty, which would mean all pools: a command that takes a pool out
    never has more of them balanced.
    """
    known, limited_to = parts.gateway.pool_ids_by_name(), parts.settings().pool_ids
    gone = {str(pool) for pool in (limited_to or frozenset()).difference(known.values())}
    gone.difference_update(known)
    removed = parts.pool_ids([pool for pool in pools if pool not in gone]).union(
        int(pool) for pool in gone.intersection(pools))
    if limited_to is None:
        raise CommandError(errno.EINVAL, "pool_ids is empty, and all pools are balanced; run"
                           " 'ceph equilibrium pool add' with those that are to be")
    if not limited_to - removed:
        raise CommandError(errno.EPERM, "no pool would be left in pool_ids, and an empty list"
                           " means all pools; 'ceph config rm mgr mgr/equilibrium/pool_ids' has"
                           " all of them balanced, 'ceph equilibrium pool add' another one"
                           " instead")
    return _limit_to(parts, limited_to - removed)


def _limit_to(parts: ModuleParts, chosen: FrozenSet[int]) -> CommandAnswer:
    parts.gateway.set_option("pool_ids", ",".join(str(pool) for pool in sorted(chosen)))
    return list_pools(parts)


def pin(parts: ModuleParts, dry_run: bool) -> CommandAnswer:
    """Pins all remapped PGs as far as they can be, or only shows how far that is. Raises
    CommandError where the newest view does not know of all that is remapped."""
    execution = parts.balancer.execution
    stops = "" if execution is None else f"; 'ceph equilibrium rm {execution.name}' stops it"
    if execution is not None and execution.kind == FREEZE:
        raise CommandError(errno.EAGAIN, f"plan '{execution.name}' is sending its pins; try"
                           f" again in some seconds{stops}")
    if not dry_run:
        parts.refuse_old_clients()
        if execution is not None and execution.name:
            raise CommandError(errno.EBUSY, f"plan '{execution.name}' is being executed{stops}")
    view, summary = parts.to_act_on(), parts.gateway.summary()
    if topology_of(view.snapshot) != topology_mark(summary.crush_version, (
            (osd, found.is_in, found.reweight) for osd, found in summary.osds.items())):
        raise parts.outdated("the cluster has changed since it was last looked at")
    if view.snapshot.unsettled_seconds > 0.0:
        raise parts.outdated("PGs have just been remapped, and do not show yet where their"
                             " data is")
    found, name = freeze(view.snapshot), None
    if found.plan.changes and not dry_run:
        name = parts.keep_and_execute(FREEZE, with_figures(found.plan, view))
    drains = parts.balancer.drains.status.drains
    return report_freeze(name, dry_run, found, view.snapshot, parts.settings().active,
                         drains.osds if drains.is_running else frozenset())
