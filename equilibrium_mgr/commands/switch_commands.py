"""`on`, `off`, `pool ls`, `pool add` and `pool rm`, which set the options active and pool_ids."""
from __future__ import annotations

from errno import EBUSY, EINVAL, EPERM
from typing import FrozenSet, List

from ..plan.model import TAKE_BACK
from ..report.answer import CommandAnswer, CommandError
from ..report.cluster.cluster_tables import text_of
from ..runtime.formatting import named_osds, wrap
from .base import ModuleParts


#: OSDs that an answer names.
_NAMED = 10


def switch_on(parts: ModuleParts) -> CommandAnswer:
    """Switches automatic balancing on, and the built-in balancer off if it moves data."""
    gateway = parts.gateway
    execution = parts.balancer.execution
    parts.refuse_old_clients()
    if execution is not None and execution.kind in TAKE_BACK:
        name = execution.name
        raise CommandError(EBUSY, f"plan '{name}' takes changes back, which automatic balancing"
                           f" would make again; 'ceph equilibrium rm {name}' stops it")
    balancer = parts.balancer
    builtin_was_active = gateway.builtin_balancer_active()
    if builtin_was_active:
        gateway.switch_off_builtin_balancer()
    gateway.set_option("active", "true")
    drains = balancer.drain_status().drains
    resumed = sorted(drains.osds) if drains.is_paused else []
    balancer.switch_on(builtin_was_active)
    sentences = ["automatic balancing is on"]
    if resumed:
        names = " ".join(drains.by_name())
        sentences.append(f"the drain of {named_osds(resumed, _NAMED)} goes on"
                         f" ('ceph equilibrium drain rm {names}' ends it)")
    if builtin_was_active:
        sentences.append("the built-in balancer was switched off")
    elif gateway.builtin_balancer_on():
        mode = gateway.builtin_balancer_mode()
        sentences.append(f"the built-in balancer stays on: in mode {mode} it moves no data")
    data = {
        "active": True,
        "builtin_balancer_switched_off": builtin_was_active,
        "resumed_drains": resumed}
    return CommandAnswer(data, _text(sentences))


def switch_off(parts: ModuleParts) -> CommandAnswer:
    """Switches automatic balancing off, pauses drains, and stops the execution of a plan."""
    gateway = parts.gateway
    gateway.set_option("active", "false")
    stopped = parts.balancer.switch_off()
    status = parts.balancer.drains.status
    sentences = ["automatic balancing is off"]
    if status.drains.is_paused:
        names = " ".join(status.drains.by_name())
        sentences.append(f"the drain of {status.named} is paused ('ceph equilibrium drain add"
                         f" {names}' goes on)")
    if stopped:
        sentences.append(f"the execution of plan '{stopped}' was stopped")
    if gateway.builtin_balancer_runs() and not gateway.builtin_balancer_on():
        sentences.append("the built-in balancer stays off ('ceph balancer on' brings it back)")
    return CommandAnswer({"active": False, "stopped_plan": stopped}, _text(sentences))


def _text(sentences: List[str]) -> str:
    return text_of([text_of(wrap("", sentence, 0)) for sentence in sentences])


def list_pools(parts: ModuleParts) -> CommandAnswer:
    """Shows the pools that balancing is limited to. JSON has none if all are balanced."""
    names = parts.pool_names()
    pool_ids = parts.settings().pool_ids or ()
    pools = [names.get(pool, f"{pool} (gone)") for pool in sorted(pool_ids)]
    text = text_of(pools)
    if not pools:
        text = "all pools are balanced; 'ceph equilibrium pool add <pool>' limits it to some"
    return CommandAnswer({"pools": pools}, text)


def add_pools(parts: ModuleParts, pools: List[str]) -> CommandAnswer:
    """Limits balancing to these pools and to those named before."""
    before = parts.settings().pool_ids or frozenset()
    return _limit_to(parts, before | parts.pool_ids(pools))


def remove_pools(parts: ModuleParts, pools: List[str]) -> CommandAnswer:
    """Takes pools off the list; also by the id of a pool that is gone.

    Refuses to leave the list empty, which would mean all pools: a command that takes a pool out
    must not make the module balance more of them.
    """
    ids = parts.gateway.pool_ids_by_name()
    limited_to = parts.settings().pool_ids
    gone = {str(pool) for pool in limited_to or ()}
    gone -= {*ids, *map(str, ids.values())}
    present = parts.pool_ids([pool for pool in pools if pool not in gone])
    removed = present.union(map(int, gone.intersection(pools)))
    if limited_to is None:
        raise CommandError(EINVAL, "pool_ids is empty, and all pools are balanced; run"
                           " 'ceph equilibrium pool add' with those that are to be")
    left = limited_to - removed
    if not left:
        raise CommandError(EPERM, "no pool would be left in pool_ids, and an empty list"
                           " means all pools; 'ceph config rm mgr mgr/equilibrium/pool_ids' has"
                           " all of them balanced, 'ceph equilibrium pool add' another one"
                           " instead")
    return _limit_to(parts, left)


def _limit_to(parts: ModuleParts, chosen: FrozenSet[int]) -> CommandAnswer:
    parts.gateway.set_option("pool_ids", ",".join(map(str, sorted(chosen))))
    return list_pools(parts)
