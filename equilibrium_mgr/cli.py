"""The `ceph equilibrium …` commands.

No handler waits: the commands of a module share one thread in the mgr. Ceph reads the annotations
of the handlers, so they must be objects, not strings: no `from __future__ import annotations` here.
Every handler has a return annotation, without which Ceph takes its last argument for optional.
"""
import errno
import threading
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

from .compat import read_command, write_command
from .control.balancer import Balancer
from .execution.guards import CURE_BUILTIN, upmap_refused
from .gateway.gateway import Gateway, NotReady
from .observation.cluster_view import ClusterView, with_figures_of_now
from .plan.model import BadPlan, Plan
from .plan.options import AIMS, PlanOptions
from .plan.store import MAX_PLANS, PlanStore, valid_plan_name
from .plan_service.plan_service import MAX_PLANS_IN_PROGRESS, PlanService
from .removed_options import RemovedOptions
from .report.command_answer import CommandAnswer, CommandResult, CommandError, run_command
from .report.evaluation import evaluate_cluster, evaluate_plan, evaluate_pool
from .report.explain import explain
from .report.history import report_history
from .report.options import options_json
from .report.plans import dump_plan, list_plans, show_plan
from .report.state_dump import dump_state
from .report.status import report_status
from .runtime.formatting import parse_size
from .settings import Settings
from .snapshot.model import pool_of

#: In front of a name where plans, pools and OSDs could be taken for one another.
_PLAN, _POOL = "plan/", "pool/"


#: Of an id that stands for a pool; Python refuses to read thousands of digits.
_MOST_DIGITS = 19


class Commands:
    """The handlers, mixed into the module, whose parts they use."""

    balancer: Balancer
    clock: Callable[[], float]
    plan_service: PlanService
    gateway: Gateway
    log: Any
    next_round_at: Optional[float]
    options: RemovedOptions
    settings: Callable[[], Settings]
    plan_store: PlanStore
    wakeup: threading.Event

    @read_command("equilibrium status")
    def _cmd_status(self, format: str = "plain") -> CommandResult:
        """Show what equilibrium is doing and why"""
        return self._answer(format, self._status)

    @read_command("equilibrium eval")
    def _cmd_eval(self, option: Optional[str] = None, format: str = "plain") -> CommandResult:
        """Evaluate the present placement, a plan or a pool (by name or id; plan/NAME and pool/NAME
        where both have a name)"""
        return self._answer(format, lambda: self._evaluate(option))

    @write_command("equilibrium optimize")
    def _cmd_optimize(self, plan: str, pools: Optional[List[str]] = None,
                      format: str = "plain", max_moves: Optional[int] = None,
                      max_bytes: Optional[str] = None, device_class: Optional[str] = None,
                      aim: Optional[str] = None) -> CommandResult:
        """Start making a plan, which is kept; nothing is moved. Pools are given by name or id.
        Options: --max-moves N, --max-bytes SIZE (such as 500G), --device-class CLASS,
        --aim space|even|least-motion"""
        return self._answer(format, lambda: self._optimize(
            plan, pools or [], max_moves, max_bytes, device_class, aim))

    @read_command("equilibrium show")
    def _cmd_show(self, plan: str, format: str = "plain") -> CommandResult:
        """Show a plan as commands that could be run by hand"""
        return self._answer(format, lambda: show_plan(plan, self._plan(plan)))

    @read_command("equilibrium dump")
    def _cmd_dump(self, plan: str, format: str = "plain") -> CommandResult:
        """Show everything that a plan holds"""
        return self._answer(format, lambda: dump_plan(plan, self._plan(plan)))

    @read_command("equilibrium ls")
    def _cmd_ls(self, format: str = "plain") -> CommandResult:
        """List the plans that are kept or in the making"""
        return self._answer(format, lambda: list_plans(
            self.plan_store.heads().values(), self.plan_service.plans_in_progress(), self._executing()))

    @write_command("equilibrium rm")
    def _cmd_rm(self, plan: str, format: str = "plain") -> CommandResult:
        """Forget a plan, or cancel one that is being made"""
        return self._answer(format, lambda: self._remove([plan]))

    @write_command("equilibrium reset")
    def _cmd_reset(self, format: str = "plain") -> CommandResult:
        """Forget all plans, those being made too, but for one that is being executed"""
        return self._answer(format, self._reset)

    @write_command("equilibrium execute")
    def _cmd_execute(self, plan: str, format: str = "plain") -> CommandResult:
        """Hand a plan over to be carried out, in batches within the misplaced limit"""
        return self._answer(format, lambda: self._execute(plan))

    @write_command("equilibrium on")
    def _cmd_on(self, format: str = "plain") -> CommandResult:
        """Balance automatically; switches the built-in balancer off"""
        return self._answer(format, self._switch_on)

    @write_command("equilibrium off")
    def _cmd_off(self, format: str = "plain") -> CommandResult:
        """Stop sending moves; what is moving already goes on"""
        return self._answer(format, self._switch_off)

    @read_command("equilibrium pool ls")
    def _cmd_pool_ls(self, format: str = "plain") -> CommandResult:
        """List the pools that balancing is limited to"""
        return self._answer(format, self._pool_list)

    @write_command("equilibrium pool add")
    def _cmd_pool_add(self, pools: List[str], format: str = "plain") -> CommandResult:
        """Limit balancing to these pools, beside those named before; by name or id"""
        return self._answer(format, lambda: self._add_pools(pools))

    @write_command("equilibrium pool rm")
    def _cmd_pool_rm(self, pools: List[str], format: str = "plain") -> CommandResult:
        """Take pools off the list that balancing is limited to; by name or id. Without any on the
        list all pools are balanced"""
        return self._answer(format, lambda: self._remove_pools(pools))

    @read_command("equilibrium explain")
    def _cmd_explain(self, what: Optional[str] = None, format: str = "plain") -> CommandResult:
        """Tell why the cluster, an OSD (3 or osd.3), a pool (its name, or pool/ID) or a PG (2.1f)
        is not better off"""
        return self._answer(format, lambda: self._explain(what))

    @read_command("equilibrium history")
    def _cmd_history(self, format: str = "plain") -> CommandResult:
        """Show what has been moved, when and why, and how much better it made the cluster"""
        return self._answer(format, lambda: report_history(
            self.balancer.history, self.balancer.episode, self.clock()))

    @read_command("equilibrium dump-state")
    def _cmd_dump_state(self, anonymous: bool = False, format: str = "plain") -> CommandResult:
        """Write the cluster's state as JSON, for bug reports and offline runs; with --anonymous
        without names and addresses"""
        return self._answer(format, lambda: self._dump_state(anonymous))

    def _options(self) -> Dict[str, Any]:
        view = self.balancer.view
        return options_json(self.options.value, view.snapshot if view is not None else None)

    # -- what the commands do ------------------------------------------------------------------

    def _answer(self, output_format: str, command: Callable[[], CommandAnswer]) -> CommandResult:
        def ready() -> CommandAnswer:
            try:
                return command()
            except NotReady as not_ready:
                raise CommandError(errno.EAGAIN, f"{not_ready}; try again")
        return run_command(ready, output_format,
                         lambda: self.log.exception("a command failed"), errno.EINVAL)

    def _evaluate(self, option: Optional[str]) -> CommandAnswer:
        if not option:
            view, age = self._view()
            return evaluate_cluster(view.usage, view.bounds, view.snapshot.epoch, age,
                                    view.classes_now, view.snapshot,
                                    age > self.settings().sleep_interval)
        plan = option[len(_PLAN):] if option.startswith(_PLAN) else option
        if plan in self.plan_store.heads() or plan in self.plan_service.plans_in_progress():
            answer = self._evaluate_plan(plan)
            if plan == option and self._find_pool(option) is not None:
                return answer._replace(note="'%s' is a plan and a pool; 'ceph equilibrium eval"
                                       " pool/%s' shows the pool" % (option, option))
            return answer
        if self.plan_service.last_failure(plan):
            self._plan(plan)
        pool = self._find_pool(option)
        if pool is not None:
            view, age = self._view()
            if pool in view.usage.pools:
                return evaluate_pool(pool, view.usage, view.snapshot.epoch, age)
        raise CommandError(errno.ENOENT, f"'{option}' is neither a plan nor a pool")

    def _find_pool(self, text: str) -> Optional[str]:
        """Name of the pool that is called `text`, or `pool/` and its name or id, or by its id."""
        known = {pool_id: name for name, pool_id in self.gateway.pool_ids_by_name().items()}
        for wanted in (text, text[len(_POOL):] if text.startswith(_POOL) else text):
            if wanted in known.values():
                return wanted
            if _is_number(wanted) and int(wanted) in known:
                return known[int(wanted)]
        return None

    def _evaluate_plan(self, name: str) -> CommandAnswer:
        plan = self._plan(name)
        settings = self.settings()
        present = PlanOptions(pool_ids=settings.pool_ids, device_classes=settings.device_classes,
                              fill_limit=settings.fill_limit,
                              respect_weights=settings.respect_weights,
                              max_upmap_items=settings.max_upmap_items)
        return evaluate_plan(name, plan,
                             self.plan_service.compare(name, present, settings.max_plan_seconds),
                             self.gateway.epoch())

    def _explain(self, what: Optional[str]) -> CommandAnswer:
        view, age = self._view()
        answer = explain(what, view, self.balancer, self.settings(), age)
        pool = self._find_pool(what) if what else None
        if answer is None and pool is not None:
            answer = explain(pool, view, self.balancer, self.settings(), age)
        if answer is None:
            raise CommandError(errno.ENOENT, f"'{what}' is no OSD, no pool and no PG")
        return answer

    def _view(self) -> Tuple[ClusterView, float]:
        """What was last seen of the cluster, with figures of now, and its age in seconds."""
        self._look_where_old()
        view, _ = self._seen()
        if view is None:
            raise CommandError(errno.EAGAIN, "the cluster has not been looked at yet (%s); a look has"
                          " been started, try again" % self.balancer.reason)
        return view, self._age(view)

    def _seen(self) -> Tuple[Optional[ClusterView], Optional[str]]:
        """What was last seen, with figures of now, which cost milliseconds; and what has come since
        that speaks against a rest."""
        view = self.balancer.view
        if view is None:
            return None, None
        try:
            summary = self.gateway.summary()
        except NotReady:   # the mgr knows nothing newer
            return view, None
        return (with_figures_of_now(view, summary, self.balancer.pending),
                self.balancer.news(summary))

    def _look_where_old(self) -> bool:
        """Starts a look where the last one is too old, or there was none."""
        view = self.balancer.view
        is_old = view is None or self._age(view) > self.settings().sleep_interval
        if is_old:
            self.balancer.request_observation()
        return is_old

    def _dump_state(self, anonymous: bool) -> CommandAnswer:
        """Of the last look, which has its time in it."""
        reading = self.gateway.last_reading()
        self._look_where_old()
        return dump_state(reading, anonymous)

    def _age(self, view: ClusterView) -> float:
        return max(0.0, self.clock() - view.snapshot.taken_at)

    def _status(self) -> CommandAnswer:
        look_started = self._look_where_old()
        view, news = self._seen()
        return report_status(self.balancer, self.plan_service, self.settings().active, self.clock(),
                             self.next_round_at, self._options(), view, look_started, news)

    def _optimize(self, plan: str, pools: List[str], max_moves: Optional[int],
                  max_bytes: Optional[str], device_class: Optional[str],
                  aim: Optional[str]) -> CommandAnswer:
        if not valid_plan_name(plan):
            raise CommandError(errno.EINVAL, "'%s' is no name for a plan: use up to 64 letters, digits,"
                          " '_', '.' and '-'" % plan)
        self._refuse_too_many(plan)
        if plan == self._executing():
            raise CommandError(errno.EBUSY, f"plan '{plan}' is being executed")
        settings = self.settings()
        wanted_pools = self._pool_ids(pools) if pools else settings.pool_ids
        options = PlanOptions(
            pool_ids=wanted_pools,
            device_classes=self._class_option(device_class) or settings.device_classes,
            max_moves=_positive(max_moves, "--max-moves"), max_bytes=_size_option(max_bytes),
            fill_limit=settings.fill_limit, aim=_aim_option(aim, settings.aim),
            respect_weights=settings.respect_weights,
            max_upmap_items=settings.max_upmap_items)
        if not self.plan_service.submit_named(plan, options, settings.max_plan_seconds):
            raise CommandError(errno.EAGAIN, self._progress(plan))
        return CommandAnswer({"plan": plan, "state": "planning", "aim": options.aim},
                      f"{plan}: planning")

    def _refuse_too_many(self, plan: str) -> None:
        """Plans in the making count as kept: they will be."""
        in_progress = [name for name in self.plan_service.plans_in_progress() if name]
        if plan in in_progress:
            raise CommandError(errno.EAGAIN, self._progress(plan))
        kept = set(self.plan_store.heads()).union(in_progress)
        if plan not in kept and len(kept) >= MAX_PLANS:
            raise CommandError(errno.ENOSPC, "%d plans are kept or being made already; remove some with"
                          " 'ceph equilibrium rm'" % len(kept))
        if len(in_progress) >= MAX_PLANS_IN_PROGRESS:
            raise CommandError(errno.EAGAIN, "%d plans are being made or wait for it; try again when one"
                          " is there, or cancel one with 'ceph equilibrium rm'" % len(in_progress))

    def _plan(self, name: str) -> Plan:
        """A kept plan; refuses where it is being made, unknown or damaged."""
        if name in self.plan_service.plans_in_progress():
            raise CommandError(errno.EAGAIN, self._progress(name))
        failure = self.plan_service.last_failure(name)
        try:
            return self.plan_store.get(name)
        except KeyError:
            if failure:
                raise CommandError(errno.ENOENT, f"plan '{name}' could not be made ({failure})")
            raise CommandError(errno.ENOENT, f"no plan is named '{name}'")
        except BadPlan as bad:
            raise CommandError(errno.EIO, f"{bad}; remove it with 'ceph equilibrium rm {name}'")

    def _progress(self, name: str) -> str:
        progress = self.plan_service.plans_in_progress().get(name)
        if progress is None:
            return f"plan '{name}' is nearly made; try again"
        if not progress.running:
            return f"plan '{name}' waits for another one that is being made; try again"
        return "plan '%s' is being made: %d moves so far, %d s; try again" % (
            name, progress.moves, self.clock() - progress.started_at)

    def _executing(self) -> Optional[str]:
        execution = self.balancer.execution
        return execution.name if execution is not None and execution.name else None

    def _remove(self, names: List[str]) -> CommandAnswer:
        for name in names:
            if name == self._executing():
                raise CommandError(errno.EBUSY, "plan '%s' is being executed; 'ceph equilibrium off'"
                              " stops it" % name)
            cancelled = self.plan_service.cancel(name)
            try:
                self.plan_store.remove(name)
            except KeyError:
                if not cancelled:
                    raise CommandError(errno.ENOENT, f"no plan is named '{name}'")
            self.plan_service.forget(name)
        self.wakeup.set()
        return CommandAnswer({"removed": names}, "")

    def _reset(self) -> CommandAnswer:
        names = set(self.plan_store.heads()).union(self.plan_service.plans_in_progress())
        return self._remove(sorted(names - {self._executing(), ""}))

    def _execute(self, name: str) -> CommandAnswer:
        plan = self._plan(name)
        if self.gateway.builtin_balancer_active():
            raise CommandError(errno.EPERM, "the built-in balancer is active; run '%s' first"
                          % CURE_BUILTIN)
        self._refuse_old_clients()
        self._refuse_lost_pools(name, plan)
        if not plan.changes:
            return CommandAnswer({"plan": name, "state": "through", "moves": 0},
                          f"{name}: nothing to move")
        if not self.balancer.execute(name, plan):
            raise CommandError(errno.EBUSY, "plan '%s' is being executed; 'ceph equilibrium off' stops"
                          " it" % self._executing())
        return CommandAnswer({"plan": name, "state": "executing", "moves": len(plan.moves)},
                      f"{name}: executing {len(plan.moves)} moves")

    def _switch_on(self) -> CommandAnswer:
        self._refuse_old_clients()
        builtin_was_active = self.gateway.builtin_balancer_active()
        if builtin_was_active:
            self.gateway.switch_off_builtin_balancer()
        self.gateway.set_option("active", "true")
        self.balancer.switch_on(builtin_was_active)
        said = ["automatic balancing is on"]
        if builtin_was_active:
            said.append("the built-in balancer was switched off")
        return CommandAnswer({"active": True, "builtin_balancer_switched_off": builtin_was_active},
                      "; ".join(said))

    def _switch_off(self) -> CommandAnswer:
        self.gateway.set_option("active", "false")
        stopped = self.balancer.switch_off()
        said = ["automatic balancing is off"]
        if stopped:
            said.append(f"the execution of plan '{stopped}' was stopped")
        if not self.gateway.builtin_balancer_active() and self.gateway.builtin_balancer_runs():
            said.append("the built-in balancer stays off ('ceph balancer on' brings it back)")
        return CommandAnswer({"active": False, "stopped_plan": stopped}, "; ".join(said))

    def _refuse_old_clients(self) -> None:
        refused = upmap_refused(self.gateway.min_compat_client())
        if refused:
            raise CommandError(errno.EPERM, refused)

    def _refuse_lost_pools(self, name: str, plan: Plan) -> None:
        known = set(self.gateway.pool_ids_by_name().values())
        gone = {pool_of(change.pgid) for change in plan.changes} - known
        if gone:
            raise CommandError(errno.ENOENT, "plan '%s' moves PGs of pool %s, which is gone; make a new"
                          " plan" % (name, ", ".join(str(pool) for pool in sorted(gone))))

    def _pool_list(self) -> CommandAnswer:
        names = {pool_id: name for name, pool_id in self.gateway.pool_ids_by_name().items()}
        chosen = sorted(self.settings().pool_ids or ())
        pools = [names.get(pool_id, f"{pool_id} (gone)") for pool_id in chosen]
        return CommandAnswer({"pools": pools}, "\n".join(pools))

    def _add_pools(self, pools: List[str]) -> CommandAnswer:
        chosen = self.settings().pool_ids or frozenset()
        return self._limit_pools(chosen | self._pool_ids(pools))

    def _remove_pools(self, pools: List[str]) -> CommandAnswer:
        """Takes ids of pools that are gone, too. Refuses to leave an empty list, which would mean
        all pools: a command that takes a pool out never has more of them balanced."""
        if self.settings().pool_ids is None:
            self._pool_ids(pools)   # for what is no pool at all
            raise CommandError(errno.EINVAL, "pool_ids is empty, and all pools are balanced; run 'ceph"
                          " equilibrium pool add' with those that are to be")
        chosen = self.settings().pool_ids or frozenset()
        known = self.gateway.pool_ids_by_name()
        gone = {str(pool_id) for pool_id in chosen - set(known.values())} - set(known)
        left = chosen - frozenset(int(pool) if pool in gone else self._pool_id(pool, known)
                                  for pool in pools)
        if not left:
            raise CommandError(errno.EPERM, "no pool would be left in pool_ids, and an empty list means"
                          " all pools; 'ceph config rm mgr mgr/equilibrium/pool_ids' has all of"
                          " them balanced, 'ceph equilibrium pool add' another one instead")
        return self._limit_pools(left)

    def _limit_pools(self, chosen: FrozenSet[int]) -> CommandAnswer:
        self.gateway.set_option("pool_ids", ",".join(str(pool_id) for pool_id in sorted(chosen)))
        return self._pool_list()

    def _pool_ids(self, pools: List[str]) -> FrozenSet[int]:
        """Of pools given by their names or ids; a name goes before an id."""
        known = self.gateway.pool_ids_by_name()
        return frozenset(self._pool_id(pool, known) for pool in pools)

    @staticmethod
    def _pool_id(pool: str, known: Dict[str, int]) -> int:
        if pool in known:
            return known[pool]
        if _is_number(pool) and int(pool) in known.values():
            return int(pool)
        raise CommandError(errno.ENOENT, f"no pool has the name or id '{pool}'")

    def _class_option(self, device_class: Optional[str]) -> Optional[FrozenSet[str]]:
        if device_class is None:
            return None
        known = self.gateway.device_classes()
        if device_class not in known:
            raise CommandError(errno.ENOENT, "no OSD has the device class '%s'; there are: %s"
                          % (device_class, ", ".join(sorted(known))))
        return frozenset((device_class,))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _positive(number: Optional[int], what: str) -> Optional[int]:
    if number is not None and number < 1:
        raise CommandError(errno.EINVAL, f"{what} must be at least 1")
    return number


def _aim_option(text: Optional[str], default: str) -> str:
    if text is None:
        return default
    if text not in AIMS:
        raise CommandError(errno.EINVAL, "--aim '%s' is not known; use one of %s"
                      % (text, ", ".join(AIMS)))
    return text


def _size_option(text: Optional[str]) -> Optional[int]:
    if text is None:
        return None
    size = parse_size(text)
    if not size:
        raise CommandError(errno.EINVAL, f"--max-bytes '{text}' is no size; write it like 500G or 1T")
    return size
