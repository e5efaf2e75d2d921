"""`on` and `off`."""
from __future__ import annotations

import errno
from typing import Sequence

from ..plan.kinds import TAKE_BACK
from ..report.command_answer import CommandAnswer, CommandError
from ..runtime.formatting import wrap
from .module_parts import ModuleParts
from .plan_commands import refuse_old_clients

#: OSDs that are named in an answer.
_NAMED = 10


class SwitchCommands:
    """Automatic balancing on and off."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts

    def on(self) -> CommandAnswer:
        """Switches automatic balancing on, and the built-in balancer off where it moves data."""
        gateway = self._parts.gateway
        refuse_old_clients(gateway)
        self._refuse_taking_back()
        builtin_was_active = gateway.builtin_balancer_active()
        if builtin_was_active:
            gateway.switch_off_builtin_balancer()
        gateway.set_option("active", "true")
        drains = self._parts.balancer.drain_status()
        resumed = sorted(drains.drains.osds) if drains.drains.is_paused else []
        self._parts.balancer.switch_on(builtin_was_active)
        sentences = ["automatic balancing is on"]
        if resumed:
            sentences.append(f"the drain of {_names(resumed)} goes on ('ceph equilibrium drain rm"
                             f" {' '.join(drains.drains.by_name())}' ends it)")
        if builtin_was_active:
            sentences.append("the built-in balancer was switched off")
        elif gateway.builtin_balancer_on():
            sentences.append("the built-in balancer stays on: in mode"
                             f" {gateway.builtin_balancer_mode()} it moves no data")
        return CommandAnswer({"active": True, "builtin_balancer_switched_off": builtin_was_active,
                              "resumed_drains": resumed}, _lines(sentences))

    def _refuse_taking_back(self) -> None:
        """Raises CommandError while changes are taken back: they would be made again."""
        execution = self._parts.balancer.execution
        if execution is not None and execution.name and execution.kind in TAKE_BACK:
            raise CommandError(errno.EBUSY, f"plan '{execution.name}' takes changes back, which"
                               " automatic balancing would make again; 'ceph equilibrium rm"
                               f" {execution.name}' stops it")

    def off(self) -> CommandAnswer:
        """Switches automatic balancing off, and stops the execution of a kept plan."""
        gateway = self._parts.gateway
        gateway.set_option("active", "false")
        stopped = self._parts.balancer.switch_off()
        sentences = ["automatic balancing is off"]
        drains = self._parts.balancer.drains.status
        if drains.drains.is_paused:
            sentences.append(f"the drain of {drains.named} is paused ('ceph equilibrium drain add"
                             f" {' '.join(drains.drains.by_name())}' goes on)")
        if stopped:
            sentences.append(f"the execution of plan '{stopped}' was stopped")
        if not gateway.builtin_balancer_on() and gateway.builtin_balancer_runs():
            sentences.append(
                "the built-in balancer stays off ('ceph balancer on' brings it back)")
        return CommandAnswer({"active": False, "stopped_plan": stopped,
                              "drain_paused": drains.drains.is_paused}, _lines(sentences))


def _lines(sentences: Sequence[str]) -> str:
    return "\n".join(line for sentence in sentences for line in wrap("", sentence, 0))


def _names(osds: Sequence[int]) -> str:
    more = len(osds) - _NAMED
    return ", ".join(f"osd.{osd}" for osd in osds[:_NAMED]) + (f" and {more} more" if more > 0
                                                              else "")
