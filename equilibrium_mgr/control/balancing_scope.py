"""The scope of balancing by the options, and values of options that match nothing."""
from __future__ import annotations

from typing import FrozenSet, List, Optional, Sequence, Set, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..execution.outcomes import Verdict
from ..observation.cluster_view import STUCK
from ..plan.options import OsdFilter, PgShardLimits, PlanOptions
from ..runtime.formatting import named
from ..settings import BadOption, Settings
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot

#: The most names that a sentence shows; it only counts the others.
_SHOWN = 10


#: Field of OsdFilter → the option with its names, and the effect of an unknown name.
_FILTERS = {"sources": ("from_buckets", "nothing is moved off it"),
            "targets": ("to_buckets", "nothing is moved to it"),
            "spared": ("not_buckets", "nothing is moved while that is so")}
_OPTIONS = ("from_buckets", "to_buckets", "not_buckets")


def osd_filter(settings: Settings) -> OsdFilter:
    """Returns the filter by the options of the module."""
    return OsdFilter(settings.from_buckets, settings.to_buckets, settings.not_buckets)


def bad_options(settings: Settings, snapshot: Optional[Snapshot]) -> List[BadOption]:
    """Returns the values that cannot be read, and the names that match nothing in the cluster."""
    found = list(settings.replaced)
    if snapshot is None:
        return found
    chosen = settings.pool_ids or frozenset()
    for pool_id in sorted(chosen - set(snapshot.pools)):
        found.append(BadOption("pool_ids", str(pool_id), "no pool has this id",
                               chosen.isdisjoint(snapshot.pools)))
    classes = _classes(snapshot)
    known = named(sorted(classes), _SHOWN) or "none"
    for name in sorted((settings.device_classes or frozenset()) - classes):
        found.append(BadOption("device_classes", name,
                               f"no OSD has this device class; there are: {known}"))
    for field, name in osd_filter(settings).scope(snapshot.crush).unknown:
        option, instead = _FILTERS[field]
        found.append(BadOption(
            option, name, f"no OSD and no CRUSH bucket has this name; {instead}"))
    return found


def cures(bad: Sequence[BadOption]) -> str:
    """Returns the command that helps, in one line. A command that widens the scope is
    only one of two choices."""
    gone = [one.value for one in bad if one.option == "pool_ids" and one.value.isdigit()]
    if gone and len(gone) == len(bad):
        if not bad[0].is_all:
            return f"run 'ceph equilibrium pool rm {' '.join(gone[:_SHOWN])}'"
        return ("run 'ceph equilibrium pool add POOL' with a pool that is to be balanced, or"
                " 'ceph config rm mgr mgr/equilibrium/pool_ids' to have all of them balanced")
    names = sorted({one.option for one in bad})
    name = names[0] if len(names) == 1 else "OPTION"
    return (f"run 'ceph config set mgr mgr/equilibrium/{name} VALUE' with a value that fits, or"
            f" 'ceph config rm mgr mgr/equilibrium/{name}' for the default")


def nothing_to_balance(settings: Settings, snapshot: Snapshot) -> Optional[Verdict]:
    """Returns why the options leave nothing to be moved, or None."""
    chosen = settings.pool_ids
    if chosen is not None:
        pools = [snapshot.pools[pool_id] for pool_id in sorted(chosen & set(snapshot.pools))]
        if not pools:
            return _stuck(codes.BAD_OPTION, "the option pool_ids names no pool that there is",
                          "pool_ids")
        if all([pool.immovable for pool in pools]):
            stay = named([f"'{pool.name}' stays ({pool.immovable})" for pool in pools], _SHOWN)
            return _stuck(codes.IMMOVABLE, f"of the pools in pool_ids, {stay}", "pool_ids")
    if settings.device_classes is not None and not settings.device_classes & _classes(snapshot):
        return _stuck(codes.BAD_OPTION, "the option device_classes names no class that an OSD has",
                      "device_classes")
    scope = osd_filter(settings).scope(snapshot.crush)
    if scope.sources != frozenset() and scope.targets != frozenset():
        return None
    if scope.unknown:
        field, name = scope.unknown[0]
        option = _FILTERS[field][0]
        return _stuck(codes.BAD_OPTION, f"the option {option} names '{name}', which is no OSD and"
                      " no CRUSH bucket", option)
    given = _given(settings, _OPTIONS)
    leave = "leaves" if len(given) == 1 else "leave"
    option = "from_buckets" if scope.sources == frozenset() else "to_buckets"
    if settings.not_buckets is not None:
        option = "not_buckets"
    return _stuck(codes.OSD_EXCLUDED, f"{' and '.join(given)} {leave} no OSD", option)


def _stuck(code: str, why: str, option: str) -> Verdict:
    return Verdict(code, f"nothing can be moved: {why}", {"option": option}, STUCK)


def left_out(settings: Settings, snapshot: Snapshot) -> List[str]:
    """Returns which pools and OSDs the options leave out, in sentences."""
    found: List[str] = []
    if settings.pool_ids is not None:
        others = set(snapshot.pools) - settings.pool_ids
        if others:
            found.append(f"pool_ids leaves out {len(others)} of {len(snapshot.pools)} pools")
    if settings.device_classes is not None:
        classes = _classes(snapshot) - settings.device_classes
        if classes:
            found.append("device_classes leaves out the OSDs of class"
                         f" {named(sorted(classes), _SHOWN)}")
    scope = osd_filter(settings).scope(snapshot.crush)
    osds = set(snapshot.osds)
    stay = osds - (osds if scope.sources is None else scope.sources)
    refuse = osds - (osds if scope.targets is None else scope.targets)
    is_drained = not snapshot.drained_osds.isdisjoint(stay)   # shards leave these all the same
    leaves = "nothing but drains leaves" if is_drained else "nothing leaves"
    rows: List[Tuple[str, Set[int], Sequence[str]]] = [
        (leaves, stay, ("from_buckets", "not_buckets")),
        ("nothing goes to", refuse, ("to_buckets", "not_buckets"))]
    if stay == refuse and not is_drained and settings.from_buckets == settings.to_buckets:
        rows = [("nothing leaves or goes to", stay, _OPTIONS)]
    for what, spared, options in rows:
        if spared:
            given = ", ".join(_given(settings, options))
            found.append(f"{what} {len(spared)} of {len(osds)} OSDs ({given})")
    return found


def _given(settings: Settings, options: Sequence[str]) -> List[str]:
    """Returns the options that are set."""
    return [option for option in options if getattr(settings, option) is not None]


def _classes(snapshot: Snapshot) -> Set[str]:
    return {osd.device_class for osd in snapshot.osds.values()}


def plan_options(settings: Settings, crush: CrushHierarchy) -> PlanOptions:
    """Returns the limits of any plan by the options, without an aim."""
    scope = osd_filter(settings).scope(crush)
    return PlanOptions(
        pool_ids=settings.pool_ids, device_classes=settings.device_classes,
        sources=scope.sources, targets=scope.targets, fill_limit=settings.fill_limit,
        respect_weights=settings.respect_weights, max_upmap_items=settings.max_upmap_items)


def automatic_options(settings: Settings, snapshot: Snapshot, rejected: FrozenSet[str],
                      max_pg_shards: PgShardLimits = PgShardLimits(),
                      drain_only: bool = False) -> PlanOptions:
    """Returns the options of automatic plans. `drain_only`: of a plan that only drains, which
    pool_ids and device_classes do not limit."""
    options = plan_options(settings, snapshot.crush)._replace(
        aim=settings.aim, rejected_pgs=rejected, max_pg_shards_per_osd=max_pg_shards.most)
    if not drain_only:
        return options
    sources = options.sources
    if sources is not None:
        sources |= snapshot.drained_osds
    return options._replace(
        drain_only=True, pool_ids=None, device_classes=None, sources=sources)
