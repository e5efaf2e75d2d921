"""The states of PGs, one row each, with the consequences for the module.

Ceph joins the states of a PG with `+`, as in `active+remapped+backfill_wait` (pg_state_string in
osd_types.cc). A state that this file does not name means nothing to the module.
"""
from __future__ import annotations

from typing import FrozenSet, Mapping

ACTIVE = "active"
PEERED = "peered"   # below min_size: Ceph copies its data, and no client reads or writes it
CLEAN = "clean"
PREMERGE = "premerge"
BACKFILLING = "backfilling"
RECOVERING = "recovering"
BACKFILL_WAIT = "backfill_wait"
RECOVERY_WAIT = "recovery_wait"
BACKFILL_TOOFULL = "backfill_toofull"
RECOVERY_TOOFULL = "recovery_toofull"
PEERING = "peering"
ACTIVATING = "activating"
CREATING = "creating"
STALE = "stale"
UNKNOWN = "unknown"
DOWN = "down"
INCOMPLETE = "incomplete"
UNDERSIZED = "undersized"
DEGRADED = "degraded"
REMAPPED = "remapped"

#: Parts of names: of all states of backfill, of recovery by log, and of PGs that wait because an
#: OSD is too full.
BACKFILL = "backfill"
RECOVERY = "recover"
TOOFULL = "toofull"


#: State → its meanings, the most telling state first: of several `moves` shows the first. A PG is
#: in several states at a time.
#: - copied: Ceph copies its data; waits: Ceph will do so when it is its turn
#: - toofull: an OSD is too full for it
#: - moving: its data moves, or its new OSDs have not peered
#: - served: its new OSDs serve it, and can have its data
#: - short: it lacks copies, or OSDs for them: its pool stays as it is
#: - lost: no whole copy is up, perhaps for ever
#: - unreported: its report does not count misplaced copies
#: - untrusted: no copy of it should be given up
#: - hidden: `moves` never shows it as the state of a shard in flight
STATES: Mapping[str, str] = {
    BACKFILL_TOOFULL: "toofull moving served",
    RECOVERY_TOOFULL: "toofull moving",
    BACKFILLING: "copied moving served",
    RECOVERING: "copied moving served",
    BACKFILL_WAIT: "waits moving served",
    RECOVERY_WAIT: "waits moving",
    "backfill_unfound": "moving served",
    "recovery_unfound": "moving",
    PEERING: "moving unreported",
    ACTIVATING: "moving",
    STALE: "unreported",
    UNKNOWN: "unreported",
    DOWN: "lost",
    INCOMPLETE: "lost",
    UNDERSIZED: "short",
    DEGRADED: "short",
    REMAPPED: "moving served",
    "forced_backfill": "moving served hidden",
    "forced_recovery": "moving hidden",
    CREATING: "unreported hidden",
    "inconsistent": "untrusted hidden",
    "failed_repair": "untrusted hidden",
}
#: State → Ceph's activity, for people: Ceph reads or rewrites the PG anyway. A move at the same
#: time would make both slower.
ACTIVITIES: Mapping[str, str] = {
    "scrubbing": "scrubbed",
    "repair": "repaired",
    "snaptrim": "snap-trimmed",
}


def _having(meaning: str) -> FrozenSet[str]:
    """Returns the names of the states with a meaning."""
    return frozenset([name for name, meanings in STATES.items() if meaning in meanings.split()])


COPIED = _having("copied")
WAITING = _having("waits")
MOVING = _having("moving")
SERVED = _having("served")
SHORT = _having("short")
LOST = _having("lost")
UNREPORTED = _having("unreported")
UNTRUSTED = _having("untrusted")
#: An OSD is too full for the PG.
FULL = _having("toofull")
#: A PG in one of these may stay as it is for ever.
STUCK = LOST | FULL
#: States of PGs that keep their pool from being moved, or show an OSD that is too full.
TROUBLES = SHORT | FULL
#: A PG with all its copies where it wants them has both: `clean` excludes SHORT and REMAPPED.
WHOLE = frozenset((ACTIVE, CLEAN))
#: A PG in one of these keeps its targets: it is not backfilled, its copies or its report are not
#: trusted, or its new OSDs may have data.
UNSTEERABLE = LOST | UNREPORTED | UNTRUSTED | frozenset((
    RECOVERING, RECOVERY_WAIT, RECOVERY_TOOFULL, "recovery_unfound", "backfill_unfound",
    ACTIVATING))
#: The states that `moves` shows, the most telling first.
SHOWN = tuple([name for name, meanings in STATES.items() if "hidden" not in meanings])


def has_any(pg_state: str, states: FrozenSet[str]) -> bool:
    """Returns True if a PG is in one of the states."""
    return not states.isdisjoint(pg_state.split("+"))


def is_inactive(pg_state: str) -> bool:
    """Returns True if clients cannot use the PG. `premerge` does not count: it takes seconds."""
    states = pg_state.split("+")
    return ACTIVE not in states and PREMERGE not in states
