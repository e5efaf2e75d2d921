"""The parts of the module that commands work with, and what several commands ask of them."""
from __future__ import annotations

import errno
from contextlib import suppress
from typing import Any, Callable, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..control.balancer import Balancer
from ..control.status import BalancerStatus
from ..execution.guards import upmap_refused
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..observation.cluster_view import ClusterView, with_figures_of_now
from ..plan.model import BadPlan, Plan, resting_on, topology_of
from ..plan.store import MAX_PLANS, PlanStore
from ..plan_service.plan_service import PlanService
from ..report.answer import CommandError
from ..report.cluster.evaluation import Look
from ..settings import OptionValues, Settings


#: A look that is older than this is not acted on: seconds. The longer time is for a cluster in
#: which nothing moved then, with the same osdmap since.
_OLDEST_SECONDS, OLDEST_AT_REST_SECONDS = 60.0, 900.0
#: Seconds between two looks at a cluster at rest for whoever reads how it is: what OSDs use and
#: what is misplaced is of now in any case, and the loop itself looks where something has changed.
_POLLED_SECONDS = 1200.0
_POOL_PREFIX = "pool/"


class ModuleParts(NamedTuple):
    """One of each; all may be used from any thread. What is no property of one of them alone
    raises CommandError where it is not known or must not be."""

    balancer: Balancer
    gateway: Gateway
    plan_service: PlanService
    plan_store: PlanStore
    options: OptionValues
    settings: Callable[[], Settings]
    clock: Callable[[], float]                       # seconds since the epoch
    last_round_at: Callable[[], Optional[float]]     # on that clock, of those that did not fail
    wake: Callable[[], None]                         # ends the wait of the serve loop
    health: Callable[[], Optional[Mapping[str, Any]]]   # our checks by code; None before they are

    # -- the serve loop's last view, with those figures of now that cost milliseconds to read

    def summary(self) -> Optional[ClusterSummary]:
        """The cluster in few figures; None where the mgr knows nothing newer than the last view."""
        with suppress(NotReady):
            return self.gateway.summary()
        return None

    def newest(self, with_map: bool = True) -> Tuple[Optional[ClusterView], BalancerStatus]:
        """(the view, None before the first one; the status), both with what is known now.

        `with_map`: flags and full ratios too, for which each new osdmap is dumped once.
        """
        status, summary = self.balancer.status, self.summary()
        if summary is None:
            return status.view, status._replace(
                drains=status.drains.as_of(self.gateway.epoch()))
        view = None if status.view is None else with_figures_of_now(
            status.view, summary, self.gateway.map_fields() if with_map else {})
        return view, status.as_of(summary)

    def request_if_old(self) -> bool:
        """Has the serve loop observe the cluster anew where there is no view, or where its last one
        is older than a round while data moves, or where other OSDs are up or full now; at rest
        where the osdmap is another one, or after _POLLED_SECONDS. Returns whether it is old."""
        (view, _), seen, at_rest, oldest = self.newest(), self.balancer.status.view, False, 0.0
        if view is not None and seen is not None:
            is_outage_other = view.troubles != seen.troubles
            at_rest = not (view.movements or view.misplaced_ratio or is_outage_other)
            oldest = (self.settings().sleep_interval if not at_rest else _POLLED_SECONDS
                      if view.snapshot.epoch == self.gateway.epoch() else 0.0)
        is_old = view is None or self.age(view) > oldest
        if is_old:
            self.balancer.request_observation(at_rest)
        return is_old

    def look(self, plan: Optional[Plan] = None) -> Look:
        """What figures rest on, of now and with a kept plan, or with what is being executed."""
        is_started, execution = self.request_if_old(), self.balancer.execution
        view, age = self.required(plan)
        return Look(view, age, self.gateway.pool_space(), self.settings(), is_started, plan.changes
                    if plan is not None else None if execution is None else execution.wanted)

    def required(self, plan: Optional[Plan] = None) -> Tuple[ClusterView, float]:
        """(the view, its age in seconds). Raises CommandError before the first one, and before one
        of the placement that `plan` was made for."""
        self.request_if_old()
        view, _ = self.newest()
        if view is None:
            raise CommandError(
                errno.EAGAIN, "the cluster has not been looked at yet"
                f" ({self.balancer.status.reason}); a look has been started, try again")
        if view.has_drifted:
            self.balancer.request_observation()
        if plan is not None and plan.epoch > view.snapshot.epoch:
            raise self.outdated("the plan is newer than the last look at the cluster")
        return view, self.age(view)

    def to_act_on(self, begin: str = "", oldest: float = _OLDEST_SECONDS) -> ClusterView:
        """The newest view, for a command that decides by it what is sent. Raises CommandError,
        which begins with `begin`, where it is older than `oldest` seconds, or does not show the
        last batch yet."""
        view, age = self.required()
        epoch = view.snapshot.epoch
        at_rest = not view.snapshot.in_flight() and self.gateway.epoch() == epoch
        if epoch < self.balancer.changes().epoch:
            raise self.outdated(f"{begin}the last look at the cluster is older than what was sent"
                                " last")
        if age > (OLDEST_AT_REST_SECONDS if at_rest else oldest):
            raise self.outdated(f"{begin}the last look at the cluster is {int(age)} s old")
        return view

    def outdated(self, reason: str) -> CommandError:
        """What is said where the last view must not be acted on; a look is started."""
        self.balancer.request_observation()
        return CommandError(errno.EAGAIN, f"{reason}; a look has been started, try again in some"
                            " seconds")

    def age(self, view: ClusterView) -> float:
        """Seconds since the view's snapshot was taken."""
        return max(0.0, self.clock() - view.snapshot.taken_at)

    # -- pools as operators name them

    def find_pool(self, text: str) -> Optional[str]:
        """Name of the pool that `text` names by name or id, with or without `pool/` in front; a
        name goes before an id. None for no pool."""
        ids = self.gateway.pool_ids_by_name()
        names = {str(pool): name for name, pool in ids.items()}
        for wanted in (text, text[len(_POOL_PREFIX):] if text.startswith(_POOL_PREFIX) else text):
            if wanted in ids or wanted in names:
                return wanted if wanted in ids else names[wanted]
        return None

    def pool_ids(self, texts: Sequence[str]) -> FrozenSet[int]:
        """Ids of pools, each as `find_pool` finds it. Raises CommandError for one that is none."""
        ids, found = self.gateway.pool_ids_by_name(), set()
        for text in texts:
            name = self.find_pool(text)
            if name not in ids:
                raise CommandError(errno.ENOENT, f"no pool has the name or id '{text}'")
            found.add(ids[name])
        return frozenset(found)

    # -- kept plans

    def plan(self, name: str) -> Plan:
        """A kept plan. Raises CommandError where it is being made, unknown or damaged."""
        if name in self.plan_service.plans_in_progress():
            raise CommandError(errno.EAGAIN, self.progress(name))
        failure = self.plan_service.last_failure(name)
        try:
            return self.plan_store.get(name)
        except KeyError:
            raise CommandError(
                errno.ENOENT, f"plan '{name}' could not be made ({failure})" if failure
                else f"no plan is named '{name}'") from None
        except BadPlan as bad:
            raise CommandError(
                errno.EIO, f"{bad}; remove it with 'ceph equilibrium rm {name}'") from None

    def progress(self, name: str) -> str:
        """How far a plan is that is being made."""
        progress = self.plan_service.plans_in_progress().get(name)
        moves = progress.moves if progress is not None else 0
        return f"plan '{name}' is being made: {moves} moves so far; try again"

    def outdated_reason(self, name: str, summary: Optional[ClusterSummary]) -> Optional[str]:
        """What has changed of the cluster so that a kept plan, or a part of it, is void; None where
        nothing has, or that is not known."""
        head = self.plan_store.heads().get(name)
        if head is None or summary is None:
            return None
        if head.topology != topology_of(summary.crush_version, summary.osds):
            return "the CRUSH map or the weight of an OSD has changed"
        for name, pgs in head.pool_pgs.items():
            pool = summary.pools.get(int(name))
            if pool is None:
                return f"pool {name} is gone"
            if pool.pg_num != pgs:
                return f"pool {name} has {pool.pg_num} PGs instead of {pgs}"
        return None

    def busy(self, name: Optional[str]) -> CommandError:
        """What is said where another plan is being executed."""
        return CommandError(errno.EBUSY, f"plan '{name}' is being executed; 'ceph equilibrium rm"
                            f" {name}' stops it")

    def next_name(self, kind: str) -> str:
        """The next free name of a kind of plans, such as `undo-1`. Raises CommandError where too
        many plans are kept."""
        taken = set(self.plan_store.heads()).union(self.plan_service.plans_in_progress())
        if len(taken) >= MAX_PLANS:
            raise CommandError(errno.ENOSPC, f"{len(taken)} plans are kept already; remove some"
                               " with 'ceph equilibrium rm'")
        numbers = [int(number) for kept, _, number in (name.rpartition("-") for name in taken)
                   if kept == kind and number.isdigit()]
        return f"{kind}-{max(numbers, default=0) + 1}"

    def keep_and_execute(self, kind: str, plan: Plan) -> str:
        """Keeps a plan under the next free name of its kind, begins to execute it, and returns the
        name. Waits for the key-value store, as `execute` does. Raises CommandError where too many
        plans are kept, and where another plan has just begun to be executed; then this one is not
        kept."""
        name = self.next_name(kind)
        self.plan_store.put(name, plan, self.clock())
        if not self.balancer.execute(name, plan):
            self.plan_store.remove(name)
            raise CommandError(errno.EBUSY, "another plan has just begun to be executed")
        return name

    def refuse_old_clients(self) -> None:
        """Raises CommandError where the cluster admits clients that do not know upmaps."""
        refused = upmap_refused(self.gateway.min_compat_client())
        if refused:
            raise CommandError(errno.EPERM, refused)


def with_figures(plan: Plan, view: ClusterView) -> Plan:
    """The plan with the usage that the view has and the plan leads to, and what it rests on."""
    return resting_on(view.snapshot, plan)._replace(
        before=view.usage, after=view.planned(plan.changes).usage(), bounds=view.bounds)
