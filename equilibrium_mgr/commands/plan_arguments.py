"""The arguments of `optimize`, checked."""
from __future__ import annotations

import errno
from typing import FrozenSet, List, NamedTuple, Optional

from ..gateway.gateway import Gateway
from ..plan.options import AIMS, PlanOptions
from ..report.command_answer import CommandError
from ..runtime.formatting import parse_size
from ..settings import Settings
from .pool_names import pool_ids


class PlanArguments(NamedTuple):
    """As they were given; None for an option that was not."""

    pools: List[str]
    max_moves: Optional[int]
    max_bytes: Optional[str]
    device_class: Optional[str]
    aim: Optional[str]


def plan_options(arguments: PlanArguments, settings: Settings, gateway: Gateway) -> PlanOptions:
    """The options of the plan: the settings, with what the arguments replace.

    Raises CommandError for a value that cannot be used.
    """
    return present_options(settings)._replace(
        pool_ids=pool_ids(arguments.pools, gateway.pool_ids_by_name()) if arguments.pools
        else settings.pool_ids,
        device_classes=_device_classes(arguments.device_class, gateway) or settings.device_classes,
        max_moves=_max_moves(arguments.max_moves), max_bytes=_max_bytes(arguments.max_bytes),
        aim=_aim(arguments.aim, settings.aim))


def present_options(settings: Settings) -> PlanOptions:
    """The limits of a plan that is made without arguments, and without an aim."""
    return PlanOptions(
        pool_ids=settings.pool_ids, device_classes=settings.device_classes,
        fill_limit=settings.fill_limit, respect_weights=settings.respect_weights,
        max_upmap_items=settings.max_upmap_items)


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
