"""The parts of the module that commands use, and questions that several commands ask of them."""
from __future__ import annotations

from errno import EAGAIN, EBUSY, EIO, ENOENT, ENOSPC, EPERM
from contextlib import suppress
from typing import (
    Any, Callable, Dict, FrozenSet, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

from ..control.balancer import Balancer
from ..control.status import BalancerStatus
from ..execution.guards import upmap_refused
from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..observation.cluster_view import ClusterView, with_figures_of_now
from ..plan.model import BadPlan, PgChange, Plan, resting_on, topology_of
from ..plan.store import MAX_PLANS, PlanStore
from ..plan_service.plan_service import PlanService
from ..report.answer import CommandError
from ..report.cluster.evaluation import Look
from ..settings import OptionValues, Settings


#: Nothing is sent because of a view that is older than this: seconds. The longer time is for
#: `cancel`, and for a cluster in which nothing moved then, and whose osdmap is still the same.
_OLDEST_SECONDS = 60.0
OLDEST_AT_REST_SECONDS = 900.0
#: Seconds between two refreshes of an idle cluster that commands cause. Used bytes and
#: misplaced copies are current in any case, and the loop itself refreshes after a change.
_POLLED_SECONDS = 1200.0
_POOL_PREFIX = "pool/"


class ModuleParts(NamedTuple):
    """One of each part. All may be used from any thread.

    Methods raise CommandError where they say so: the answer is not known, or not allowed.
    """

    balancer: Balancer
    gateway: Gateway
    plan_service: PlanService
    plan_store: PlanStore
    options: OptionValues
    settings: Callable[[], Settings]
    clock: Callable[[], float]                       # seconds since the epoch
    last_round_at: Callable[[], Optional[float]]     # on that clock; failed rounds do not count
    wake: Callable[[], None]                         # ends the wait of the serve loop
    health: Callable[[], Optional[Mapping[str, Any]]]   # our checks by code; None before the first

    # -- the serve loop's last view, with current figures that cost milliseconds to read

    def summary(self) -> Optional[ClusterSummary]:
        """Returns a few current figures of the cluster; None if the mgr does not know them."""
        with suppress(NotReady):
            return self.gateway.summary()
        return None

    def newest(self, with_map: bool = True) -> Tuple[Optional[ClusterView], BalancerStatus]:
        """Returns the view, None before the first one, and the status, both with current figures.

        `with_map`: update flags and full ratios too, which needs a dump of each new osdmap.
        """
        status = self.balancer.status
        summary = self.summary()
        if summary is None:
            drains = status.drains.as_of(self.gateway.epoch())
            return status.view, status._replace(drains=drains)
        view = status.view
        if view is not None:
            map_fields = self.gateway.map_fields() if with_map else {}
            view = with_figures_of_now(view, summary, map_fields)
        return view, status.as_of(summary)

    def refreshed(self) -> Tuple[Optional[ClusterView], BalancerStatus, bool]:
        """Returns the newest view and status, and True if it has requested a refresh, because the
        view is old.

        It is old after `sleep_interval` if data moves, or if other OSDs are down or full now. In an
        idle cluster it is old with the next osdmap, or after _POLLED_SECONDS.
        """
        view, status = self.newest()
        seen = self.balancer.status.view
        at_rest = False
        is_old = True
        if view is not None and seen is not None:
            is_outage_other = view.troubles != seen.troubles
            at_rest = not (view.movements or view.misplaced_ratio or is_outage_other)
            is_old = self.age(view) > self._oldest(view, at_rest)
        if is_old:
            self.balancer.request_observation(at_rest)
        return view, status, is_old

    def _oldest(self, view: ClusterView, at_rest: bool) -> float:
        """Returns the seconds after which a view is old."""
        if not at_rest:
            return self.settings().sleep_interval
        if view.snapshot.epoch == self.gateway.epoch():
            return _POLLED_SECONDS
        return 0.0

    def look(self, plan: Optional[Plan] = None) -> Look:
        """Returns the data for an evaluation, with the changes of a kept plan; without a plan, with
        those that the execution still wants, if one is under way."""
        execution = self.balancer.execution
        wanted: Optional[Sequence[PgChange]] = None
        view, age, _, is_started = self.required(plan)
        if plan is not None:
            wanted = plan.changes
        elif execution is not None:
            wanted = execution.wanted
        return Look(view, age, self.gateway.pool_space(), self.settings(), is_started, wanted)

    def required(self, plan: Optional[Plan] = None
                 ) -> Tuple[ClusterView, float, BalancerStatus, bool]:
        """Returns the view, its age in seconds, the status, and True if a refresh was requested.
        Raises CommandError if there is no view yet, and if it is older than the placement that
        `plan` was made for."""
        view, status, is_started = self.refreshed()
        if view is None:
            raise CommandError(
                EAGAIN, "the cluster has not been looked at yet"
                f" ({self.balancer.status.reason}); a look has been started, try again")
        if view.has_drifted:
            self.balancer.request_observation()
        if plan is not None and plan.epoch > view.snapshot.epoch:
            raise self.outdated("the plan is newer than the last look at the cluster")
        return view, self.age(view), status, is_started

    def to_act_on(self, begin: str = "", oldest: float = _OLDEST_SECONDS) -> ClusterView:
        """Returns the newest view, for a command that decides by it which changes are sent.

        Raises CommandError, which begins with `begin`, if the view is older than `oldest` seconds,
        or does not show the last batch yet.
        """
        view, age, _, _ = self.required()
        epoch = view.snapshot.epoch
        if epoch < self.balancer.changes().epoch:
            raise self.outdated(f"{begin}the last look at the cluster is older than what was sent"
                                " last")
        if not view.snapshot.in_flight() and self.gateway.epoch() == epoch:
            oldest = OLDEST_AT_REST_SECONDS
        if age > oldest:
            raise self.outdated(f"{begin}the last look at the cluster is {int(age)} s old")
        return view

    def outdated(self, reason: str) -> CommandError:
        """Requests a refresh and returns the error for a view that is too old."""
        self.balancer.request_observation()
        return CommandError(EAGAIN, f"{reason}; a look has been started, try again in some"
                            " seconds")

    def age(self, view: ClusterView) -> float:
        """Returns the seconds since the view's snapshot was taken."""
        return self.since(view.snapshot.taken_at)

    def since(self, moment: float) -> float:
        """Returns the seconds since a moment."""
        return max(0.0, self.clock() - moment)

    # -- pools as operators name them

    def pool_names(self) -> Dict[int, str]:
        """Returns pool id → name."""
        return {pool: name for name, pool in self.gateway.pool_ids_by_name().items()}

    def find_pool(self, text: str) -> Optional[str]:
        """Returns the name of the pool that `text` names by name or id, with or without `pool/` in
        front; None for no pool. A name goes before an id."""
        ids = self.gateway.pool_ids_by_name()
        known = {str(pool): name for name, pool in ids.items()}   # what a pool may be called
        known.update({name: name for name in ids})
        if text not in known:
            text = text.removeprefix(_POOL_PREFIX)
        return known.get(text)

    def pool_ids(self, texts: Sequence[str]) -> FrozenSet[int]:
        """Returns the ids of pools, found as by `find_pool`. Raises CommandError for no pool."""
        ids = self.gateway.pool_ids_by_name()
        found = set()
        for text in texts:
            name = self.find_pool(text)
            if name not in ids:
                raise CommandError(ENOENT, f"no pool has the name or id '{text}'")
            found.add(ids[name])
        return frozenset(found)

    # -- kept plans

    def plan(self, name: str) -> Plan:
        """Returns a kept plan. Raises CommandError if it is being made, unknown or damaged."""
        if name in self.plan_service.plans_in_progress():
            raise self.being_made(name)
        failure = self.plan_service.last_failure(name)
        unknown = f"no plan is named '{name}'"
        if failure:
            unknown = f"plan '{name}' could not be made ({failure})"
        try:
            return self.plan_store.get(name)
        except KeyError:
            raise CommandError(ENOENT, unknown) from None
        except BadPlan as bad:
            raise CommandError(
                EIO, f"{bad}; remove it with 'ceph equilibrium rm {name}'") from None

    def being_made(self, name: str) -> CommandError:
        """Returns the error for a plan that is being made."""
        progress = self.plan_service.plans_in_progress().get(name)
        moves = 0
        if progress is not None:   # else it has just been made
            moves = progress.moves
        return CommandError(
            EAGAIN, f"plan '{name}' is being made: {moves} moves so far; try again")

    def outdated_reason(self, name: str, summary: Optional[ClusterSummary]) -> Optional[str]:
        """Returns which change of the cluster makes all or a part of a kept plan void; None if
        there is none, or if that is not known."""
        head = self.plan_store.heads().get(name)
        if head is None or summary is None:
            return None
        if head.topology != topology_of(summary.crush_version, summary.osds):
            return "the CRUSH map or the weight of an OSD has changed"
        for pool_id, pgs in head.pool_pgs.items():
            pool = summary.pools.get(int(pool_id))
            if pool is None:
                return f"pool {pool_id} is gone"
            if pool.pg_num != pgs:
                return f"pool {pool_id} has {pool.pg_num} PGs instead of {pgs}"
        return None

    def busy(self, name: Optional[str]) -> CommandError:
        """Returns the error for a command that another plan's execution excludes."""
        return CommandError(EBUSY, f"plan '{name}' is being executed; 'ceph equilibrium rm"
                            f" {name}' stops it")

    def plan_names(self) -> Set[str]:
        """Returns the names of plans that are kept or being made."""
        names = set(self.plan_store.heads()).union(self.plan_service.plans_in_progress())
        return names - {""}   # the automatic plan

    def refuse_more_plans(self) -> None:
        """Raises CommandError if no other plan can be kept."""
        count = len(self.plan_names())
        if count >= MAX_PLANS:
            raise CommandError(ENOSPC, f"{count} plans are kept or being made already; remove some"
                               " with 'ceph equilibrium rm'")

    def next_name(self, kind: str) -> str:
        """Returns the next free name of a kind of plans, such as `undo-1`. Raises CommandError if
        too many plans are kept."""
        self.refuse_more_plans()
        highest = 0
        for name in self.plan_names():
            kept, _, number = name.rpartition("-")
            if kept == kind and number.isdigit():
                highest = max(highest, int(number))
        return f"{kind}-{highest + 1}"

    def keep_and_execute(self, kind: str, plan: Plan) -> str:
        """Keeps a plan under the next free name of its kind, begins to execute it, and returns the
        name. Waits for the key-value store, as `execute` does.

        Raises CommandError if too many plans are kept. Forgets the plan and raises CommandError if
        the execution of another plan has just begun.
        """
        name = self.next_name(kind)
        self.plan_store.put(name, plan, self.clock())
        if not self.balancer.execute(name, plan):
            self.plan_store.remove(name)
            raise CommandError(EBUSY, "another plan has just begun to be executed")
        return name

    def refuse_old_clients(self) -> None:
        """Raises CommandError if the cluster admits clients that do not know upmap items."""
        refused = upmap_refused(self.gateway.min_compat_client())
        if refused:
            raise CommandError(EPERM, refused)


def with_figures(plan: Plan, view: ClusterView) -> Plan:
    """Returns the plan with the usage before and after it, and with its basis in the osdmap."""
    after = view.planned(plan.changes).usage()
    return resting_on(view.snapshot, plan)._replace(
        before=view.usage, after=after, bounds=view.bounds)
