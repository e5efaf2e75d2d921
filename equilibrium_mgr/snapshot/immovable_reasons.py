"""The reasons why a PG cannot be moved, as operators read them, each with the action that ends
it."""
from __future__ import annotations

from typing import Optional

from . import pg_states, reason_codes as codes
from .reason_codes import NOTHING, SET, Why


class Immovable(Why):
    """A reason why a PG cannot be moved. `code`: the reason code of a change that waits for it."""

    _action: str   # a str.format template over `pgid` and `pool`

    def __new__(cls, sentence: str, action: str = NOTHING,
                code: str = codes.IMMOVABLE) -> Immovable:
        """Makes a reason. `action`: template of the action that lets the PG move."""
        found = super().__new__(cls, sentence, code)
        found._action = action
        return found

    def action(self, pgid: str, pool: str) -> str:
        """Returns the action that lets a PG move. `pool`: the pool's name."""
        return self._action.format(pgid=pgid, pool=pool)


NO_OSD_FOR_SHARD = Immovable(
    "a shard has no OSD", "start the OSDs that are down ('ceph osd tree down'); if none is, the"
    " CRUSH rule finds too few OSDs: add some",
    codes.DEGRADED)
NO_STATISTICS = Immovable(
    "no statistics of the PG", "nothing; it ends by itself when its primary has reported",
    codes.STALE_STATISTICS)
OSD_NOT_REPORTED = Immovable(
    "one of its OSDs has not reported its statistics",
    "nothing; it ends by itself when its OSDs have reported", codes.STALE_STATISTICS)
OMAP_UNMEASURED = Immovable(
    "its omap has not been measured; a deep scrub tells",
    "'ceph pg deep-scrub {pgid}' measures it")
INCONSISTENT = Immovable(
    "its copies differ, and nobody knows which are good",
    "'ceph pg repair {pgid}'")
STALE = Immovable(
    "nobody has reported it for too long",
    "'ceph pg {pgid} query' and 'ceph health detail' tell why", codes.STALE_STATISTICS)
OMAP_ON_SMALL_OSD = Immovable(
    "its omap cannot be told from RocksDB's own files on OSDs smaller than min_omap_osd_size",
    f"'{SET}/min_omap_osd_size 0' moves it unmeasured")
TO_MERGE, TO_SPLIT, TO_PLACE = [Immovable(
    sentence, "nothing; it ends by itself when that is done", codes.PG_NUM_CHANGING)
                                for sentence in (
    "it is to be merged, as pg_num of the pool is changing",
    "it is to be split, as pg_num of the pool is changing",
    "CRUSH is to place it anew, as pgp_num of the pool is changing")]
DEGRADED_STRETCH = Immovable(
    "the cluster is in degraded stretch mode",
    "nothing; it ends by itself when the lost site is back", codes.DEGRADED)
NO_DATA_SHARDS = Immovable(
    "the pool's erasure-code profile has no k", "give the pool's erasure-code profile a k")
NO_RULE = Immovable(
    "the pool's CRUSH rule does not exist",
    "give pool {pool} a CRUSH rule that exists ('ceph osd pool set')", codes.RULE_UNKNOWN)
RULE_NOT_SUPPORTED = Immovable(
    "CRUSH rule not supported", codes.REASONS[codes.RULE_UNKNOWN].actions[0], codes.RULE_UNKNOWN)
FULL_UPMAP = Immovable(
    "placed by a full pg-upmap", "'ceph osd rm-pg-upmap {pgid}' lets it move")
UPMAP_PRIMARY = Immovable(
    "its primary is set by pg-upmap-primary",
    "'ceph osd rm-pg-upmap-primary {pgid}' lets it move")
RAW_UNKNOWN = Immovable(
    "its CRUSH mapping cannot be recovered from its upmap items",
    "'ceph osd rm-pg-upmap-items {pgid}' lets CRUSH place it")
MONITOR_REJECTS = Immovable(
    "the monitor would reject its present placement",
    "'ceph osd rm-pg-upmap-items {pgid}' lets CRUSH place it")
MONITOR_REJECTS_CRUSH = Immovable(
    "the monitor would reject it where CRUSH places it",
    "nothing; monitors keep no upmap items of what its CRUSH rule places so")
BREAKS_RULE = Immovable(
    "its present placement breaks its CRUSH rule",
    "'ceph equilibrium optimize mend --repair' makes a plan that mends it")


def rule_not_supported(why: str) -> Immovable:
    """Returns RULE_NOT_SUPPORTED with the part of the rule that is not understood."""
    return Immovable(f"{RULE_NOT_SUPPORTED}: {why}", RULE_NOT_SUPPORTED._action,
                     RULE_NOT_SUPPORTED.code)


def untrusted_state(state: str) -> Optional[Immovable]:
    """Returns a reason if the state of a PG forbids deleting any of its copies, or None."""
    if pg_states.has_any(state, pg_states.UNTRUSTED):
        return INCONSISTENT
    if pg_states.STALE in state:
        return STALE
    return None


#: Reasons that forbid copying a PG's shards, not its placement: a change that copies none may go.
OF_MOTION = frozenset((OSD_NOT_REPORTED, OMAP_UNMEASURED, INCONSISTENT, OMAP_ON_SMALL_OSD))

#: Reasons that a plan of kind REPAIR or FREEZE ends by a legal placement.
OF_RULE = frozenset((MONITOR_REJECTS, MONITOR_REJECTS_CRUSH, BREAKS_RULE))

#: Reasons that leave the size of a PG, or the usage of its OSDs, unknown.
UNKNOWN = (NO_STATISTICS, OSD_NOT_REPORTED, OMAP_UNMEASURED)

#: Reasons of PGs that a step of the mgr will merge, split or remap.
OF_PG_NUM = (TO_MERGE, TO_SPLIT, TO_PLACE)

#: Reasons that end for single PGs, by a repair, a command, an option or a step of pg_num. A new
#: plan may gain something then.
LIFTED = (INCONSISTENT, FULL_UPMAP, UPMAP_PRIMARY, OMAP_ON_SMALL_OSD, *OF_PG_NUM)

#: Reasons that probably end soon: a move waits for these. For other reasons it is dropped.
TRANSIENT = frozenset((NO_OSD_FOR_SHARD, NO_STATISTICS, OSD_NOT_REPORTED, OMAP_UNMEASURED,
                       INCONSISTENT, STALE, *OF_PG_NUM, DEGRADED_STRETCH))
