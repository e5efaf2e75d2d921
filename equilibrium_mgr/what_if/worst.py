"""The worst failures of one failure domain each, by type."""
from __future__ import annotations

from typing import Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ..runtime.checkpoints import Checkpoint, no_checkpoint
from .failure import Failure, failure_domains
from .placement import Osds, PgsByOsd, Placement
from .recovery import FailureFigures, Recovery, failure_figures, recover, usage_of

#: Of each type so many are kept, with all figures.
KEPT_FAILURES = 5

#: (OSDs that fail, pgids) → up sets under that failure, as the mgr's map gives them.
UpSetsWithout = Callable[[Sequence[int], Sequence[str]], Mapping[str, Osds]]


class TypeFailures(NamedTuple):
    """The failures of one bucket of a type."""

    type_name: str
    failures: int                        # how many there are
    worst: Tuple[FailureFigures, ...]    # the worst first


def recovery_from(placed: Placement, failure: Failure, pgs: PgsByOsd,
                  up_sets_without: UpSetsWithout,
                  checkpoint: Checkpoint = no_checkpoint) -> Recovery:
    """What follows from a failure of the placement."""
    mapped = up_sets_without(sorted(failure.osds), pgs.of(failure.osds))
    return recover(placed, failure, {pgid: up for pgid, up in mapped.items()
                                     if pgid in placed.snapshot.pgs}, checkpoint)


def worst_failures(placed: Placement, up_sets_without: UpSetsWithout,
                   checkpoint: Checkpoint = no_checkpoint) -> Dict[str, TypeFailures]:
    """By type, the failures of hosts and of what the rules keep shards apart by."""
    pgs, before = PgsByOsd(placed, checkpoint), usage_of(placed, checkpoint)
    found: Dict[str, TypeFailures] = {}
    for type_name, failures in failure_domains(placed.snapshot).items():
        worst: List[Recovery] = []
        for failure in failures:
            worst.append(recovery_from(placed, failure, pgs, up_sets_without, checkpoint))
            worst.sort(key=Recovery.severity, reverse=True)
            del worst[KEPT_FAILURES:]
        found[type_name] = TypeFailures(type_name, len(failures), tuple(
            failure_figures(placed, recovery, before, checkpoint) for recovery in worst))
    return found
