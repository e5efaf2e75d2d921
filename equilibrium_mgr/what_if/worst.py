"""The worst failures of one failure domain each, by type."""
from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..runtime.time_slice import give_way, piecewise
from .failure import Failure, failure_domains
from .placement import Osds, PgsByOsd, Placement
from .recovery import FailureFigures, Recovery, failure_figures, recover, usage_of

#: Of each type so many are kept, with all figures.
KEPT_FAILURES = 5
_PGS_A_PIECE = 500   # before it gives way again: about a millisecond

#: (OSDs that fail, pgids) → up sets under that failure, as the mgr's map gives them.
UpSetsWithout = Callable[[Sequence[int], Sequence[str]], Mapping[str, Osds]]


class TypeFailures(NamedTuple):
    """The failures of one bucket of a type."""

    type_name: str
    failures: int                        # how many there are
    worst: Tuple[FailureFigures, ...]    # the worst first
    computed: int                        # of them, those of which most is lost, or most data moves


def recovery_from(placed: Placement, failure: Failure, pgs: PgsByOsd,
                  up_sets_without: UpSetsWithout) -> Recovery:
    """What follows from a failure of the placement."""
    mapped = up_sets_without(sorted(failure.osds), pgs.of(failure.osds))
    return recover(placed, failure, {pgid: up for pgid, up in mapped.items()
                                     if pgid in placed.snapshot.pgs})


def worst_failures(placed: Placement, up_sets_without: UpSetsWithout) -> Dict[str, TypeFailures]:
    """By type, the failures of hosts and of what the rules keep shards apart by.

    Of each type the one that looks worst without CRUSH is computed, then the second of each, until
    `give_way` tells to end: for each the mgr copies its map, and a cluster may have 10,000 OSDs.
    """
    pgs, before = PgsByOsd(placed), usage_of(placed)
    ranked = {type_name: _ranked(placed, failures)
              for type_name, failures in failure_domains(placed.snapshot).items()}
    worst: Dict[str, List[Recovery]] = {type_name: [] for type_name in ranked}
    computed: Counter[str] = Counter()
    for number in range(max(map(len, ranked.values()), default=0)):
        for type_name, failures in ranked.items():
            if number < len(failures) and (number == 0 or give_way()):
                computed[type_name] += 1
                found = worst[type_name]
                found.append(recovery_from(placed, failures[number], pgs, up_sets_without))
                found.sort(key=Recovery.severity, reverse=True)
                del found[KEPT_FAILURES:]
    return {type_name: TypeFailures(type_name, len(failures), tuple(
        failure_figures(placed, recovery, before) for recovery in worst[type_name]),
        computed[type_name]) for type_name, failures in ranked.items()}


def _ranked(placed: Placement, failures: Sequence[Failure]) -> Sequence[Failure]:
    """The failures by what can be told without CRUSH, the worst first: PGs of which too few shards
    are left, and bytes that have to go elsewhere."""
    number_of = {osd: number for number, failure in enumerate(failures) for osd in failure.osds}
    lost, pools = [0] * len(failures), placed.snapshot.pools
    for pg in piecewise(placed.snapshot.pgs.values(), _PGS_A_PIECE):
        held = [osd for osd in placed.up(pg) if osd != NO_OSD]
        numbers = [number_of[osd] for osd in held if osd in number_of]
        for number in set(numbers):
            lost[number] += len(held) - numbers.count(number) < pools[pg.pool].data_shards
    moved = [sum(placed.used.get(osd, 0) for osd in failure.osds) for failure in failures]
    order = sorted(range(len(failures)), key=lambda i: (-lost[i], -moved[i], i))
    return [failures[i] for i in order]
