"""What an operator can do about each reason: one command or sentence for each code.

The only home of these sentences: `status`, `explain`, health checks and the report take them from
here. Figures that a template may use, all optional: `osd` (id), `pool` and `pgid` (names),
`device_class`, `option`, `limit` (its value), `needed` (a value that would let moves go), `until`
(a time, as people read it), `flag`, `command`, `trouble`, and what an entry names beside these.
"""
from __future__ import annotations

from string import Formatter
from typing import Any, Dict, Mapping, Optional, Tuple

from ...snapshot import immovable_reasons as immovable
from ...snapshot import reason_codes as codes

NOTHING = "nothing"

_SET = "ceph config set mgr mgr/equilibrium"

_FASTER = ("nothing; it ends by itself as shards arrive; 'ceph config set {faster}' is faster, at"
           " clients' cost", "nothing; it ends by itself as shards arrive")

#: Code → str.format templates; the first whose figures are all known counts.
ACTIONS: Mapping[str, Tuple[str, ...]] = {
    codes.BOUND_CAPACITY: (
        "add capacity to class {full_class}, or delete data: no move lowers it",
        "nothing; no move lowers it, and no OSD has to be nearfull"),
    codes.BOUND_DOMAIN: (
        "add {bytes} to {buckets}: that brings the bound to {bound}",
        "add capacity to class {full_class} where the failure domain is too small, or delete data",
        "nothing; no move lowers it, and no OSD has to be nearfull"),
    codes.FILL_LIMIT: (
        f"'{_SET}/fill_limit {{needed}}' (0 = {{most}}), or add capacity to class {{device_class}}",
        "add capacity to class {device_class}, or delete data: moves fill no OSD beyond {most}",
        "nothing; it ends by itself when what leaves osd.{osd} is gone;"
        f" '{_SET}/fill_limit 0' where it is set lower (now {{limit}})",
        f"'{_SET}/fill_limit 0' where it is set lower, else add capacity or delete data"),
    codes.FAILURE_DOMAIN: (
        "add capacity to another {domain}: each may hold so many shards of a PG only",
        "add capacity in other failure domains: the CRUSH rule allows no other target"),
    codes.HOLDS_SHARD: (
        "add OSDs to class {device_class}: each target holds a shard of the PG already",
        "add OSDs: each target holds a shard of the PG already"),
    codes.GRANULARITY: (
        "'ceph osd pool set {pool} pg_num {pg_num}' makes its shards smaller; all its data moves"
        " for that, and balancing waits until then",
        "nothing; the shards are larger than the difference"),
    codes.MIN_GAIN: (
        f"nothing; '{_SET}/min_gain {{needed}}' moves for less",
        f"nothing; '{_SET}/min_gain 0' moves for any gain"),
    codes.UPMAP_ITEMS: (
        f"'{_SET}/max_upmap_items {{needed}}' (0 = no limit; now {{limit}})",
        f"'{_SET}/max_upmap_items 0' sets no limit"),
    codes.PG_COUNT: (
        "'ceph config set global {option} {needed}' (now {limit})",
        "'ceph config set global mon_max_pg_per_osd {needed}' (now {limit})",
        "raise mon_max_pg_per_osd by 'ceph config set global mon_max_pg_per_osd NUMBER', or add"
        " OSDs"),
    codes.REWEIGHT: (
        "'ceph osd reweight {osd} 1' gives osd.{osd} its whole size again",
        "'ceph osd crush reweight osd.{held_osd} {weight}' gives it its whole size again",
        f"'{_SET}/respect_weights false' fills OSDs by their sizes"),
    codes.POOL_EXCLUDED: (
        "'ceph config rm mgr mgr/equilibrium/{option}' balances all of them",
        "'ceph equilibrium pool add {pool}'",
        "'ceph config rm mgr mgr/equilibrium/pool_ids' balances all pools"),
    codes.OSD_EXCLUDED: (
        "'ceph config rm mgr mgr/equilibrium/{option}' lets shards move there",
        "'ceph config rm mgr mgr/equilibrium/not_buckets' lets shards move everywhere"),
    codes.RULE_UNKNOWN: (
        "give pool {pool} a rule of plain take, choose and emit steps ('ceph osd pool set')",
        "give the pool a rule of plain take, choose and emit steps ('ceph osd pool set')"),
    codes.IMMOVABLE: (
        "'{command}' ends it", "ask what holds a PG by 'ceph equilibrium explain PGID'"),
    codes.EXCHANGE: ("nothing; upmap items cannot exchange OSDs within a PG",),
    codes.GIVEN_UP: (
        "nothing; it is tried again at {until} (max_wait)",
        "nothing; it is tried again after max_wait"),
    codes.REJECTED: (
        "nothing; it is tried again at {until}, or at once by 'ceph equilibrium on'",
        "'ceph equilibrium on' tries them again at once"),
    codes.MISPREDICTED: (
        "'ceph equilibrium on' moves it again, by what was measured",),
    codes.CANNOT_LEAVE: (
        "'ceph equilibrium drain ls' shows what helps for each reason; 'ceph equilibrium drain rm'"
        " ends the drain of what cannot be emptied",),
    codes.TARGET_UNAVAILABLE: (
        "bring osd.{osd} up and in; 'ceph osd tree' shows it",
        "bring the OSDs up and in; 'ceph osd tree' shows them"),

    codes.SWITCHED_OFF: (
        "'ceph equilibrium drain add {drained}' goes on with the drain",
        "'ceph equilibrium on' balances automatically"),
    codes.START_DELAY: (
        "nothing; it ends by itself at {until}", "nothing; it ends by itself (start_delay)"),
    codes.WINDOW: (
        "set begin_time and end_time so that the window opens;"
        " 'ceph config rm mgr mgr/equilibrium/{option}' for the default",
        "nothing; it ends by itself at {until}, when the window opens",
        "nothing; it ends by itself when the window of begin_time and end_time opens"),
    codes.FLAG: ("'ceph osd unset {flag}'", "'ceph osd unset norebalance'"),
    codes.CONFLICT: ("nothing; it ends by itself at {until}", "'ceph balancer off'"),
    codes.OLD_CLIENTS: ("'ceph osd set-require-min-compat-client luminous'",),
    codes.NO_MONITOR: (
        "nothing here; 'ceph quorum_status' and 'ceph health detail' tell which monitors are down",
        ),
    codes.NOT_READY: ("nothing; it ends by itself once the mgr has maps and statistics",),
    codes.STALE_STATISTICS: (
        "restart osd.{osd}, or 'ceph mgr fail' where many OSDs do not report",
        "'ceph mgr fail' where OSDs do not report again by themselves"),
    codes.DEGRADED: (
        "nothing; it ends by itself when recovery has ended ('ceph pg dump_stuck degraded')",),
    codes.PG_NUM_CHANGING: (
        "nothing; it ends by itself when pg_num has its new value ('ceph osd pool ls detail')",),
    codes.SETTLING: (
        "nothing; it ends by itself at {until}", "nothing; it ends by itself within minutes"),
    codes.COOLDOWN: (
        "nothing; it ends by itself at {until} (pg_cooldown)",
        "nothing; it ends by itself (pg_cooldown)"),
    codes.BUSY: ("nothing; it ends by itself when the scrub, repair or trimming has ended",),
    codes.IN_FLIGHT: ("nothing; it ends by itself when the earlier move has arrived",),
    codes.NEARFULL: (
        "add capacity to class {device_class} or delete data; for balancing alone"
        " 'ceph osd set-nearfull-ratio {needed}'",
        "add capacity or delete data; 'ceph osd set-nearfull-ratio RATIO' for balancing alone"),
    codes.TOO_FULL: (
        "nothing; it ends by itself as equilibrium moves data off osd.{relieved}",
        "'{command}', and back when they have arrived",
        "make room on osd.{osd}: delete data, or add capacity",
        "make room on the OSD that is named: delete data, or add capacity"),
    codes.BAD_OPTION: (
        "'ceph config rm mgr mgr/equilibrium/{option}' for the default",
        "'ceph equilibrium status' names the option; 'ceph config rm mgr mgr/equilibrium/OPTION'"
        " gives it its default"),

    codes.NEARFULL_FIRST: (
        "nothing; it ends by itself when no OSD is above nearfull: the fullest is relieved first",),
    codes.SOURCE_FULL: (
        "nothing; it ends by itself when what leaves osd.{osd} is gone",
        "nothing; it ends by itself when what leaves the target is gone"),
    codes.MAX_BACKFILLS: _FASTER,
    codes.MAX_TRANSIT: _FASTER,
    codes.MAX_MOVES: _FASTER,
    codes.MISPLACED_LIMIT: _FASTER,
    codes.MISPLACED_ONE_PG: _FASTER,
    codes.NEXT_BATCH: ("nothing; it ends by itself with the next batch (sleep_interval)",),
    codes.MONITOR_BACKOFF: (
        "nothing; it is tried again at {until}",
        "nothing; it is tried again within an hour; the mgr log has the monitor's answer"),

    codes.BALANCED: (NOTHING,),
    codes.PLANNING: ("nothing; it ends by itself when the plan is made",),
    codes.MOVING: (
        "nothing; it ends by itself, and {what_moves} moves",
        "nothing; it ends by itself when what moves has arrived"),
}

#: Reason of snapshot/immovable_reasons.py → what ends it, as templates over `pgid` and `pool`.
_IMMOVABLE: Mapping[str, str] = {
    immovable.FULL_UPMAP: "'ceph osd rm-pg-upmap {pgid}' lets it move",
    immovable.UPMAP_PRIMARY: "'ceph osd rm-pg-upmap-primary {pgid}' lets it move",
    immovable.OMAP_UNMEASURED: "'ceph pg deep-scrub {pgid}' measures it",
    immovable.INCONSISTENT: "'ceph pg repair {pgid}'",
    immovable.OMAP_ON_SMALL_OSD: f"'{_SET}/min_omap_osd_size 0' moves it unmeasured",
    immovable.RAW_UNKNOWN: "'ceph osd rm-pg-upmap-items {pgid}' lets CRUSH place it",
    immovable.MONITOR_REJECTS: "'ceph osd rm-pg-upmap-items {pgid}' lets CRUSH place it",
    immovable.BREAKS_RULE: "'ceph equilibrium optimize mend --repair' makes a plan that mends it",
    immovable.NO_OSD_FOR_SHARD: "nothing; it ends by itself when it has OSDs for all shards",
    immovable.NO_STATISTICS: "nothing; it ends by itself when its primary has reported",
    immovable.OSD_NOT_REPORTED: "nothing; it ends by itself when its OSDs have reported",
    immovable.STALE: "'ceph pg {pgid} query' and 'ceph health detail' tell why",
    immovable.PG_NUM_CHANGING: "nothing; it ends by itself when pg_num has its new value",
    immovable.DEGRADED_STRETCH: "nothing; it ends by itself when the lost site is back",
    immovable.CACHE_TIER: "nothing; what is in a cache tier is never moved",
    immovable.NO_DATA_SHARDS: "give the pool's erasure-code profile a k",
    immovable.NO_RULE: "give pool {pool} a CRUSH rule that exists ('ceph osd pool set')",
}


def action(code: str, numbers: Mapping[str, Any]) -> str:
    """The action for a reason with these figures; NOTHING where none is needed or possible."""
    for template in ACTIONS.get(code, ()):
        text = _filled(template, numbers)
        if text is not None:
            return text
    return NOTHING


def action_if_immovable(reason: str, pgid: str, pool: str) -> str:
    """What lets a PG move that cannot be moved for a reason of snapshot/immovable_reasons.py."""
    if reason.startswith(immovable.RULE_NOT_SUPPORTED):
        return action(codes.RULE_UNKNOWN, {"pool": pool})
    template = _IMMOVABLE.get(reason)
    return NOTHING if template is None else template.format(pgid=pgid, pool=pool)


def _filled(template: str, numbers: Mapping[str, Any]) -> Optional[str]:
    """The template with its figures; None where one of them is not known."""
    known: Dict[str, Any] = {key: value for key, value in numbers.items() if value is not None}
    fields = [name for _, name, _, _ in Formatter().parse(template) if name]
    return template.format(**known) if all(name in known for name in fields) else None
