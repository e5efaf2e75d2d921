"""What helps: against a reason, with its figures, by what the loop has seen and counted; and what
comes before balancing: OSDs that are down, PGs that serve no client or have no OSD for a shard,
writes that are stopped, and hosts that a rule cannot use.

For `status` and health checks, which count nothing themselves, and for `explain`.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import (
    Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ...control.balancing_scope import automatic_options, bad_options
from ...control.status import BalancerStatus
from ...execution.guards import BEFORE_QUINCY, TRANSIENT_SECONDS, changing_pg_nums
from ...execution.outcomes import ExcludedPgs, Items
from ...observation.cluster_view import (
    BALANCED, DOWN, FULL, HELD_UP, HIGHEST_RATIO, INACTIVE, MOVING, OFF, PLANNING,
    STRANDED, STUCK, UNREPORTED, ClusterView, TooFull)
from ...observation.movements import CRUSH, HALTING, Movement, SlowOsd, slow_osds
from ...observation.refusals import NEAR, fullest_osds
from ...plan.model import Usage
from ...plan.options import (
    FILL_MARGIN, HARD_SHARE, PgShardLimits, PlanOptions, effective_fill_limit,
    raised_nearfull_ratio)
from ...planner.refusal_census import RefusalCensus, RefusalCount
from ...runtime.formatting import (
    format_deadline, format_percent, format_time, named, plural)
from ...runtime.time_slice import grouped
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import DEGRADED_STRETCH, NO_OSD_FOR_SHARD
from ...snapshot.model import Osd, Pool, Snapshot
from ...snapshot.osds import SILENT_SECONDS
from ...snapshot.operator_weights import BY_REWEIGHT, full_weight
from ...snapshot.pg_states import BACKFILL, BACKFILL_TOOFULL, RECOVERY_TOOFULL, TOOFULL
from ..answer import Row


#: Flags of the osdmap that an outage is the longer for, and what each does.
_FLAGS = {"noout": "keeps Ceph from rebuilding their data elsewhere", "noup": "keeps OSDs down",
          "norecover": "holds up recovery", "nobackfill": "holds up backfill"}
_NAMED = 3
#: What lowers the fullest OSD by so much is worth copying all data of a pool.
WORTH_DOING = 0.03
#: No limit of misplaced copies above this is named: clients wait for backfills.
_MOST_MISPLACED = 0.2
#: Of these the figures of the action take longer than a status may.
_EXPLAIN = "'ceph equilibrium explain' counts what is in the way, and names what helps"
_LONG = (codes.GRANULARITY, codes.IMMOVABLE)
#: What ends only while data is copied.
_BY_COPYING = (codes.DEGRADED, codes.PG_NUM_CHANGING, codes.IN_FLIGHT, codes.SOURCE_FULL,
               codes.NEARFULL_FIRST, codes.MOVING)


class ExplainContext(NamedTuple):
    """The sources of an explanation; nothing is read from the cluster for it."""

    view: ClusterView
    status: BalancerStatus
    settings: Settings
    excluded: ExcludedPgs = ExcludedPgs()
    max_pg_shards: PgShardLimits = PgShardLimits()
    now: float = 0.0   # seconds since the epoch
    #: (snapshot, options, pool id, pg_num) → what a plan with that comes to; None until it is made
    plan_pg_num: Callable[[Snapshot, PlanOptions, int, int], Optional[Usage]] = (
        lambda *_: None)

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as it was last observed."""
        return self.view.snapshot

    @property
    def rejected(self) -> Items:
        """What the monitor did not keep and is left alone for that now."""
        return {pgid: item for pgid, item in self.status.rejected.items()
                if pgid in self.excluded.rejected}

    @property
    def rest_code(self) -> str:
        """The code of the status; of a state at rest, that of before anything was counted."""
        refusals = self.status.refusals
        return self.status.reason_code if refusals is None else refusals.rest_code

    @property
    def is_settled(self) -> bool:
        """True where a plan has found nothing to do; that of a drain alone, while automatic
        balancing is off, was not asked what else would gain."""
        return self.status.state in (STUCK, BALANCED) and self.settings.active

    @property
    def is_too_full(self) -> bool:
        """True where an OSD that is too full for PGs comes before the reason of the state; what an
        operator has set comes before both."""
        return bool(self.view.too_full) and self.status.state in HELD_UP and (
            self.status.reason_code != codes.FLAG)

    @property
    def options(self) -> PlanOptions:
        """The options with which automatic balancing would plan now."""
        return automatic_options(self.settings, self.snapshot, frozenset(self.rejected),
                                 self.max_pg_shards)

    def census(self) -> Optional[RefusalCensus]:
        """Counts refusals with these options; None where the bounds are not known."""
        bounds = self.view.utilization_bounds
        return None if bounds is None else RefusalCensus(
            self.snapshot, self.options, bounds, self.excluded.codes)


# -- what comes before balancing -------------------------------------------------------------------

class _Outage(NamedTuple):
    """What is wrong with the cluster now; PGs by pool id."""

    down: Sequence[Osd]
    full: Sequence[Osd]
    is_paused: bool
    nowhere: Optional[Pool]   # its rule takes buckets without OSDs
    inactive: Mapping[int, int]
    unreported: Mapping[int, int]
    is_new: bool            # these may only not have been reported yet
    silent: Sequence[str]   # OSDs that should report them
    alive: int              # OSDs that are up and in
    stranded: int           # PGs without an OSD for a shard
    flags: Mapping[str, str]   # flag that matters → whose it is; empty for the cluster's own


def find_outage(status: BalancerStatus, view: Optional[ClusterView]) -> Optional[Row]:
    """What is wrong with the cluster, and the one thing to do about it first, JSON-ready;
    `since_at`: when the first of it was seen, in seconds since the epoch. None where nothing is to
    be said before balancing."""
    if view is None:
        return None
    found = _outage_of(view)
    if found is None:
        return None
    unreported = 0 if found.is_new else sum(found.unreported.values())
    since = [at for seen in view.troubles.values() for at in seen.values()]
    return {
        "sentence": "; ".join(_said_of(found, view)),
        "action": _helps_first(found, status, view),
        "since_at": min(since, default=view.snapshot.taken_at),
        "down_osds": [osd.id for osd in found.down],
        "full_osds": [osd.id for osd in found.full],
        "inactive_pgs": sum(found.inactive.values()) + unreported,
        "flags": [*found.flags, *["pause"] * found.is_paused]}


def _outage_of(view: ClusterView) -> Optional[_Outage]:
    snapshot = view.snapshot
    down, full = [[snapshot.osds[osd] for osd in view.troubles[what]] for what in (DOWN, FULL)]
    # PGs that peer are inactive for a moment
    short = {what for what in (INACTIVE, UNREPORTED, STRANDED)
             for since in view.troubles[what].values()
             if down or snapshot.taken_at - since >= TRANSIENT_SECONDS}
    nowhere = _pool_without_osds(snapshot)
    if nowhere is not None:
        short |= {INACTIVE, UNREPORTED}
    # what is out is missed where PGs are short of OSDs, or wait for room
    down = [osd for osd in down if osd.is_in or short or view.too_full]
    is_paused = any(flag.startswith("pause") for flag in snapshot.flags)
    if not (down or full or short or is_paused):
        return None
    inactive: Dict[int, int] = {}
    unreported: Dict[int, int] = {}
    for pool, states in snapshot.pool_states.items():
        if states.inactive > states.unreported and INACTIVE in short:
            inactive[pool] = states.inactive - states.unreported
        if states.unreported and UNREPORTED in short:
            unreported[pool] = states.unreported
    is_new = False
    if unreported and nowhere is None:
        known_at = max(snapshot.taken_at, view.statistics_at or 0.0)
        is_new = known_at - min(view.troubles[UNREPORTED].values()) < SILENT_SECONDS
    silent = [f"osd.{osd}" for osd in sorted(snapshot.alive) if unreported and (
        osd in snapshot.stale_osds or not snapshot.osds[osd].has_statistics)]
    return _Outage(
        down, full, is_paused, nowhere, inactive, unreported, is_new, silent, len(snapshot.alive),
        snapshot.skipped[NO_OSD_FOR_SHARD] if STRANDED in short else 0,
        _flags_on(down, bool(short), snapshot))


def _flags_on(down: Sequence[Osd], is_short: bool, snapshot: Snapshot) -> Dict[str, str]:
    """Returns the flags that the outage is the longer for, and whose they are."""
    found: Dict[str, str] = {}
    for flag in _FLAGS:
        # what is out is rebuilt whatever noout says
        held = [osd for osd in down if osd.is_in or flag != "noout"]
        groups = [name for name, flags in snapshot.group_flags.items()
                  if flag in flags and any(_is_of(osd, name, snapshot) for osd in held)]
        if flag in snapshot.flags and (held or is_short and flag not in ("noout", "noup")):
            found[flag] = ""
        elif groups:
            found[flag] = " ".join(groups)
    return found


def _is_of(osd: Osd, group: str, snapshot: Snapshot) -> bool:
    """Returns True if a flag of the group holds for the OSD."""
    if group in (f"osd.{osd.id}", osd.device_class):
        return True
    crush = snapshot.crush
    return any(bucket.name == group and osd.id in crush.subtree(bucket.id).weights
               for bucket in crush.buckets.values())


def _helps_first(found: _Outage, status: BalancerStatus, view: ClusterView) -> str:
    """Clients come last: with too few OSDs they would write to what is left."""
    snapshot = view.snapshot
    if found.down:
        return _start(found.down, snapshot)
    if found.is_paused:
        return "'ceph osd unset pause'"
    if found.full:
        return _make_writable(found.full, status, view)
    if found.nowhere is not None:
        return _give_rule(found.nowhere, snapshot)
    for host in unused_hosts(snapshot):
        if host["pool"]:
            return (f"move host {host['host']} from {host['under']} to the {host['missing']} that"
                    " it stands in ('ceph osd crush move')")
    if found.flags and any(states.degraded for states in snapshot.pool_states.values()):
        return f"'ceph osd unset {list(found.flags)[-1]}'"
    if DEGRADED_STRETCH in snapshot.skipped:
        return DEGRADED_STRETCH.action("", "")
    if found.stranded:
        return "add OSDs where the CRUSH rule lacks them: it finds too few for each PG"
    if found.is_new and not found.inactive:
        return "nothing; it ends by itself when their OSDs have reported"
    if found.silent and not found.inactive:
        is_most = 2 * len(found.silent) > found.alive   # then it is the mgr
        return "'ceph mgr fail'" if is_most else f"restart {found.silent[0]}"
    return "ask what the PGs that 'ceph health detail' names wait for by 'ceph pg PGID query'"


def _said_of(found: _Outage, view: ClusterView) -> List[str]:
    """Returns the clauses of the sentence, the worst first."""
    snapshot, said = view.snapshot, []
    if found.is_paused:
        said.append("flag pause stops the reads and writes of all clients")
    if found.down:
        said.append(f"{plural(len(found.down), 'OSD is', 'OSDs are')} down:"
                    f" {_places(found.down, snapshot)}{_seen(view, DOWN, *found.down)}")
    if found.full:
        said.append(_writes_stopped(found.full, view))
    if found.inactive:
        said.append(f"{plural(sum(found.inactive.values()), 'PG')} of"
                    f" {_pools(found.inactive, snapshot)} cannot be read or written"
                    f"{_seen(view, INACTIVE)}")
    if found.unreported:
        said.append(_not_reported(found, view))
    if found.nowhere is not None:
        said.append(_no_osds(found.nowhere, snapshot))
    missing = _too_few(snapshot) if found.down else ""
    if found.stranded and (missing or not found.down and not found.inactive):
        until = f" until that is back or another {missing} is added" if missing else (
            _seen(view, STRANDED))
        said.append(f"{plural(found.stranded, 'PG has', 'PGs have')} no OSD for a shard{until}")
    if DEGRADED_STRETCH in snapshot.skipped:
        said.append(f"{DEGRADED_STRETCH}{_seen(view, STRANDED)}")
    for flag, groups in found.flags.items():
        whose = f" of {groups}" if groups else ""
        said.append(f"flag {flag}{whose} {_FLAGS[flag]}")
    return said


def _too_few(snapshot: Snapshot) -> str:
    """Returns the type of bucket of which the rule of a pool finds too few, or empty text."""
    alive, rules = snapshot.alive, dict.fromkeys(pool.rule for pool in snapshot.pools.values())
    blocks = [block for rule in rules if rule is not None for block in rule.blocks]
    return next((domain.type_name for block in blocks for domain in block.domains
                 if domain.shards_per_bucket * len({
                     domain.bucket_of[osd] for osd in alive & block.osds}) < block.positions), "")


def _writes_stopped(full: Sequence[Osd], view: ClusterView) -> str:
    snapshot = view.snapshot
    fills = [f"osd.{osd.id} ({format_percent(view.utilization_now(osd.id))}%)"
             for osd in sorted(full, key=lambda osd: -view.utilization_now(osd.id))]
    verb = "is" if len(full) == 1 else "are"
    return (f"writes to {_pools(_pools_on(full, snapshot), snapshot)} are stopped:"
            f" {named(fills, _NAMED)} {verb} above full_ratio"
            f" {format_percent(snapshot.full_ratio)}%{_seen(view, FULL)}")


def _not_reported(found: _Outage, view: ClusterView) -> str:
    count = sum(found.unreported.values())
    pgs = f"{plural(count, 'PG')} of {_pools(found.unreported, view.snapshot)}"
    verb = "has" if count == 1 else "have"
    text = (f"{pgs} {verb} not been reported yet since this mgr became active" if found.is_new
            else f"{pgs} as far as is known cannot be read or written")
    if found.silent:
        verb = "does" if len(found.silent) == 1 else "do"
        text += f": {named(found.silent, _NAMED)} {verb} not report"
    return text + _seen(view, UNREPORTED)


def _pool_without_osds(snapshot: Snapshot) -> Optional[Pool]:
    """The first pool of which the CRUSH rule takes buckets without OSDs that are in."""
    for pool in snapshot.pools.values():
        if pool.rule is not None and not _reached(pool, snapshot):
            return pool
    return None


def _no_osds(pool: Pool, snapshot: Snapshot) -> str:
    """Names the rule, and the buckets that it takes."""
    takes = sorted({snapshot.crush.buckets[block.take].name for block in pool.blocks
                    if block.take in snapshot.crush.buckets})
    return (f"rule {_rule_name(pool.rule_id, snapshot)} of pool {pool.name} takes"
            f" {named(takes, _NAMED)}, where no OSD is")


def _rule_name(rule_id: int, snapshot: Snapshot) -> str:
    return str(snapshot.crush.rules[rule_id].get("rule_name") or rule_id)


def _reached(pool: Pool, snapshot: Snapshot) -> int:
    """OSDs that are in and that the pool's rule can use."""
    return 0 if pool.rule is None else sum(not snapshot.is_out(osd) for osd in pool.rule.osds())


def _give_rule(pool: Pool, snapshot: Snapshot) -> str:
    """The rule of another pool, as most PGs of its kind have, which reaches enough OSDs."""
    kind = [one for one in snapshot.pools.values() if one.erasure == pool.erasure]
    others = [one for one in kind if _reached(one, snapshot) >= pool.size]
    if not others:
        return (f"give pool {pool.name} a rule with OSDs ('ceph osd pool set {pool.name} crush_rule"
                " RULE'), or delete it")
    rule = _rule_name(max(others, key=lambda one: one.pg_num).rule_id, snapshot)
    return (f"'ceph osd pool set {pool.name} crush_rule {rule}' gives it a rule with OSDs; delete"
            " the pool if nobody needs it")


def _start(down: Sequence[Osd], snapshot: Snapshot) -> str:
    held_by = _flags_on(down, False, snapshot).get("noup")
    if held_by is not None:
        return f"'ceph osd unset-group noup {held_by}'" if held_by else "'ceph osd unset noup'"
    return f"start {_places(down, snapshot)}; 'ceph osd tree down' lists what is down"


def osd_outage(osd: Osd, context: ExplainContext) -> Optional[Tuple[str, str, str]]:
    """(code, action, sentence) of an OSD that is down, or above full_ratio; None of others."""
    view, status = context.view, context.status
    if osd.id in view.troubles[DOWN]:
        return (codes.TARGET_UNAVAILABLE, _start([osd], view.snapshot),
                f"osd.{osd.id} is down{_seen(view, DOWN, osd)}")
    if osd.id in view.troubles[FULL]:
        return (codes.TOO_FULL, _make_writable([osd], status, view),
                f"osd.{osd.id} is above full_ratio {format_percent(view.snapshot.full_ratio)}%"
                f"{_seen(view, FULL, osd)}: writes to"
                f" {_pools(_pools_on([osd], view.snapshot), view.snapshot)} are stopped")
    return None


def _make_writable(full: Sequence[Osd], status: BalancerStatus, view: ClusterView) -> str:
    """By moving data where there is room for it, else by a higher ratio, else by more room."""
    snapshot = view.snapshot
    full = sorted(full, key=lambda osd: -view.utilization_now(osd.id))
    # the ratio is that of all OSDs
    above = [*full, *(snapshot.osds[osd] for osd in view.troubles[FULL])]
    needed = math.floor(100.0 * max([view.utilization_now(osd.id) for osd in above])) / 100.0 + 0.01
    # what is on its way would fill a ratio that only does for now
    raised = f"'ceph osd set-full-ratio {needed:.2f}' lets clients write" * (
        needed <= HIGHEST_RATIO and all(
            view.used_soon[osd.id] < needed * osd.size_bytes for osd in above))
    names = named([f"osd.{osd.id}" for osd in full], _NAMED)
    bounds = view.utilization_bounds.utilizations if view.utilization_bounds is not None else {}
    # log recovery off a full OSD is refused
    if all(bounds.get(osd.id, 1.0) < snapshot.full_ratio for osd in full) and not any(
            entry.state == RECOVERY_TOOFULL for entry in view.too_full):
        if crush_crowds_out(view):
            return codes.FREEZE
        if all(is_relieved(osd, status, view) for osd in full):
            return (f"nothing; it ends by itself as data leaves {names}"
                    + (f"; {raised} before that" if raised else ""))
        if status.state == OFF and status.progress is None:
            return f"'ceph equilibrium on' moves data off {names} first"
        helps = codes.action(status.reason_code, status.reason_numbers)
        if helps.startswith("'ceph"):
            return helps
    return (f"{raised} again, until data is deleted or OSDs are added" if raised
            else f"delete data, or add OSDs: {names} can take nothing more")


def is_relieved(osd: Osd, status: BalancerStatus, view: ClusterView) -> bool:
    """Returns True if a shard that runs, or gets its turn behind others, leaves the OSD, whoever
    moves it; or if the plan under way is about to send one."""
    leaving = [move for move in view.movements if move.source == osd.id]
    is_copying = {"nobackfill", "norecover"}.isdisjoint(view.snapshot.flags)
    if is_copying and any(_gets_on(move, view) for move in leaving):
        return True
    if status.progress is None or status.state not in (MOVING, PLANNING):
        return False
    return any(osd.id in change.lost_by for change in status.wanted)


def _gets_on(move: Movement, view: ClusterView) -> bool:
    """Returns True unless the shard waits for an OSD that is too full."""
    if move.is_running or TOOFULL in move.state:
        return move.is_running
    full = {entry.osd for entry in view.too_full}
    return move.target not in full and any(one.is_running for one in view.movements)


def crush_crowds_out(view: ClusterView) -> bool:
    """Returns True if an expansion has misplaced more than the limit beside an OSD above
    nearfull that nothing leaves now: `freeze` lets the plan relieve that first."""
    snapshot = view.snapshot
    if view.misplaced_ratio <= view.max_misplaced_ratio or "norebalance" in snapshot.flags:
        return False
    keeping = {osd.id for osd in snapshot.osds.values() if osd.is_for_data and osd.share == 1.0}
    frozen = [move for move in view.movements if BACKFILL in move.state]   # these can be
    spread = sum(move.left_bytes for move in frozen
                 if move.origin == CRUSH and move.source in keeping)
    if 2 * spread <= sum(move.left_bytes for move in view.movements):
        return False
    left = {move.source for move in view.movements if move.is_running}
    return any(osd.reaches(snapshot.nearfull_ratio) and osd.id not in left
               for osd in snapshot.osds.values())


def unused_hosts(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """Hosts of which the rule of a pool can use no OSD, or with `osds` that are up and that no
    rule can use; JSON-ready. `missing`: the type of bucket that a host would have to be in."""
    crush = snapshot.crush
    rules = {pool.rule_id: (pool, pool.rule) for pool in snapshot.pools.values() if pool.rule}
    reached = {osd for _, rule in rules.values() for osd in rule.osds()}
    found: List[Dict[str, Any]] = []
    for bucket in crush.buckets.values():
        if bucket.type_name != "host" or "~" in bucket.name or not rules:
            continue
        osds = [osd for osd, weight in crush.subtree(bucket.id).weights.items()
                if weight > 0.0 and osd in snapshot.osds and snapshot.osds[osd].up]
        # under what a rule takes that can use none of them, but in no bucket of a type it needs
        pool, missing = next((
            (pool.name, domain.type_name) for pool, rule in rules.values()
            if rule.osds().keys().isdisjoint(osds) for block in rule.blocks
            for domain in block.domains for osd in osds
            if crush.subtree(block.take).weights.get(osd) and osd not in domain.bucket_of),
            ("", ""))
        idle = osds if pool else [osd for osd in osds if osd not in reached]
        if idle:
            under = next((one.name for one in crush.buckets.values() if "~" not in one.name
                          and bucket.id in [item for item, _ in one.items]), "no root")
            classes = sorted({snapshot.osds[osd].device_class for osd in idle})
            why = (f"and in no {missing}: the rule of pool {pool} cannot use it" if pool
                   else f"where no pool's rule uses class {', '.join(classes)}")
            found.append({"host": bucket.name, "under": under, "osds": idle, "pool": pool,
                          "missing": missing, "sentence": f"host {bucket.name}"
                          f" ({plural(len(idle), 'OSD')}) is under {under} {why}"})
    return found


# -- words -----------------------------------------------------------------------------------------

def _seen(view: ClusterView, what: str, *osds: Osd) -> str:
    """Since when: of the OSDs, or of all; empty where that is not known."""
    seen = view.troubles.get(what, {})
    times = [seen[osd.id] for osd in osds if osd.id in seen] if osds else list(seen.values())
    return f", seen since {format_time(min(times))} UTC" if times else ""


def _places(osds: Iterable[Osd], snapshot: Snapshot) -> str:
    """Hosts of which all OSDs are meant, then single OSDs; the first few, and a count."""
    by_host = grouped((osd.host, osd.id) for osd in osds)
    sizes = {host: sum(osd.host == host for osd in snapshot.osds.values()) for host in by_host}
    whole = [f"all of host {host}" for host, found in by_host.items()
             if host and len(found) == sizes[host] > 1]
    single = [f"osd.{osd} of {host or 'no host'}" for host, found in by_host.items()
              if not host or not len(found) == sizes[host] > 1 for osd in sorted(found)]
    return named(whole + single, _NAMED)


def _pools_on(osds: Sequence[Osd], snapshot: Snapshot) -> List[int]:
    """Pools whose rule reaches one of the OSDs: Ceph stops the writes of all of these."""
    return [pool.id for pool in snapshot.pools.values()
            if pool.rule is None or any(osd.id in pool.rule.osds() for osd in osds)]


def _pools(pools: Iterable[int], snapshot: Snapshot) -> str:
    names = [snapshot.pools[pool].name for pool in pools if pool in snapshot.pools]
    return f"{'pool' if len(names) == 1 else 'pools'} {named(names, _NAMED)}"


# -- what helps ------------------------------------------------------------------------------------

def state_action(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                 now: float) -> str:
    """What helps against that for which most shards wait, or against the reason of the state, or
    where what comes does not fit; `now` in seconds since the epoch."""
    return with_room(_state_action(status, view, settings, now), status, view)


def with_room(helps: str, status: BalancerStatus, view: Optional[ClusterView]) -> str:
    """Returns what makes room where `helps` is to wait, and an OSD passes backfillfull_ratio with
    what comes, or all of a class is above nearfull_ratio: waiting does not end it."""
    if view is None or not helps.startswith(codes.NOTHING):
        return helps
    if _silent_osd(0, view) is None:   # no figure is of now
        return codes.action(codes.STALE_STATISTICS, {})
    slow = slow_osds(view.rates, view.movements, view.snapshot)
    if slow and not helps.startswith(f"{codes.NOTHING} here"):
        return _look_at(slow[0])
    found, backfillfull = view.will_not_fit(), view.snapshot.backfillfull_ratio
    fits = not found or found[0].ratio_name == "nearfull_ratio"
    for name, bound in view.bounds.items():
        if bound >= (view.snapshot.nearfull_ratio if fits else backfillfull):
            return (f"{_more_room(name, view.snapshot)}: no placement is below"
                    f" {format_percent(bound)}%")
    if fits:
        return helps
    worst = found[0]
    add = _more_room(worst.device_class, view.snapshot)
    planned = view.planned(status.wanted).used[worst.osd]
    if planned < backfillfull * view.snapshot.osds[worst.osd].size_bytes:
        return (f"nothing; the plan under way moves what is too much off osd.{worst.osd}; {add} if"
                " its %SOON does not fall")
    out = [str(osd.id) for osd in view.snapshot.osds.values()
           if osd.up and not osd.is_in and osd.device_class == worst.device_class]
    if out:
        return f"'ceph osd in {' '.join(out)}' brings back room that is out; or {add}"
    return f"{add}: osd.{worst.osd} has no room for what comes"


def _more_room(device_class: str, snapshot: Snapshot) -> str:
    """Returns what gives a class more room; OSDs that Ceph has marked out come first."""
    lost = [osd for osd in snapshot.osds.values()
            if not osd.up and not osd.is_in and osd.device_class == device_class]
    add = f"add capacity to class {device_class}, or delete data"
    return f"start {_places(lost, snapshot)}, or {add}" if lost else add


def _look_at(slow: SlowOsd) -> str:
    """Returns what tells whether the scheduler of a slow OSD holds it back, or its disk."""
    name, kind = f"osd.{slow.osd}", "hdd" if slow.device_class == "hdd" else "ssd"
    return (f"'ceph config show {name} osd_mclock_max_capacity_iops_{kind}' shows what it is taken"
            f" to be capable of, 'ceph tell {name} bench' what its disk does: compare both with"
            " those of others of its class; an OSD that it copies with may be the slow one")


def room_clauses(found: Sequence[Mapping[str, Any]]) -> List[str]:
    """Returns which OSDs pass which ratio with what comes; `found`: WillNotFit, JSON-ready."""
    fills = grouped((f"{one['ratio_name']} {format_percent(one['ratio'])}%",
                     f"osd.{one['osd']} ({format_percent(one['soon_utilization'])}%)")
                    for one in found)
    return [f"what comes will not fit: {named(osds, _NAMED)} will be above {ratio}"
            for ratio, osds in fills.items()]


def _state_action(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                  now: float) -> str:
    code, refusals = status.reason_code, status.refusals
    context = None if view is None else ExplainContext(view, status, settings, now=now)
    if view is not None and status.progress is not None and crush_crowds_out(view):
        return codes.FREEZE
    if context is not None and context.is_too_full:
        return help_for(codes.TOO_FULL, context)
    if context is not None and status.progress is not None and status.waiting:
        return help_for(status.waiting[0].code, context, **status.waiting[0].figures())
    if status.progress is not None and code == codes.SWITCHED_OFF:
        return codes.NOTHING
    if status.state == STUCK and code in _LONG or context is not None and _is_worth(context):
        return _EXPLAIN
    if context is None:
        return codes.action(code, {**status.reason_numbers, **_paused_drain(status)})
    found = None if refusals is None else refusals.census.of(refusals.code)
    snapshot = context.snapshot
    if refusals is None or found is not None and not (   # the view may be a newer one
            found.example[0] in snapshot.pgs and set(found.pools) <= set(snapshot.pools)
            and {*found.targets, *found.example[1:]} <= set(snapshot.osds)):
        return help_for(code, context)
    if code == codes.MIN_GAIN and refusals.rest_code != codes.MIN_GAIN:
        return codes.NOTHING   # the option is not the cause
    return codes.action(code, numbers_of(code, refusals.census.of(code), context._replace(
        excluded=ExcludedPgs({"": code}, {"": refusals.excluded_seconds}),
        max_pg_shards=status.decided_on.max_pg_shards if status.decided_on else PgShardLimits())))


def _is_worth(context: ExplainContext) -> bool:
    """Returns True if `explain` may have advice for a cluster that moves nothing: whole shards, or
    lowered weights, keep the fullest OSD clearly above what its set could be at."""
    if context.status.state != BALANCED or not context.settings.active:
        return False
    fullest = fullest_osds(context.view, context.settings.device_classes)
    if fullest and fullest[0].above >= WORTH_DOING:
        return True
    figures = [one["figures"] for one in weights_advice(context)]
    return any(one["bound_ratio"] - one["proven_ratio"] >= WORTH_DOING for one in figures)


def help_for(code: str, context: ExplainContext, **more: Any) -> str:
    """The action for a reason of the loop; `more`: figures of what waits for it."""
    status, snapshot = context.status, context.snapshot
    numbers = {**(status.reason_numbers if status.reason_code == code else {}),
               **numbers_of(code, None, context),
               **{key: value for key, value in more.items() if value is not None},
               **_paused_drain(status)}
    if status.until_at is not None:
        numbers.setdefault("until", format_deadline(status.until_at))
    if code == codes.STALE_STATISTICS:
        numbers["osd"] = _silent_osd(numbers.get("osd"), context.view)
    elif code == codes.FILL_LIMIT and numbers.get("osd") in snapshot.osds and (
            not snapshot.osds[numbers["osd"]].outbound_bytes):
        numbers["osd"] = None   # nothing leaves it
    elif code == codes.REWEIGHT and numbers.get("osd") in snapshot.osds:
        held = snapshot.osds[numbers["osd"]]
        if held.held_by != BY_REWEIGHT:
            numbers.update(osd=None, held_osd=held.id, weight=full_weight(held))
    elif codes.REASONS[code].actions is codes.FASTER:
        numbers["faster"] = _faster(numbers, context)
    elif code in _BY_COPYING:
        outage = find_outage(status, context.view)
        if code == codes.DEGRADED and outage is not None:
            return str(outage["action"])
        flags = HALTING.intersection(snapshot.flags)
        # what has lost copies is recovered all the same
        for flag in sorted(flags - {"norebalance"} if code == codes.DEGRADED else flags):
            return codes.action(codes.FLAG, {"flag": flag})
    return codes.action(code, numbers)


def _paused_drain(status: BalancerStatus) -> Dict[str, Any]:
    """What the action of `off` has where a drain with shards left is paused: `drained`, the names
    as they were given."""
    drains = status.drains
    names = sorted({name for osd, name in drains.drains.names.items()
                    if osd not in drains.empty_osds})
    return {"drained": " ".join(names)} if drains.drains.is_paused and names else {}


def _faster(numbers: Dict[str, Any], context: ExplainContext) -> Optional[str]:
    """What lets more be copied at a time: ours where OSDs are idle, Ceph's own limit where shards
    in flight wait for that, be it at the OSD that is waited for or at half of them all."""
    osd, view = numbers.get("osd"), context.view
    release, limit = context.snapshot.osd_release, float(numbers.get("limit") or 0.0)
    running = [move for move in view.movements if move.is_running]
    busy = {one for move in running for one in (move.source, move.target)}
    waiting = [move for move in view.movements if not move.is_running]
    waits_there = any(osd in (move.source, move.target) for move in waiting)
    if waits_there or osd is None and 2 * len(busy) > len(context.snapshot.osds):
        is_set = view.copying_options.get
        if release and release not in BEFORE_QUINCY:
            is_fastest = is_set("osd_mclock_profile") == "high_recovery_ops"
            return None if is_fastest else "osd osd_mclock_profile high_recovery_ops"
        most = max(Counter(move.target for move in running).values(), default=1)
        # more is set already
        if not release or view.stacked_backfills or is_set("osd_max_backfills", most) > most:
            return None
        return f"osd osd_max_backfills {most + 1}"
    if not limit or numbers.get("halved"):
        return None
    option, own = str(numbers.get("option")), 0.01 * float(numbers.get("own") or 0.0)
    more = max(2.0 * limit, 2.0 * own)
    if option.endswith("misplaced_ratio"):
        needed = _needed_misplaced(view, own)
        if needed > limit and any(one.reaches(context.snapshot.backfillfull_ratio)
                                  for one in context.snapshot.osds.values()):
            return f"mgr mgr/equilibrium/urgent_misplaced_ratio {min(needed, 1.0):g}"
        if needed > more:   # most of that is not ours
            return None
    return f"mgr mgr/equilibrium/{option} {more if limit >= 1.0 else min(more, 1.0):g}"


def _needed_misplaced(view: ClusterView, own: float) -> float:
    """The limit with which a shard of `own` copies may go beside what is misplaced; ratios."""
    return math.ceil(100.0 * (1.1 * view.misplaced_ratio + own)) / 100.0


def _room_by_limit(entry: TooFull, context: ExplainContext) -> Optional[str]:
    """The option that lets the plan make room on an OSD; None if the misplaced limit is not in the
    way, or most of what is misplaced would have to be allowed for."""
    view, status = context.view, context.status
    needed = _needed_misplaced(view, 0.01)
    if needed > _MOST_MISPLACED or codes.MISPLACED_LIMIT not in [
            group.code for group in status.waiting]:
        return None
    leaving = [change for change in status.wanted if entry.osd in change.up_before]
    is_urgent = view.snapshot.osds[entry.osd].reaches(view.snapshot.backfillfull_ratio)
    option = "urgent_misplaced_ratio" if is_urgent else "max_misplaced_ratio"
    return f"mgr mgr/equilibrium/{option} {needed:g}" if leaving else None


def _silent_osd(osd: Optional[int], view: ClusterView) -> Optional[int]:
    """The OSD that is to be restarted; None where most of those that are up and in are silent:
    that is not the fault of one of them."""
    alive, stale = view.snapshot.alive, view.stale_osds | view.snapshot.stale_osds
    return None if 2 * len(stale & alive) > len(alive) else osd


def numbers_of(code: str, found: Optional[RefusalCount],
               context: ExplainContext) -> Dict[str, Any]:
    """The figures of a reason that its action may name; `found`: its count where it has one."""
    snapshot, settings, view = context.snapshot, context.settings, context.view
    numbers: Dict[str, Any] = {}
    if found is not None:
        numbers.update(pgid=found.example[0], pool=pool_counts(found.pools, snapshot)[0]["name"],
                       device_class=snapshot.osds[found.example[1]].device_class)
    if codes.REASONS[code].option in ("fill_limit", "max_upmap_items", "min_gain", "pg_cooldown"):
        numbers.update(option=codes.REASONS[code].option,
                       limit=getattr(settings, codes.REASONS[code].option))
    if code == codes.FILL_LIMIT:   # `needed`: to their bound and by one shard more, up to the most
        most, limit = (effective_fill_limit(wanted, snapshot.backfillfull_ratio)
                       for wanted in (0.0, settings.fill_limit))
        numbers.update(lower=limit if limit < most else None, most=f"backfillfull less {100.0 * FILL_MARGIN:.0f} points,"
                       f" here {format_percent(most)}%")
        bounds = view.utilization_bounds
        if found is not None and bounds is not None and limit < most:
            size = snapshot.pgs[found.example[0]].shard_bytes
            highest = max(bounds.utilizations.get(osd, 0.0) + size / snapshot.osds[osd].size_bytes
                          for osd in found.targets)
            numbers["needed"] = f"{min(math.ceil(100.0 * highest + 1.0) / 100.0, most):.2f}"
    elif code == codes.UPMAP_ITEMS:
        numbers["needed"] = 0 if settings.max_upmap_items == 1.0 else 1
    elif code == codes.PG_COUNT:   # `needed`: a tenth above what the fullest of the targets has
        mean, allowed = context.max_pg_shards
        numbers.update(limit=allowed or None)
        if found is not None and mean:
            counts = [sum(int(shards.get(osd, 0)) for shards in view.counts.soon.values())
                      for osd in (*found.targets, found.example[1])]
            numbers["needed"] = math.ceil(
                10.0 * (1.1 * max(allowed, *counts) + 1) / (HARD_SHARE * mean)) / 10.0
    elif code == codes.REWEIGHT:
        held = [snapshot.osds[osd] for osd in (found.targets if found else ())
                if snapshot.osds[osd].share < 1.0]
        for least in sorted(held, key=lambda one: (one.share, one.id))[:1]:
            numbers.update({"osd": least.id} if least.held_by == BY_REWEIGHT else {
                "held_osd": least.id, "weight": full_weight(least)})
    elif code == codes.POOL_EXCLUDED:
        chosen, pools = settings.pool_ids, sorted(found.pools) if found else []
        left_out = [snapshot.pools[pool].name for pool in pools
                    if chosen is not None and pool not in chosen]
        numbers.update({"pool": left_out[0] if left_out else None}
                       if chosen is not None and (left_out or not pools)
                       else {"option": "device_classes"})
    elif code == codes.OSD_EXCLUDED:
        numbers["option"] = excluding_option(settings)
    elif code == codes.NEARFULL:
        numbers.update(needed=raised_nearfull_ratio(snapshot.backfillfull_ratio),
                       limit=snapshot.nearfull_ratio)
    elif code in (codes.BOUND_CAPACITY, codes.BOUND_DOMAIN):
        osd_set = fullest_osds(view, settings.device_classes)[0].osd_set
        if osd_set.bound >= snapshot.nearfull_ratio:   # the class where OSDs have to be nearfull
            numbers["full_class"] = osd_set.name
    elif code in codes.FOR_A_TIME:
        left = context.excluded.seconds_of(code)
        numbers.update(option="pg_cooldown", limit=settings.pg_cooldown)
        if left and context.now:
            numbers["until"] = format_deadline(context.now + left)
    elif code == codes.STALE_STATISTICS:
        stale = sorted(view.stale_osds | snapshot.stale_osds)
        numbers["osd"] = _silent_osd(stale[0], view) if stale else None
    elif code == codes.TOO_FULL:
        for entry in view.too_full[:1]:
            helped = entry.state == BACKFILL_TOOFULL and is_relieved(
                snapshot.osds[entry.osd], context.status, view)
            numbers.update(command=entry.command(snapshot.full_ratio), osd=entry.osd,
                           relieved=entry.osd if helped else None,
                           faster=_room_by_limit(entry, context))
    elif code == codes.MISPLACED_LIMIT:
        numbers.update(option="max_misplaced_ratio", limit=view.max_misplaced_ratio,
                       halved=bool(changing_pg_nums(snapshot)))
    elif code == codes.BAD_OPTION:
        bad = bad_options(settings, snapshot)
        numbers["option"] = bad[0].option if bad else None
    return numbers


def weights_advice(context: ExplainContext) -> List[Row]:
    """What lowered weights cost each OSD set, against its sizes alone, and how to leave them, JSON-
    ready; ratios."""
    bounds = context.view.utilization_bounds
    found: List[Row] = []
    if bounds is None:
        return found
    for name, cut in bounds.at_bound.items():
        held = [osd for osd in context.snapshot.osds.values()
                if osd.share < 1.0 and context.snapshot.set_of(osd.id) == name and osd.is_for_data]
        bound, proof = bounds.highest[name], bounds.cuts.get(cut)
        if not held or proof is None or bound - proof.least_utilization < NEAR:
            continue
        proven = proof.least_utilization
        reweights = [f"'ceph osd reweight {osd.id} 1'" for osd in held if osd.reweight < 1.0] + [
            f"'ceph osd crush reweight osd.{osd.id} {full_weight(osd)}'" for osd in held
            if osd.held_by != BY_REWEIGHT]
        helps = codes.action(codes.REWEIGHT, {"reweights": ", ".join(reweights)})
        found.append({
            "code": codes.REWEIGHT, "sentence": f"the lowered weights of"
            f" {plural(len(held), 'OSD')} lead to {format_percent(bound)}% on the fullest of class"
            f" {name}, its sizes alone to {format_percent(proven)}%; if the weights are from"
            f" another time, {helps}", "figures": {
                "device_class": name, "bound_ratio": bound, "proven_ratio": proven,
                "held_osds": [osd.id for osd in held], "reweights": reweights}})
    return found


def excluding_option(settings: Settings) -> str:
    """The first filter that is set, by which OSDs are left out."""
    return next((name for name in ("to_buckets", "not_buckets", "from_buckets")
                 if getattr(settings, name) is not None), "not_buckets")


def pool_counts(found: Mapping[int, int], snapshot: Snapshot) -> List[Row]:
    """The counts of pools, the largest first."""
    return [{"id": pool, "name": snapshot.pools[pool].name, "count": count}
            for pool, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]
