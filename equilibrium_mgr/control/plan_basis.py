"""What an automatic plan rests on (`PlanBasis`), and why a new plan is needed (`why_new`).

Small differences of utilization are noise. An OSD that is down but in changes nothing: its data
stays where it was, and guards keep moves away from it.
"""
from __future__ import annotations

from statistics import median
from typing import (
    Any, Callable, Collection, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set,
    Tuple)

from ..execution.guards import full_osds
from ..execution.traffic import OsdTraffic, predicted_utilization
from ..gateway.cluster_summary import Fullness
from ..plan.model import PgChange
from ..plan.options import PlanOptions
from ..snapshot import immovable_reasons as reasons
from ..snapshot.model import Snapshot, UpmapItems, pool_of

#: An OSD's utilization must differ by this much: more than twice the measurement noise of a full
#: OSD.
_UTILIZATION = 0.03
#: While the loop is idle, an OSD must differ from the others by this ratio of min_gain, and by this
#: multiple of the mean difference between two reports, which is noise.
_GAIN_RATIO = 0.25
_LEAST_GAIN = 0.001
_NOISE_RATIO = 6.0
#: An OSD counts as newly above nearfull by this much: more than measurement noise.
_NEARFULL_MARGIN = 0.01


class PlanBasis(NamedTuple):
    """What a plan rests on, as plain values."""

    options: PlanOptions                     # of the request
    min_gain: float                          # a ratio, as the option
    full_ratios: Tuple[float, float, float]  # full, backfillfull, nearfull
    osds: Mapping[int, Tuple[Any, ...]]      # in, reweight, destroyed, class, place in the tree
    pools: Mapping[int, Tuple[Any, ...]]     # Pool.shape, and the rule itself
    drained_osds: FrozenSet[int]             # nothing may go to these
    items: Mapping[str, UpmapItems]          # pgid → its upmap items
    down_osds: FrozenSet[int]                # that are in
    utilization: Mapping[int, float]         # of OSDs that are up, once everything has arrived
    unknown_pgs: int                         # PGs of unknown size, or on OSDs of unknown usage
    held_pgs: int                            # PGs that stay for a reason of the list LIFTED
    fullness: Fullness
    noise: float                             # mean difference of utilizations between two reports
    #: by how much the busiest OSD of a set is above the mean, a ratio of it; 0 if nothing is to be
    #: done about that now
    load_gap: float = 0.0

    @property
    def unsettled(self) -> Tuple[Any, ...]:
        """Returns the part of the topology that has to settle. Full ratios and drains need not."""
        return self.osds, self.pools

    def touched(self, later: PlanBasis, changes: Sequence[PgChange]) -> List[PgChange]:
        """Returns the changes whose pool, or one of whose OSDs, is different in `later`."""
        osds = _differing(self.osds, later.osds)
        pools = _differing(self.pools, later.pools)
        found = []
        for change in changes:
            is_of_osd = not osds.isdisjoint(change.up_before + change.up_after)
            if is_of_osd or pool_of(change.pgid) in pools:
                found.append(change)
        return found


def _differing(then: Mapping[Any, Any], now: Mapping[Any, Any]) -> Set[Any]:
    """Returns the keys whose values differ, or that only one of both has."""
    return {key for key in then.keys() | now.keys() if then.get(key) != now.get(key)}


def basis_of(snapshot: Snapshot, options: PlanOptions, min_gain: float,
             noise: float = 0.0) -> PlanBasis:
    """Returns the basis of a plan for the snapshot with these options."""
    places = snapshot.crush.places()
    rules = snapshot.crush.rules
    osds = {}
    down = set()
    utilization = {}
    nearfull = backfillfull = 0
    for number, osd in snapshot.osds.items():
        osds[number] = (
            osd.is_in, osd.reweight, osd.destroyed, osd.device_class, places.get(number))
        if osd.is_in:
            nearfull += osd.exceeds(snapshot.nearfull_ratio)
            backfillfull += osd.exceeds(snapshot.backfillfull_ratio)
            if not osd.up:
                down.add(number)
        if osd.up and osd.has_statistics and osd.size_bytes > 0:
            utilization[number] = osd.target_utilization or 0.0
    return PlanBasis(
        options=options,
        min_gain=min_gain,
        full_ratios=(snapshot.full_ratio, snapshot.backfillfull_ratio, snapshot.nearfull_ratio),
        osds=osds,
        pools={pool.id: (*pool.shape, rules.get(pool.rule_id))
               for pool in snapshot.pools.values()},
        drained_osds=snapshot.drained_osds,
        items=snapshot.upmap_items,
        down_osds=frozenset(down),
        utilization=utilization,
        unknown_pgs=_skipped_pgs(snapshot, reasons.UNKNOWN),
        held_pgs=_skipped_pgs(snapshot, reasons.LIFTED),
        fullness=Fullness(nearfull, backfillfull),
        noise=noise)


def _skipped_pgs(snapshot: Snapshot, why: Collection[str]) -> int:
    """Returns the number of PGs that plans skip for one of these reasons."""
    return sum([count for reason, count in snapshot.skipped.items() if reason in why])


# -- why a new plan is needed ----------------------------------------------------------------------

Check = Callable[[PlanBasis, PlanBasis], Optional[str]]

#: How soon: at once, when the topology has settled, or not too soon after the last plan.
AT_ONCE = "at once"
SETTLED = "settled"
PACED = "paced"


class Reason(NamedTuple):
    """Why a new plan is needed, and how soon."""

    text: str   # a clause
    urgency: str


def why_new(then: PlanBasis, now: PlanBasis,
            checks: Sequence[Tuple[str, Check]]) -> Optional[Reason]:
    """Returns why a plan that rests on `then` is not enough any more, or None.

    `checks`: one of the lists below, each check with its urgency; the first that finds something
    decides.
    """
    for urgency, check in checks:
        text = check(then, now)
        if text is not None:
            return Reason(text, urgency)
    return None


def request_change(then: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns a clause if the options differ, except in the PGs that the monitor rejected."""
    rejected = now.options.rejected_pgs
    if then.options._replace(rejected_pgs=rejected) == now.options:
        return None
    return "the options have changed"


def options_change(then: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns a clause if the options differ in anything."""
    if then.options == now.options and then.min_gain == now.min_gain:
        return None
    return "the options have changed"


def fullness_change(then: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns a clause if an OSD is too full that was not then: no plan has tried to help it."""
    is_fuller = (now.fullness.nearfull > then.fullness.nearfull
                 or now.fullness.backfillfull > then.fullness.backfillfull)
    if is_fuller or _newly_nearfull(then, now.utilization, now.full_ratios[2]):
        return "another OSD is too full"
    return None


def topology_change(then: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns a change of OSDs, weights, full ratios, drains or pools since the plan, as a clause,
    or None."""
    if then.full_ratios != now.full_ratios:
        return "a full ratio has changed"
    changed = _differing(then.osds, now.osds)
    if changed:
        osd = min(changed)
        return f"osd.{osd} {_osd_change(then.osds.get(osd), now.osds.get(osd))}"
    drained = then.drained_osds ^ now.drained_osds
    if drained:
        osd = min(drained)
        if osd in now.drained_osds:
            return f"osd.{osd} is being drained"
        return f"osd.{osd} is no longer being drained"
    return "the pools have changed" if then.pools != now.pools else None


def _osd_change(old: Optional[Tuple[Any, ...]], new: Optional[Tuple[Any, ...]]) -> str:
    if old is None:
        return "is new"
    if new is None:
        return "is gone"
    if old[0] != new[0]:
        return "is in again" if new[0] else "is out"
    if old[1] != new[1]:
        return "has another weight"
    return "has another class, weight or place in the CRUSH map"


def data_change(then: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns a clause if more of the data is known or may be moved than before."""
    back = then.down_osds & now.osds.keys() - now.down_osds
    if back:
        return f"osd.{min(back)} is up again"
    # only if half of them are: deep scrubs report PG by PG, for weeks
    if now.unknown_pgs * 2 <= then.unknown_pgs and then.unknown_pgs:
        return f"{then.unknown_pgs - now.unknown_pgs} PGs have told how much they hold"
    if now.held_pgs * 2 <= then.held_pgs and then.held_pgs:
        return f"{then.held_pgs - now.held_pgs} PGs may be moved again"
    for osd in sorted(now.utilization.keys() - then.utilization.keys()):
        if osd in then.osds and then.osds[osd][0]:
            return f"osd.{osd} has reported its statistics"
    return None


def drift(then: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns why a plan may now reach min_gain although the last one did not, or None.

    Either somebody else has changed upmap items. Or an OSD has drifted from the rest of its class
    by a part of min_gain. Or most OSDs of a class are fuller or emptier by min_gain: then other
    moves are worth their bytes.
    """
    if have_others_moved(then, now):
        return "shards are placed otherwise"
    by_class: Dict[str, Dict[int, float]] = {}
    for osd in now.utilization.keys() & then.utilization.keys():
        changes = by_class.setdefault(now.osds[osd][3], {})
        changes[osd] = now.utilization[osd] - then.utilization[osd]
    middles = []
    apart = [(0.0, 0)]
    for changes in by_class.values():
        middle = median(changes.values())
        middles.append(middle)
        apart += [(abs(change - middle), -osd) for osd, change in changes.items()]
    worst, negative = max(apart)
    gain = max(then.min_gain, _LEAST_GAIN)
    # more than the noise of a full OSD counts, however much the others swing
    noise = min(_UTILIZATION, _NOISE_RATIO * now.noise)
    if worst > max(_GAIN_RATIO * gain, noise):
        return _drift_clause(-negative, now.utilization, then)
    for middle in middles:
        if abs(middle) > max(gain, noise):
            return f"most OSDs are {'fuller' if middle > 0 else 'emptier'}"
    return None


def load_change(_: PlanBasis, now: PlanBasis) -> Optional[str]:
    """Returns a clause if something is to be done about the load of OSDs."""
    if not now.load_gap:
        return None
    return f"the busiest OSD has {now.load_gap + 1.0:.2f} times the mean load"


def have_others_moved(then: PlanBasis, now: PlanBasis, sent: Sequence[PgChange] = ()) -> bool:
    """Returns True if somebody else has changed upmap items. `sent`: changes that the module has
    sent since, perhaps."""
    ours = {change.pgid: change.items for change in sent}
    for pgid in _differing(then.items, now.items):
        if now.items.get(pgid, ()) != ours.get(pgid):
            return True
    return False


class Progress(NamedTuple):
    """How far the execution of a plan is."""

    snapshot: Snapshot
    traffic: OsdTraffic
    wanted: Sequence[PgChange]   # changes that are still to be sent
    moved: Mapping[int, int]     # OSD → bytes that the execution has moved to it or off it so far

    def unplanned_change(self, then: PlanBasis, _: PlanBasis) -> Optional[str]:
        """Returns a change of an OSD that the plan does not expect, as a clause, or None.

        An OSD deletes shards some time after they have left it. So it may differ by the bytes that
        the execution has moved, in addition to noise.
        """
        predicted = self._predicted(then)
        overfull = self._overfull(then, predicted)
        if overfull:
            return f"osd.{min(overfull)} will be above nearfull, and the plan does not help it"
        for number, utilization in sorted(predicted.items()):
            osd = self.snapshot.osds[number]
            own = self.moved.get(number, 0) / max(1, osd.size_bytes)
            difference = abs(utilization - then.utilization[number])
            if osd.has_statistics and difference > _UTILIZATION + own:
                return _drift_clause(number, predicted, then)
        return None

    def _predicted(self, then: PlanBasis) -> Dict[int, float]:
        """Returns the utilization of OSDs once all has arrived, and what has left is deleted."""
        predicted = {}
        for number, osd in self.snapshot.osds.items():
            if osd.up and number in then.utilization:
                ratio = predicted_utilization(self.snapshot, self.traffic.of(number), number)
                predicted[number] = ratio - osd.leftover_bytes / max(1, osd.size_bytes)
        return predicted

    def _overfull(self, then: PlanBasis, predicted: Mapping[int, float]) -> Set[int]:
        """Returns the OSDs that are newly too full and that no wanted change relieves."""
        overfull = _newly_nearfull(then, predicted, self.snapshot.nearfull_ratio)
        for osd in full_osds(self.snapshot):
            if predicted.get(osd, 0.0) > self.snapshot.backfillfull_ratio:
                overfull.add(osd)
        if overfull:
            for change in self.wanted:
                overfull -= change.lost_by
        return overfull

    @property
    def checks(self) -> Sequence[Tuple[str, Check]]:
        """Returns the checks while the plan is executed."""
        return (*PLAN_CHECKS, (PACED, data_change), (PACED, self.unplanned_change))


def _newly_nearfull(then: PlanBasis, utilization: Mapping[int, float],
                    nearfull_ratio: float) -> Set[int]:
    """Returns the OSDs that were not above nearfull, and will be by more than noise once everything
    in flight has arrived."""
    found = set()
    for osd, ratio in utilization.items():
        if ratio > nearfull_ratio + _NEARFULL_MARGIN:
            if then.utilization.get(osd, ratio) <= nearfull_ratio:
                found.add(osd)
    return found


def _drift_clause(osd: int, utilization: Mapping[int, float], then: PlanBasis) -> str:
    return (f"osd.{osd} is at {100.0 * utilization[osd]:.1f} % instead of"
            f" {100.0 * then.utilization[osd]:.1f} %")


#: Checks of a plan from the moment on at which it was asked for, executed or not.
PLAN_CHECKS: Sequence[Tuple[str, Check]] = (
    (AT_ONCE, request_change),
    (SETTLED, topology_change))
#: Everything except drift that could let a plan gain after one that had nothing to gain.
LARGE_CHECKS: Sequence[Tuple[str, Check]] = (
    (AT_ONCE, options_change),
    (AT_ONCE, fullness_change),
    (SETTLED, topology_change),
    (PACED, data_change))
#: Checks while the loop is idle.
IDLE_CHECKS: Sequence[Tuple[str, Check]] = (
    *LARGE_CHECKS, (PACED, drift), (PACED, load_change))
