"""The arguments of `optimize`, checked."""
from __future__ import annotations

import errno
from typing import FrozenSet, List, NamedTuple, Optional, Sequence

from ..control.balancing_scope import osd_filter
from ..gateway.gateway import Gateway
from ..plan.options import AIMS, PlanOptions
from ..plan.osd_filter import OsdFilter
from ..report.command_answer import CommandError
from ..runtime.formatting import parse_size
from ..settings import Settings
from .pool_names import pool_ids

#: Field of OsdFilter → the argument that has its names.
_FLAGS = {"sources": "--from", "targets": "--to", "spared": "--not"}


class PlanArguments(NamedTuple):
    """As they were given; None for an option that was not."""

    pools: List[str]
    max_moves: Optional[int]
    max_bytes: Optional[str]
    device_class: Optional[str]
    aim: Optional[str]
    sources: Sequence[str] = ()    # names of OSDs and buckets, several in one with commas between
    targets: Sequence[str] = ()
    spared: Sequence[str] = ()
    repair: bool = False


def plan_options(arguments: PlanArguments, settings: Settings, gateway: Gateway) -> PlanOptions:
    """The options of the plan: the settings, with what the arguments replace.

    Raises CommandError for a value that cannot be used.
    """
    osds = _filter(arguments, settings, gateway)
    scope = osds.scope(gateway.crush())
    names = {pool: name for name, pool in gateway.pool_ids_by_name().items()}
    pools = (pool_ids(arguments.pools, gateway.pool_ids_by_name()) if arguments.pools
             else settings.pool_ids)
    return present_options(settings, gateway)._replace(
        sources=scope.sources, targets=scope.targets,
        pool_ids=pools, limited_to=osds.words(
            [names.get(pool, str(pool)) for pool in sorted(pools or ())]),
        device_classes=_device_classes(arguments.device_class, gateway) or settings.device_classes,
        max_moves=_max_moves(arguments.max_moves), max_bytes=_max_bytes(arguments.max_bytes),
        aim=_aim(arguments.aim, settings.aim), repair=arguments.repair)


def present_options(settings: Settings, gateway: Gateway) -> PlanOptions:
    """The limits of a plan that is made without arguments, and without an aim."""
    scope = osd_filter(settings).scope(gateway.crush())
    return PlanOptions(
        pool_ids=settings.pool_ids, device_classes=settings.device_classes,
        sources=scope.sources, targets=scope.targets,
        fill_limit=settings.fill_limit, respect_weights=settings.respect_weights,
        max_upmap_items=settings.max_upmap_items)


def _filter(arguments: PlanArguments, settings: Settings, gateway: Gateway) -> OsdFilter:
    """The names of --from and --to, each of which replaces its option, and of --not, which adds to
    what not_buckets spares."""
    given = OsdFilter(_names(arguments.sources), _names(arguments.targets),
                      _names(arguments.spared))
    for field, name in given.scope(gateway.crush()).unknown:
        raise CommandError(errno.ENOENT, f"{_FLAGS[field]} '{name}': no OSD and no CRUSH bucket has"
                           " this name; 'ceph osd tree' shows them")
    options = osd_filter(settings)
    spared = (given.spared or frozenset()) | (options.spared or frozenset())
    return OsdFilter(given.sources or options.sources, given.targets or options.targets,
                     spared or None)


def _names(texts: Sequence[str]) -> Optional[FrozenSet[str]]:
    """The names in arguments; one that names nothing counts as a name, which nothing has."""
    found = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    return frozenset(found or texts) or None


def _device_classes(device_class: Optional[str], gateway: Gateway) -> Optional[FrozenSet[str]]:
    if device_class is None:
        return None
    known = gateway.device_classes()
    if device_class not in known:
        raise CommandError(errno.ENOENT, f"no OSD has the device class '{device_class}';"
                           f" there are: {', '.join(sorted(known))}")
    return frozenset((device_class,))


def _max_moves(count: Optional[int]) -> Optional[int]:
    if count is not None and count < 1:
        raise CommandError(errno.EINVAL, "--max-moves must be at least 1")
    return count


def _max_bytes(text: Optional[str]) -> Optional[int]:
    if text is None:
        return None
    size = parse_size(text)
    if not size:
        raise CommandError(errno.EINVAL,
                           f"--max-bytes '{text}' is no size; write it like 500G or 1T")
    return size


def _aim(text: Optional[str], default: str) -> str:
    if text is None:
        return default
    if text not in AIMS:
        raise CommandError(errno.EINVAL,
                           f"--aim '{text}' is not known; use one of {', '.join(AIMS)}")
    return text
