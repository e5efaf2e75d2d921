"""`optimize`, `show`, `dump`, `ls`, `rm`, `reset` and `execute`."""
from __future__ import annotations

import errno
from typing import List, Optional

from ..control.episodes.outcomes import COMPLETED
from ..execution.guards import CURE_BUILTIN, upmap_refused
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..plan.model import BadPlan, Plan
from ..plan.store import MAX_PLANS, valid_plan_name
from ..plan_service.plan_service import MAX_PLANS_IN_PROGRESS
from ..report.command_answer import CommandAnswer, CommandError
from ..report.plans import PlansNow, dump_plan, list_plans, outdated_reason, show_plan
from ..runtime.formatting import format_bytes, plural, wrap
from ..snapshot.model import pool_of
from .current_view import CurrentView
from .module_parts import ModuleParts
from .plan_arguments import PlanArguments, plan_options


class PlanCommands:
    """Commands on kept plans. All of them raise CommandError where they cannot be carried out."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts

    def optimize(self, name: str, arguments: PlanArguments, replace: bool) -> CommandAnswer:
        """Starts to make a plan, which is kept."""
        self._refuse_name(name, replace)
        settings = self._parts.settings()
        options = plan_options(arguments, settings, self._parts.gateway)
        if not self._parts.plan_service.submit_named(name, options, settings.max_plan_seconds):
            raise CommandError(errno.EAGAIN, self._progress(name))
        CurrentView(self._parts).request_if_old()   # for the `eval` that the answer names
        return CommandAnswer({"plan": name, "state": "planning", "aim": options.aim},
                             f"{name}: planning; 'ceph equilibrium eval {name}' shows it when it is"
                             " made")

    def _refuse_name(self, name: str, replace: bool) -> None:
        """Raises CommandError for a name under which no plan can be made now. `replace`: a kept
        plan of that name goes."""
        if not valid_plan_name(name):
            raise CommandError(errno.EINVAL, f"'{name}' is no name for a plan: use up to 64"
                               " letters, digits, '_', '.' and '-'")
        self._refuse_too_many(name)
        if name == self._parts.executing():
            raise CommandError(errno.EBUSY, f"plan '{name}' is being executed")
        if name in self._parts.plan_store.heads() and not replace:
            raise CommandError(errno.EEXIST, f"plan '{name}' is kept already; use another name, or"
                               " '--replace' to have it made anew")

    def _refuse_too_many(self, name: str) -> None:
        """Raises CommandError where too many plans are kept; plans in the making count as kept."""
        in_progress = [plan for plan in self._parts.plan_service.plans_in_progress() if plan]
        if name in in_progress:
            raise CommandError(errno.EAGAIN, self._progress(name))
        kept = set(self._parts.plan_store.heads()).union(in_progress)
        if name not in kept and len(kept) >= MAX_PLANS:
            raise CommandError(errno.ENOSPC, f"{len(kept)} plans are kept or being made already;"
                               " remove some with 'ceph equilibrium rm'")
        if len(in_progress) >= MAX_PLANS_IN_PROGRESS:
            raise CommandError(
                errno.EAGAIN, f"{len(in_progress)} plans are being made or wait for it; try again"
                " when one is there, or cancel one with 'ceph equilibrium rm'")

    def show(self, name: str) -> CommandAnswer:
        """A plan as shell commands."""
        return show_plan(name, self.plan(name))

    def dump(self, name: str) -> CommandAnswer:
        """Everything that a plan holds."""
        return dump_plan(name, self.plan(name))

    def list(self) -> CommandAnswer:
        """The plans that are kept or in the making."""
        parts = self._parts
        return list_plans(parts.plan_store.heads().values(), PlansNow(
            parts.plan_service.plans_in_progress(), parts.executing(),
            parts.balancer.status.history, self._summary()))

    def _summary(self) -> Optional[ClusterSummary]:
        try:
            return self._parts.gateway.summary()
        except NotReady:
            return None

    def remove(self, names: List[str]) -> CommandAnswer:
        """Forgets kept plans, cancels those in the making, and stops one that is executed: of that
        nothing more is sent when this returns."""
        stopped = None
        for name in names:
            execution = self._parts.balancer.stop_plan(name)
            if execution is not None:
                stopped = name
            cancelled = self._parts.plan_service.cancel(name)
            try:
                self._parts.plan_store.remove(name)
            except KeyError:
                if not (cancelled or execution):
                    raise CommandError(errno.ENOENT, f"no plan is named '{name}'") from None
            self._parts.plan_service.forget(name)
        self._parts.wake()
        return CommandAnswer({"removed": names, "stopped_plan": stopped}, _removed(names, stopped))

    def reset(self) -> CommandAnswer:
        """As `remove`, of all plans but one that is being executed."""
        names = set(self._parts.plan_store.heads()).union(
            self._parts.plan_service.plans_in_progress())
        return self.remove(sorted(names - {self._parts.executing() or "", ""}))

    def execute(self, name: str) -> CommandAnswer:
        """Hands a kept plan to the serve loop, which carries it out."""
        plan = self.plan(name)
        if self._parts.gateway.builtin_balancer_active():
            raise CommandError(errno.EPERM,
                               f"the built-in balancer is active; run '{CURE_BUILTIN}' first")
        refuse_old_clients(self._parts.gateway)
        self._refuse_lost_pools(name, plan)
        if not plan.changes:
            return CommandAnswer({"plan": name, "state": COMPLETED, "shards": 0, "bytes": 0,
                                  "outdated_reason": None},
                                 f"{name}: nothing to move")
        if not self._parts.balancer.execute(name, plan):
            busy = self._parts.executing()
            raise CommandError(errno.EBUSY, f"plan '{busy}' is being executed; 'ceph equilibrium rm"
                               f" {busy}' stops it")
        reason = self.outdated_reason(name)
        lines = [f"{name}: executing {plural(len(plan.moves), 'shard')},"
                 f" {format_bytes(plan.bytes)}",
                 "'ceph equilibrium status' shows how far it is",
                 f"'ceph equilibrium rm {name}' stops it"]
        if reason is not None:
            lines += wrap("", f"it is outdated ({reason}): what of it is not legal any more is left"
                          " out", 0)
        return CommandAnswer({"plan": name, "state": "executing", "shards": len(plan.moves),
                              "bytes": plan.bytes, "outdated_reason": reason}, "\n".join(lines))

    def outdated_reason(self, name: str) -> Optional[str]:
        """Why a kept plan, or a part of it, is void; None for no reason that is known."""
        head = self._parts.plan_store.heads().get(name)
        return outdated_reason(head, self._summary()) if head is not None else None

    def _refuse_lost_pools(self, name: str, plan: Plan) -> None:
        known = set(self._parts.gateway.pool_ids_by_name().values())
        gone = {pool_of(change.pgid) for change in plan.changes} - known
        if gone:
            pools = ", ".join(str(pool) for pool in sorted(gone))
            raise CommandError(errno.ENOENT, f"plan '{name}' moves PGs of pool {pools}, which is"
                               " gone; make a new plan")

    def plan(self, name: str) -> Plan:
        """A kept plan. Raises CommandError where it is being made, unknown or damaged."""
        if name in self._parts.plan_service.plans_in_progress():
            raise CommandError(errno.EAGAIN, self._progress(name))
        failure = self._parts.plan_service.last_failure(name)
        try:
            return self._parts.plan_store.get(name)
        except KeyError:
            sentence = (f"plan '{name}' could not be made ({failure})" if failure
                        else f"no plan is named '{name}'")
            raise CommandError(errno.ENOENT, sentence) from None
        except BadPlan as bad:
            raise CommandError(
                errno.EIO, f"{bad}; remove it with 'ceph equilibrium rm {name}'") from None

    def _progress(self, name: str) -> str:
        progress = self._parts.plan_service.plans_in_progress().get(name)
        if progress is None:
            return f"plan '{name}' is nearly made; try again"
        if not progress.running:
            return f"plan '{name}' waits for another one that is being made; try again"
        seconds = int(self._parts.clock() - progress.started_at)
        return f"plan '{name}' is being made: {progress.moves} moves so far, {seconds} s; try again"


def _removed(names: List[str], stopped: Optional[str]) -> str:
    if not names:
        return "no plans to remove"
    said = f"removed {', '.join(names)}"
    if stopped is not None:
        said += f"\nnothing more of {stopped} is sent; what it has sent goes on"
    return said


def refuse_old_clients(gateway: Gateway) -> None:
    """Raises CommandError where the cluster admits clients that do not know upmaps."""
    refused = upmap_refused(gateway.min_compat_client())
    if refused:
        raise CommandError(errno.EPERM, refused)
