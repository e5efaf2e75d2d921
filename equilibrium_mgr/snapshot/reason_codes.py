"""Codes of the reasons why data is not moved, and their texts: one table for all screens.

Each cause has one code, which stays the same for programs. Screens name reasons by these codes,
and take actions from REASONS; sentences too, unless a Verdict brings its own. Reasons that keep a
single PG in place have theirs in snapshot/immovable_reasons.py.
"""
from __future__ import annotations

from string import Formatter
from typing import Any, Mapping, NamedTuple, Tuple, Type, TypeVar

# Nothing lower is possible.
BOUND_CAPACITY = "bound_capacity"       # every OSD of the set is equally full
BOUND_DOMAIN = "bound_domain"           # a failure domain is too small for its share of the shards

# A plan must not do it, or it is not worth its bytes.
FILL_LIMIT = "fill_limit"               # the target would pass the option fill_limit
FAILURE_DOMAIN = "failure_domain"       # the CRUSH rule could not place it so
HOLDS_SHARD = "holds_shard"             # the target holds a shard of the PG
GRANULARITY = "granularity"             # a whole shard is larger than the difference
MIN_GAIN = "min_gain"                   # the other moves gain less than the option min_gain
DRIFT = "drift"                         # the drift since the last plan is not worth its bytes
UPMAP_ITEMS = "max_upmap_items"         # the osdmap must not have more pairs of upmap items
PG_COUNT = "pg_count"                   # the OSD would have nearly so many PGs that it withholds
REWEIGHT = "reweight"                   # weights that an operator lowered hold OSDs to a share
POOL_EXCLUDED = "pool_excluded"         # pool_ids or device_classes leave it out
OSD_EXCLUDED = "osd_excluded"           # filters leave the OSD out, or spare it
RULE_UNKNOWN = "rule_unknown"           # the CRUSH rule is not understood
EXCHANGE = "exchange"                   # upmap items cannot exchange OSDs within a PG
IMMOVABLE = "immovable"                 # the PG is pinned, being moved, or cannot be moved at all
GIVEN_UP = "given_up"                   # its move has waited for longer than max_wait
REJECTED = "rejected"                   # the monitor did not keep the upmap items
MISPREDICTED = "mispredicted"           # shards of the pool took more space than predicted
TARGET_UNAVAILABLE = "target_unavailable"   # down, out, drained, destroyed, without statistics
CANNOT_LEAVE = "cannot_leave"           # shards of an OSD that is being drained have no other place

# It has to end first.
SWITCHED_OFF = "off"                    # automatic balancing is off
START_DELAY = "start_delay"             # the mgr has just become active
WINDOW = "window"                       # outside begin_time … end_time
FLAG = "flag"                           # the osdmap has a flag such as norebalance
CONFLICT = "conflict"                   # the built-in balancer is active, or may be finishing
OLD_CLIENTS = "old_clients"             # require_min_compat_client is below luminous
NO_MONITOR = "no_monitor"               # the mgr has no connection to a monitor
NOT_READY = "not_ready"                 # the mgr lacks maps or statistics
STALE_STATISTICS = "stale_statistics"   # OSDs have stopped reporting
DEGRADED = "degraded"                   # PGs are degraded or inactive
PG_NUM_CHANGING = "pg_num_changing"     # the mgr changes a pool's pg_num
SETTLING = "settling"                   # the cluster has just changed
COOLDOWN = "cooldown"                   # the PG was moved less than pg_cooldown ago
BUSY = "busy"                           # the PG is scrubbed, repaired or snap-trimmed
IN_FLIGHT = "in_flight"                 # an earlier move of the PG is under way
NEARFULL = "nearfull"                   # the target is nearfull
TOO_FULL = "too_full"                   # backfill or recovery waits for an OSD that is too full
BAD_OPTION = "bad_option"               # an option has a value that cannot be used

# The throttle.
NEARFULL_FIRST = "nearfull_first"       # relief of an OSD above nearfull goes first
SOURCE_FULL = "source_full"             # the target would be the fullest before what leaves is gone
MAX_BACKFILLS = "max_backfills"
MAX_TRANSIT = "max_transit"
MAX_MOVES = "max_moves"
MISPLACED_LIMIT = "misplaced_limit"
MISPLACED_ONE_PG = "misplaced_one_pg"   # the limit is below one PG: they go one at a time
MONITOR_BACKOFF = "monitor_backoff"     # the monitor took nothing of the last batch
NEXT_BATCH = "next_batch"               # nothing is in the way: batches are sleep_interval apart

# Nothing is wrong.
BALANCED = "balanced"
PLANNING = "planning"
MOVING = "moving"


# -- the table -------------------------------------------------------------------------------------

# Kinds: how a shard that waits for the reason gets free.
TROUBLE = "trouble"       # it stays until somebody or something has ended the reason
UNDECIDED = "undecided"   # it is not known yet: the cluster has not been judged
LIMIT = "limit"           # it goes as moves arrive or time passes
FULL = "full"             # it goes where other moves make room
BEST = "best"             # nothing is held: nothing better is possible, or worth its bytes

KINDS = (TROUBLE, UNDECIDED, LIMIT, FULL, BEST)

NOTHING = "nothing"   # to be done; an action that begins so asks for nothing
SET = "ceph config set mgr mgr/equilibrium"

#: The module does not move a PG for some time because of one of these.
FOR_A_TIME = frozenset((COOLDOWN, GIVEN_UP, MISPREDICTED, REJECTED))
#: Actions of reasons that end by copying: faster if OSDs copy more at a time.
FASTER = ("nothing; it ends by itself as shards arrive; 'ceph config set {faster}' is faster, at"
          " clients' cost", "nothing; it ends by itself as shards arrive")
#: Action if CRUSH moves so much that the fullest OSDs wait, as after an expansion.
FREEZE = ("'ceph osd set norebalance', 'ceph equilibrium freeze' until nothing is remapped, 'ceph"
          " osd unset norebalance' and 'ceph equilibrium on': then the fullest OSDs are relieved"
          " first, and balancing fills the new ones")
#: Action if a plan with a name holds up steering.
GIVE_WAY = ("'ceph equilibrium rm {plan}' ends the plan that keeps equilibrium from choosing where"
            " shards go")
_NO_LOWER = "nothing; no move lowers it, and no OSD has to be nearfull"


class Reason(NamedTuple):
    """The texts of a code. They are str.format templates over the figures of a decision.

    Figures of actions, all optional: `osd` (id), `pool` and `pgid` (names), `device_class`,
    `option`, `limit` (its value), `needed` (a value that lets moves go). Also `until` (a time, as
    people read it), `flag`, `command`, and others that a row names.
    """

    #: Actions of an operator: the first whose figures are all known counts.
    actions: Tuple[str, ...]
    kind: str = TROUBLE
    option: str = ""      # of the limit, if it is always the same
    sentence: str = ""    # why a change waits, if it is always the same
    waits_for: str = ""   # follows "14 shards wait"; if empty, "because" and the sentence do
    counted: str = ""     # why pairs of a shard and a target are rejected, in `explain`
    clause: str = ""      # the same, with the targets as the subject
    stuck: str = "no other OSD may take them"   # why shards cannot leave an OSD


#: `status`, `explain`, health checks and the report read these texts here alone.
REASONS: Mapping[str, Reason] = {
    BOUND_CAPACITY: Reason(
        ("add capacity to class {full_class}, or delete data: no move lowers it", _NO_LOWER),
        BEST),
    BOUND_DOMAIN: Reason(
        ("add capacity to class {full_class} where the failure domain is too small, or delete data",
         _NO_LOWER), BEST),
    FILL_LIMIT: Reason(
        (f"'{SET}/fill_limit {{needed}}' (0 = {{most}}), or add capacity to class {{device_class}}",
         "add capacity to class {device_class}, or delete data: moves fill no OSD beyond {most}",
         "nothing; it ends by itself when what leaves osd.{osd} is gone;"
         f" '{SET}/fill_limit 0' is faster (now {{lower}})",
         "nothing; it ends by itself when what leaves osd.{osd} is gone: moves fill no OSD beyond"
         " {most}",
         f"'{SET}/fill_limit 0' (now {{lower}}), add capacity, or delete data",
         "add capacity, or delete data: moves fill no OSD beyond {most}",
         f"'{SET}/fill_limit 0' where it is set lower, else add capacity or delete data"),
        FULL, "fill_limit",
        sentence="osd.{osd} would pass its fill limit of {fill_limit_ratio:.1%} meanwhile",
        waits_for="for a target that would pass {percent} (fill_limit)",
        counted="target would pass fill_limit ({fill}%)",
        clause="would pass fill_limit",
        stuck="every OSD that could take them would pass its fill limit"),
    FAILURE_DOMAIN: Reason(
        ("add capacity to another {domain}: each may hold so many shards of a PG only",
         "add capacity in other failure domains: the CRUSH rule allows no other target"),
        counted="failure domain: {domain}",
        clause="are in a failure domain that has its shards of the PG",
        stuck="too few failure domains for another OSD to take them"),
    HOLDS_SHARD: Reason(
        ("add OSDs to class {device_class}: each target holds a shard of the PG already",
         "add OSDs: each target holds a shard of the PG already"),
        counted="target holds a shard of the PG", clause="hold a shard of the PG"),
    GRANULARITY: Reason(
        ("'ceph osd pool set {pool} pg_num {pg_num}' makes its shards smaller; all its data moves"
         " for that, and balancing waits until then",
         "nothing; the shards are larger than the difference"),
        BEST, counted="a whole shard is larger than the difference"),
    MIN_GAIN: Reason(
        (f"nothing; '{SET}/min_gain {{needed}}' moves for less",
         f"nothing; '{SET}/min_gain 0' moves for any gain"),
        BEST, "min_gain"),
    DRIFT: Reason(
        ("nothing; 'ceph equilibrium off' and 'ceph equilibrium on' have all planned for that there"
         " is",), BEST),
    UPMAP_ITEMS: Reason(
        (f"'{SET}/max_upmap_items {{needed}}' (0 = no limit; now {{limit}})",
         f"'{SET}/max_upmap_items 0' sets no limit"),
        option="max_upmap_items",
        sentence="the osdmap has {pairs} pairs of upmap items and must not have more than"
                 " {max_pairs} (max_upmap_items)",
        waits_for="for max_upmap_items ({limit} pairs)",
        counted="osdmap may have no more pairs of upmap items (max_upmap_items {limit})",
        clause="would need more pairs of upmap items than max_upmap_items allows",
        stuck="the osdmap must not have more pairs of upmap items"),
    PG_COUNT: Reason(
        ("raise osd_max_pg_per_osd_hard_ratio by 'ceph config set global"
         " osd_max_pg_per_osd_hard_ratio NUMBER', and leave osd.{withholds} no lower value of it or"
         " of mon_max_pg_per_osd ('ceph config show osd.{withholds}'), or add OSDs",
         "'ceph config set global osd_max_pg_per_osd_hard_ratio {needed}'",
         "raise osd_max_pg_per_osd_hard_ratio by 'ceph config set global"
         " osd_max_pg_per_osd_hard_ratio NUMBER', or add OSDs"),
        option="osd_max_pg_per_osd_hard_ratio",
        sentence="osd.{osd} has {shards} PG shards and must not get more than {max_shards} by moves"
                 " (0.8 of mon_max_pg_per_osd times osd_max_pg_per_osd_hard_ratio)",
        waits_for="for a target that has {limit} PG shards",
        counted="target has all the PG shards it may have ({limit}, near those at which it"
                " withholds PGs)",
        clause="have all the PG shards that they may have",
        stuck="every OSD that could take them has as many PG shards as it may"),
    REWEIGHT: Reason(
        ("'ceph osd set norebalance', {reweights}, 'ceph equilibrium freeze' until nothing is"
         " remapped, 'ceph osd unset norebalance' and 'ceph equilibrium on' leave them, and copy no"
         " more than balancing does",
         "'ceph osd reweight {osd} 1' gives osd.{osd} its whole size again",
         "'ceph osd crush reweight osd.{held_osd} {weight}' gives it its whole size again",
         f"'{SET}/respect_weights false' fills OSDs by their sizes"),
        FULL, "respect_weights",
        sentence="{held} and would hold more",
        waits_for="for a target whose weights leave it no more",
        counted="target would pass the share that its weights leave it",
        clause="would pass the share that their weights leave them",
        stuck="every OSD that could take them is held to a share by its weights"),
    POOL_EXCLUDED: Reason(
        ("'ceph config rm mgr mgr/equilibrium/{option}' balances all of them",
         "'ceph equilibrium pool add {pool}'",
         "'ceph config rm mgr mgr/equilibrium/pool_ids' balances all pools"),
        counted="{option} leaves it out",
        clause="are not used, as pool_ids or device_classes leave them out",
        stuck="the plan was limited to other pools"),
    OSD_EXCLUDED: Reason(
        ("'ceph config rm mgr mgr/equilibrium/{option}' lets shards move there",
         "'ceph config rm mgr mgr/equilibrium/not_buckets' lets shards move everywhere"),
        counted="{option} leaves the OSD out",
        clause="are not used, as filters leave the OSD or them out",
        stuck="an option leaves out every OSD that could take them"),
    RULE_UNKNOWN: Reason(
        ("give pool {pool} a rule of plain take, choose and emit steps ('ceph osd pool set')",
         "give the pool a rule of plain take, choose and emit steps ('ceph osd pool set')"),
        counted="the CRUSH rule of the pool is not understood",
        clause="are not used, as the CRUSH rule is not understood",
        stuck="the CRUSH rule of their pool is not understood"),
    EXCHANGE: Reason(
        ("nothing; upmap items cannot exchange OSDs within a PG",),
        counted="upmap items cannot exchange OSDs within the PG",
        clause="cannot be had by upmap items",
        stuck="upmap items cannot exchange OSDs within a PG"),
    IMMOVABLE: Reason(
        ("'{command}' ends it", "ask what holds a PG by 'ceph equilibrium explain PGID'"),
        counted="the PG cannot be moved: {trouble}",
        stuck="their PGs must not be moved for now"),
    GIVEN_UP: Reason(
        ("nothing; it is tried again at {until} (max_wait)",
         "nothing; it is tried again after max_wait"),
        counted="the PG's move has waited for longer than max_wait",
        clause="are not used, as the move has waited for longer than max_wait"),
    REJECTED: Reason(
        ("nothing; it is tried again at {until}, or at once by 'ceph equilibrium on'",
         "'ceph equilibrium on' tries them again at once"),
        counted="the monitor did not keep the PG's upmap items",
        clause="are not used, as the monitor did not keep the upmap items",
        stuck="the monitor did not keep their move, or their pool is left alone for now"),
    MISPREDICTED: Reason(
        ("nothing; it is tried again at {until}, or at once by 'ceph equilibrium on'",
         "'ceph equilibrium on' moves it again at once, by what was measured"),
        counted="shards of the pool took more than predicted",
        clause="are not used, as shards of the pool took more than predicted"),
    TARGET_UNAVAILABLE: Reason(
        ("nothing; 'ceph osd in {out}' gives it data if its CRUSH weight is above 0, and 'ceph osd"
         " unset noin' where that flag keeps new OSDs out",
         "bring osd.{osd} up and in; 'ceph osd tree' shows it",
         "bring the OSDs up and in; 'ceph osd tree' shows them"),
        sentence="osd.{osd} is {obstacle}",
        waits_for="for a target that cannot take them",
        counted="target is down, out, being drained or without statistics",
        clause="are down, out, being drained or without statistics"),
    CANNOT_LEAVE: Reason(
        ("'ceph equilibrium drain ls' shows what helps for each reason; 'ceph equilibrium drain rm'"
         " ends the drain of what cannot be emptied",)),

    SWITCHED_OFF: Reason(
        ("'ceph equilibrium drain add {drained}' goes on with the drain",
         "'ceph equilibrium on' balances automatically")),
    START_DELAY: Reason(
        ("nothing; it ends by itself at {until}", "nothing; it ends by itself (start_delay)"),
        UNDECIDED),
    WINDOW: Reason(
        ("set begin_time and end_time so that the window opens;"
         " 'ceph config rm mgr mgr/equilibrium/{option}' for the default",
         "nothing; it ends by itself at {until}, when the window opens",
         "nothing; it ends by itself when the window of begin_time and end_time opens")),
    FLAG: Reason(("'ceph osd unset {flag}'", "'ceph osd unset norebalance'")),
    CONFLICT: Reason(("nothing; it ends by itself at {until}", "'ceph balancer off'")),
    OLD_CLIENTS: Reason(("'ceph osd set-require-min-compat-client luminous'",)),
    NO_MONITOR: Reason(
        ("nothing here; 'ceph quorum_status' and 'ceph health detail' tell which monitors are down",
         )),
    NOT_READY: Reason(("nothing; it ends by itself once the mgr has maps and statistics",),
                      UNDECIDED),
    STALE_STATISTICS: Reason(
        ("restart osd.{osd}, or 'ceph mgr fail' where many OSDs do not report",
         "'ceph mgr fail' where OSDs do not report again by themselves"),
        sentence="osd.{osd} has not reported its statistics for too long",
        waits_for="for an OSD that does not report"),
    DEGRADED: Reason(
        ("nothing; it ends by itself when recovery has ended ('ceph pg dump_stuck degraded')",)),
    PG_NUM_CHANGING: Reason(
        ("nothing; it ends by itself when pg_num has its new value ('ceph osd pool ls detail')",),
        LIMIT, waits_for="for the mgr to change a pg_num, which goes first",
        counted="a step of pg_num is to touch the PG", clause="wait, as pg_num is changing",
        stuck="their PGs are to be merged, split or placed anew first"),
    SETTLING: Reason(
        ("nothing; it ends by itself at {until}, with a new plan",
         "nothing; it ends by itself within minutes"),
        UNDECIDED),
    COOLDOWN: Reason(
        ("nothing; it ends by itself at {until} (pg_cooldown)",
         "nothing; it ends by itself (pg_cooldown)"),
        LIMIT, "pg_cooldown",
        sentence="pg {pgid} was moved a short while ago and stays until {time} (pg_cooldown)",
        waits_for="for pg_cooldown",
        counted="the PG was moved less than pg_cooldown ago",
        clause="wait for pg_cooldown"),
    BUSY: Reason(
        ("nothing; it ends by itself when the scrub, repair or trimming has ended",),
        sentence="pg {pgid} is being {activity}",
        waits_for="for a scrub, repair or trimming of their PG"),
    IN_FLIGHT: Reason(
        ("nothing; it ends by itself when that move has arrived",),
        sentence="an earlier move of pg {pgid} is still under way",
        waits_for="for an earlier move of their PG",
        counted="the PG is moving", clause="wait, as the PG is moving"),
    NEARFULL: Reason(
        ("add capacity to class {device_class} or delete data; for balancing alone"
         " 'ceph osd set-nearfull-ratio {needed}'",
         "add capacity or delete data; 'ceph osd set-nearfull-ratio RATIO' for balancing alone"),
        FULL, "nearfull_ratio",
        sentence="osd.{osd} is nearfull",
        waits_for="for a target that is nearfull",
        counted="target is nearfull", clause="are nearfull"),
    TOO_FULL: Reason(
        ("nothing; it ends by itself as data leaves osd.{relieved}",
         "'ceph config set {faster}' lets equilibrium make room on osd.{osd}",
         "'{command}', and back when they have arrived",
         "make room on osd.{osd}: delete data, or add capacity",
         "make room on the OSD that is named: delete data, or add capacity")),
    BAD_OPTION: Reason(
        ("'ceph config rm mgr mgr/equilibrium/{option}' for the default",
         "'ceph equilibrium status' names the option; 'ceph config rm mgr mgr/equilibrium/OPTION'"
         " gives it its default")),

    NEARFULL_FIRST: Reason(
        ("nothing; it ends by itself when no OSD is above nearfull: the fullest is relieved first",
         ), LIMIT,
        sentence="osd.{osd} is or will be above nearfull and comes first",
        waits_for="until an OSD that is or will be above nearfull is relieved"),
    SOURCE_FULL: Reason(
        ("nothing; it ends by itself when what leaves osd.{osd} is gone",
         "nothing; it ends by itself when what leaves the target is gone"), LIMIT,
        sentence="osd.{osd} would be the fullest of class {device_class} before what leaves it is"
                 " gone",
        waits_for="for a target that would be the fullest meanwhile"),
    MAX_BACKFILLS: Reason(
        FASTER, LIMIT, "max_backfills_per_osd",
        sentence="osd.{osd} has {shards} shards {direction} already (max_backfills_per_osd)",
        waits_for="for a {end} that has {limit} {direction}"),
    MAX_TRANSIT: Reason(
        FASTER, LIMIT, "max_transit_ratio",
        sentence="osd.{osd} would have more than {max_ratio:.1%} of its size in transit"
                 " (max_transit_ratio)",
        waits_for="for max_transit_ratio ({limit})"),
    MAX_MOVES: Reason(
        FASTER, LIMIT, "max_moves_per_round",
        sentence="max_moves_per_round ({max_moves}) is reached",
        waits_for="for the next round (max_moves_per_round is {limit})"),
    MISPLACED_LIMIT: Reason(
        FASTER, LIMIT,
        sentence="{misplaced}% of all object copies are misplaced, and {own}% more come too near"
                 " the limit of {limit}%",
        waits_for="for the {misplaced_limit} of {percent}"),
    MISPLACED_ONE_PG: Reason(
        FASTER, LIMIT,
        sentence="one PG is {own}% of all object copies and the misplaced limit is {limit}%: such"
                 " PGs go one at a time",
        waits_for="for their turn: one PG is {own}% of all object copies, and the"
                  " {misplaced_limit} is {percent}"),
    NEXT_BATCH: Reason(
        ("nothing; it ends by itself with the next batch (sleep_interval)",),
        waits_for="for the next round"),
    MONITOR_BACKOFF: Reason(
        ("nothing; it is tried again at {until}",
         "nothing; it is tried again within an hour; the mgr log has the monitor's answer")),

    BALANCED: Reason((NOTHING,), BEST, counted="target is as full already",
                     clause="are as full already"),
    PLANNING: Reason(("nothing; it ends by itself when the plan is made",), UNDECIDED),
    MOVING: Reason(
        ("nothing; it ends by itself, and {what_moves}",
         "nothing; it ends by itself when what moves has arrived")),
}


_Why = TypeVar("_Why", bound="Why")


class Why(str):
    """The sentence of a reason, with its code."""

    code: str

    def __new__(cls: Type[_Why], sentence: str, code: str) -> _Why:
        """Makes a text with one more attribute."""
        found = super().__new__(cls, sentence)
        found.code = code
        return found


def action(code: str, numbers: Mapping[str, Any]) -> str:
    """Returns the action of an operator for a reason with these figures; NOTHING if none is needed
    or possible."""
    known = {key: value for key, value in numbers.items() if value is not None}
    for template in REASONS[code].actions if code in REASONS else ():
        if all(not name or name in known for _, name, _, _ in Formatter().parse(template)):
            return template.format(**known)
    return NOTHING
