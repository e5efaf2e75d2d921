"""`on` and `off`, and `pool ls`, `pool add` and `pool rm`: the options active and pool_ids."""
from __future__ import annotations

import errno
from typing import FrozenSet, List

from ..plan.model import TAKE_BACK
from ..report.answer import CommandAnswer, CommandError
from ..runtime.formatting import named_osds, wrap
from .base import ModuleParts


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
    stays = not builtin_was_active and gateway.builtin_balancer_on()
    sentences = ["automatic balancing is on", *[sentence for holds, sentence in (
        (resumed, f"the drain of {named_osds(resumed, _NAMED)} goes on"
         f" ('ceph equilibrium drain rm {' '.join(drains.by_name())}' ends it)"),
        (builtin_was_active, "the built-in balancer was switched off"),
        (stays, "the built-in balancer stays on: in mode"
         f" {gateway.builtin_balancer_mode()} it moves no data")) if holds]]
    return CommandAnswer({"active": True, "builtin_balancer_switched_off": builtin_was_active,
                          "resumed_drains": resumed}, _lines(sentences))


def switch_off(parts: ModuleParts) -> CommandAnswer:
    """Switches automatic balancing off, and stops the execution of a kept plan."""
    gateway = parts.gateway
    gateway.set_option("active", "false")
    stopped = parts.balancer.switch_off()
    drains = parts.balancer.drains.status
    sentences = ["automatic balancing is off", *[sentence for holds, sentence in (
        (drains.drains.is_paused, f"the drain of {drains.named} is paused ('ceph equilibrium drain"
         f" add {' '.join(drains.drains.by_name())}' goes on)"),
        (stopped, f"the execution of plan '{stopped}' was stopped"),
        (not gateway.builtin_balancer_on() and gateway.builtin_balancer_runs(),
         "the built-in balancer stays off ('ceph balancer on' brings it back)")) if holds]]
    return CommandAnswer({"active": False, "stopped_plan": stopped}, _lines(sentences))


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
