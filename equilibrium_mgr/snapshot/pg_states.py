"""The states of PGs, one row each, with the consequences for the module.

Ceph joins the states of a PG with `+`, as in `active+remapped+backfill_wait` (pg_state_string in
osd_types.cc). A state that this file does not name means nothing to the module.
"""
from __future__ import annotations

from typing import FrozenSet, Mapping, NamedTuple

ACTIVE = "active"
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


class PgState(NamedTuple):
    """The meaning of one state. A PG is in several at a time."""

    name: str
    is_copied: bool = False      # Ceph copies its data
    waits: bool = False          # Ceph will copy its data when it is its turn
    is_toofull: bool = False     # an OSD is too full for it
    is_moving: bool = False      # its data moves, or its new OSDs have not peered
    is_served: bool = False      # its new OSDs serve it, and can have its data
    is_short: bool = False       # it lacks copies, or OSDs for them: its pool stays as it is
    is_lost: bool = False        # no whole copy is up, perhaps for ever
    is_unreported: bool = False  # its report does not count misplaced copies
    is_untrusted: bool = False   # no copy of it should be given up
    activity: str = ""           # for people, if Ceph reads or rewrites it anyway
    is_shown: bool = True        # `moves` shows it as the state of a shard in flight


#: The most telling first: of several `moves` shows the first.
STATES = (
    PgState(BACKFILL_TOOFULL, is_toofull=True, is_moving=True, is_served=True),
    PgState(RECOVERY_TOOFULL, is_toofull=True, is_moving=True),
    PgState(BACKFILLING, is_copied=True, is_moving=True, is_served=True),
    PgState(RECOVERING, is_copied=True, is_moving=True, is_served=True),
    PgState(BACKFILL_WAIT, waits=True, is_moving=True, is_served=True),
    PgState(RECOVERY_WAIT, waits=True, is_moving=True),
    PgState("backfill_unfound", is_moving=True, is_served=True),
    PgState("recovery_unfound", is_moving=True),
    PgState(PEERING, is_moving=True, is_unreported=True),
    PgState(ACTIVATING, is_moving=True),
    PgState(STALE, is_unreported=True),
    PgState(UNKNOWN, is_unreported=True),
    PgState(DOWN, is_lost=True),
    PgState(INCOMPLETE, is_lost=True),
    PgState(UNDERSIZED, is_short=True),
    PgState(DEGRADED, is_short=True),
    PgState(REMAPPED, is_moving=True, is_served=True),
    PgState("forced_backfill", is_moving=True, is_served=True, is_shown=False),
    PgState("forced_recovery", is_moving=True, is_shown=False),
    PgState(CREATING, is_unreported=True, is_shown=False),
    PgState("inconsistent", is_untrusted=True, is_shown=False),
    PgState("failed_repair", is_untrusted=True, is_shown=False),
    PgState("scrubbing", activity="scrubbed", is_shown=False),
    PgState("repair", activity="repaired", is_shown=False),
    PgState("snaptrim", activity="snap-trimmed", is_shown=False),
)


def _having(meaning: str) -> FrozenSet[str]:
    """Returns the names of the states with one meaning, a field of PgState."""
    return frozenset(state.name for state in STATES if getattr(state, meaning))


COPIED = _having("is_copied")
WAITING = _having("waits")
MOVING = _having("is_moving")
SERVED = _having("is_served")
SHORT = _having("is_short")
LOST = _having("is_lost")
UNREPORTED = _having("is_unreported")
UNTRUSTED = _having("is_untrusted")
#: An OSD is too full for the PG.
FULL = _having("is_toofull")
#: A PG in one of these may stay as it is for ever.
STUCK = LOST | FULL
#: States that keep a PG, or all PGs on its OSDs, from being moved.
TROUBLES = SHORT | FULL
#: A PG with all its copies where it wants them has both: `clean` excludes SHORT and REMAPPED.
WHOLE = frozenset((ACTIVE, CLEAN))
#: A PG in one of these keeps its targets: it is not backfilled, or its new OSDs may have data.
UNSTEERABLE = LOST | UNREPORTED | UNTRUSTED | frozenset((
    RECOVERING, RECOVERY_WAIT, RECOVERY_TOOFULL, "recovery_unfound", "backfill_unfound",
    ACTIVATING))
#: State → Ceph's activity, for people. A move at the same time would make both slower.
ACTIVITIES: Mapping[str, str] = {state.name: state.activity for state in STATES if state.activity}
#: The states that `moves` shows, the most telling first.
SHOWN = tuple(state.name for state in STATES if state.is_shown)


def has_any(pg_state: str, states: FrozenSet[str]) -> bool:
    """Returns True if a PG is in one of the states."""
    return not states.isdisjoint(pg_state.split("+"))


def is_inactive(pg_state: str) -> bool:
    """Returns True if clients cannot use the PG. `premerge` does not count: it takes seconds."""
    states = pg_state.split("+")
    return ACTIVE not in states and PREMERGE not in states
