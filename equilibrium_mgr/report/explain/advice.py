"""What helps: against a reason, with its figures, by what the loop has seen and counted; and what
comes before balancing: OSDs that are down, PGs that serve no client or have no OSD for a shard,
writes that are stopped, and hosts that a rule cannot use.

For `status` and health checks, which count nothing themselves, and for `explain`.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import (
    Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ...control.balancing_scope import automatic_options, bad_options
from ...control.status import BalancerStatus
from ...execution.guards import BEFORE_QUINCY, TRANSIENT_SECONDS, changing_pg_nums
from ...execution.outcomes import ExcludedPgs, Items, held
from ...observation.cluster_view import (
    BACKFILL, BALANCED, DOWN, FULL, HELD_UP, HIGHEST_RATIO, INACTIVE, MOVING, OFF, PLANNING,
    RECOVERY, STRANDED, STUCK, THROTTLED, UNREPORTED, ClusterView)
from ...observation.refusals import NEAR, fullest_osds
from ...plan.options import (
    FILL_MARGIN, HARD_SHARE, PgShardLimits, PlanOptions, effective_fill_limit,
    raised_nearfull_ratio)
from ...planner.refusal_census import RefusalCensus, RefusalCount
from ...runtime.formatting import (
    format_deadline, format_percent, format_time, named, plural)
from ...runtime.time_slice import grouped
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import NO_OSD_FOR_SHARD
from ...snapshot.model import Osd, Snapshot
from ...snapshot.osds import SILENT_SECONDS
from ...snapshot.operator_weights import BY_REWEIGHT, full_weight
from ..answer import Row


#: Flags of the osdmap that an outage is the longer for, and what each does.
_FLAGS = {"noout": "keeps Ceph from rebuilding their data elsewhere", "noup": "keeps OSDs down",
          "norecover": "holds up recovery", "nobackfill": "holds up backfill"}
_NAMED = 3
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
    excluded: ExcludedPgs = ExcludedPgs(frozenset(), frozenset(), 0.0)
    max_pg_shards: PgShardLimits = PgShardLimits()
    now: float = 0.0   # seconds since the epoch

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as it was last observed."""
        return self.view.snapshot

    @property
    def rejected(self) -> Items:
        """What the monitor did not keep and is left alone for that now."""
        return held(self.status.rejected, self.now)

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

def find_outage(status: BalancerStatus, view: Optional[ClusterView]) -> Optional[Row]:
    """What is wrong with the cluster, and the one thing to do about it first, JSON-ready;
    `since_at`: when the first of it was seen, in seconds since the epoch. None where nothing is to
    be said before balancing."""
    if view is None:
        return None
    snapshot = view.snapshot
    down, full = [[snapshot.osds[osd] for osd in view.troubles[what]] for what in (DOWN, FULL)]
    # PGs that peer are inactive for a moment
    short = {what for what in (INACTIVE, UNREPORTED, STRANDED)
             for since in view.troubles[what].values()
             if down or snapshot.taken_at - since >= TRANSIENT_SECONDS}
    # what is out is missed where PGs are short of OSDs, or wait for room
    down = [osd for osd in down if osd.is_in or short or view.too_full]
    paused = ["pause"] if any(flag.startswith("pause") for flag in snapshot.flags) else []
    if not (down or full or short or paused):
        return None
    inactive = {pool: states.inactive - states.unreported
                for pool, states in snapshot.pool_states.items()
                if states.inactive > states.unreported and INACTIVE in short}
    unreported = {pool: states.unreported for pool, states in snapshot.pool_states.items()
                  if states.unreported and UNREPORTED in short}
    is_new = unreported and snapshot.taken_at - min(
        view.troubles[UNREPORTED].values()) < SILENT_SECONDS
    alive = [osd for osd in snapshot.osds.values() if osd.up and osd.is_in]
    silent = [f"osd.{osd.id}" for osd in alive if osd.id in snapshot.stale_osds
              or not osd.has_statistics] if unreported else []
    stranded = snapshot.skipped[NO_OSD_FOR_SHARD] if STRANDED in short else 0
    # what is out is rebuilt whatever noout says
    flags = [flag for flag in _FLAGS if flag in snapshot.flags and (
        any(osd.is_in for osd in down) if flag == "noout" else down or short and flag != "noup")]
    misplaced = [host for host in unused_hosts(snapshot) if host["pool"]]
    # clients come last: with too few OSDs they would write to what is left
    helps = (_start(down, snapshot) if down else "'ceph osd unset pause'" if paused
             else _make_writable(full, status, view) if full
             else "move host {host} from {under} to the {missing} that it stands in ('ceph osd"
                  " crush move')".format(**misplaced[0]) if misplaced
             else f"'ceph osd unset {flags[-1]}'" if flags and any(
                 states.degraded for states in snapshot.pool_states.values())
             else "add OSDs where the CRUSH rule lacks them: it finds too few for each PG"
             if stranded else "nothing; it ends by itself when their OSDs have reported"
             if is_new and not inactive else
             (f"restart {silent[0]}" if 2 * len(silent) <= len(alive) else "'ceph mgr fail'")
             if silent and not inactive else
             "ask what the PGs that 'ceph health detail' names wait for by 'ceph pg PGID query'")
    fills = named([f"osd.{osd.id} ({format_percent(osd.utilization)}%)" for osd in sorted(
        full, key=lambda osd: -(osd.utilization or 0.0))], _NAMED)
    said = [clause for holds, clause in (
        (paused, "flag pause stops the reads and writes of all clients"),
        (down, f"{plural(len(down), 'OSD')} {'is' if len(down) == 1 else 'are'} down:"
         f" {_places(down, snapshot)}{_seen(view, DOWN, *down)}"),
        (full, f"writes to {_pools(_pools_on(full, snapshot), snapshot)} are stopped: {fills}"
         f" {'is' if len(full) == 1 else 'are'} above full_ratio"
         f" {format_percent(snapshot.full_ratio)}%{_seen(view, FULL)}"),
        (inactive, f"{plural(sum(inactive.values()), 'PG')} of {_pools(inactive, snapshot)} cannot"
         f" be read or written{_seen(view, INACTIVE)}"),
        (unreported, f"{plural(sum(unreported.values()), 'PG')} of {_pools(unreported, snapshot)} "
         + (f"{'has' if sum(unreported.values()) == 1 else 'have'} not been reported yet since this"
            " mgr became active" if is_new else "as far as is known cannot be read or written")
         + (f": {named(silent, _NAMED)} {'does' if len(silent) == 1 else 'do'} not report"
            if silent else "") + _seen(view, UNREPORTED)),
        (stranded and not down and not inactive, f"{plural(stranded, 'PG')}"
         f" {'has' if stranded == 1 else 'have'} no OSD for a shard{_seen(view, STRANDED)}"),
    ) if holds]
    return {"sentence": "; ".join([*said, *[f"flag {flag} {_FLAGS[flag]}" for flag in flags]]),
            "action": helps, "since_at": min(
                [at for seen in view.troubles.values() for at in seen.values()],
                default=snapshot.taken_at),
            "down_osds": [osd.id for osd in down], "full_osds": [osd.id for osd in full],
            "inactive_pgs": sum(inactive.values()) + (
                0 if is_new else sum(unreported.values())), "flags": flags + paused}


def _start(down: Sequence[Osd], snapshot: Snapshot) -> str:
    return ("'ceph osd unset noup'" if "noup" in snapshot.flags else
            f"start {_places(down, snapshot)}; 'ceph osd tree down' lists what is down")


def osd_outage(osd: Osd, context: ExplainContext) -> Optional[Tuple[str, str, str]]:
    """(code, action, sentence) of an OSD that is down, or above full_ratio; None of others."""
    view, status = context.view, context.status
    if not osd.up and not osd.destroyed:
        return (codes.TARGET_UNAVAILABLE, _start([osd], view.snapshot),
                f"osd.{osd.id} is down{_seen(view, DOWN, osd)}")
    if osd.exceeds(view.snapshot.full_ratio):
        return (codes.TOO_FULL, _make_writable([osd], status, view),
                f"osd.{osd.id} is above full_ratio {format_percent(view.snapshot.full_ratio)}%"
                f"{_seen(view, FULL, osd)}: writes to"
                f" {_pools(_pools_on([osd], view.snapshot), view.snapshot)} are stopped")
    return None


def _make_writable(full: Sequence[Osd], status: BalancerStatus, view: ClusterView) -> str:
    """By moving data where there is room for it, else by a higher ratio, else by more room."""
    snapshot = view.snapshot
    full = sorted(full, key=lambda osd: -(osd.utilization or 0.0))
    # the ratio is that of all OSDs
    above = [*full, *(snapshot.osds[osd] for osd in view.troubles[FULL])]
    needed = math.floor(100.0 * max([osd.utilization or 0.0 for osd in above])) / 100.0 + 0.01
    # what is on its way would fill a ratio that only does for now
    raised = f"'ceph osd set-full-ratio {needed:.2f}' lets clients write" * (
        needed <= HIGHEST_RATIO and all(
            view.used_soon[osd.id] < needed * osd.size_bytes for osd in above))
    names = named([f"osd.{osd.id}" for osd in full], _NAMED)
    bounds = view.utilization_bounds.utilizations if view.utilization_bounds is not None else {}
    # log recovery off a full OSD is refused
    if all(bounds.get(osd.id, 1.0) < snapshot.full_ratio for osd in full) and not any(
            entry.state == RECOVERY for entry in view.too_full):
        if all(is_relieved(osd, status) for osd in full):
            return (f"nothing; it ends by itself as equilibrium moves data off {names}"
                    + (f"; {raised} before that" if raised else ""))
        if status.state == OFF and status.progress is None:
            return f"'ceph equilibrium on' moves data off {names} first"
        helps = codes.action(status.reason_code, status.reason_numbers)
        if helps.startswith("'ceph"):
            return helps
    return (f"{raised} again, until data is deleted or OSDs are added" if raised
            else f"delete data, or add OSDs: {names} can take nothing more")


def is_relieved(osd: Osd, status: BalancerStatus) -> bool:
    """True where the plan under way takes shards off the OSD, and not all of them wait; recovery
    holds up only what has not been sent, and a pg_num that changes only as long as data of it is
    copied."""
    is_changing = status.reason_code == codes.PG_NUM_CHANGING and status.view is not None and any(
        move.is_running for move in status.view.movements)
    if status.progress is None or not (
            is_changing or status.state in (MOVING, THROTTLED, PLANNING)):
        return (status.progress is not None and status.reason_code == codes.DEGRADED
                and osd.outbound_bytes > 0)
    return osd.outbound_bytes > 0 or status.state != THROTTLED and any(
        osd.id in set(change.up_before) - set(change.up_after) for change in status.wanted)


def unused_hosts(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """Hosts with OSDs that are up, of which the rule of a pool, or each rule, can use none; JSON-
    ready. `missing`: the type of bucket that a host would have to be in."""
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
        if osds and (pool or reached.isdisjoint(osds)):
            under = next((one.name for one in crush.buckets.values() if "~" not in one.name
                          and bucket.id in [item for item, _ in one.items]), "no root")
            why = (f"and in no {missing}: the rule of pool {pool} cannot use it" if pool
                   else "where no pool's rule reaches it")
            found.append({"host": bucket.name, "under": under, "osds": osds, "pool": pool,
                          "missing": missing, "sentence": f"host {bucket.name}"
                          f" ({plural(len(osds), 'OSD')}) is under {under} {why}"})
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
    """What helps against that for which most shards wait, or against the reason of the state; `now`
    in seconds since the epoch."""
    code, refusals = status.reason_code, status.refusals
    context = None if view is None else ExplainContext(view, status, settings, now=now)
    if context is not None and context.is_too_full:
        return help_for(codes.TOO_FULL, context)
    if context is not None and status.progress is not None and status.waiting:
        return help_for(status.waiting[0].code, context, **status.waiting[0].figures())
    if status.progress is not None and code == codes.SWITCHED_OFF:
        return codes.NOTHING
    if status.state == STUCK and code in _LONG:
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
        excluded=ExcludedPgs(frozenset(), frozenset(), refusals.excluded_seconds),
        max_pg_shards=status.decided_on.max_pg_shards if status.decided_on else PgShardLimits())))


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
    elif codes.REASONS[code].actions is codes.FASTER:
        numbers["faster"] = _faster(numbers, context)
    elif code in _BY_COPYING:
        outage = find_outage(status, context.view)
        if code == codes.DEGRADED and outage is not None:
            return str(outage["action"])
        for flag in sorted({"nobackfill", "norecover"}.intersection(snapshot.flags)):
            return codes.action(codes.FLAG, {"flag": flag})
    said = codes.action(code, numbers)   # a pool that is stopped does not go on by itself
    return codes.action(codes.MISPREDICTED, {}) if (
        status.mispredicted and said.startswith(codes.NOTHING)) else said


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
    osd, moves = numbers.get("osd"), context.view.movements
    release, limit = context.snapshot.osd_release, float(numbers.get("limit") or 0.0)
    busy = {one for move in moves if move.is_running for one in (move.source, move.target)}
    if any(not move.is_running for move in moves if osd in (move.source, move.target)) or (
            osd is None and 2 * len(busy) > len(context.snapshot.osds)):
        if release and release not in BEFORE_QUINCY:
            return "osd osd_mclock_profile high_recovery_ops"
        running = Counter(move.target for move in moves if move.is_running)
        return f"osd osd_max_backfills {max(running.values(), default=1) + 1}" if release else None
    if not limit or numbers.get("halved"):
        return None
    more = max(2.0 * limit, 0.02 * float(numbers.get("own") or 0.0))
    return (f"mgr mgr/equilibrium/{numbers.get('option')}"
            f" {more if limit >= 1.0 else min(more, 1.0):g}")


def _silent_osd(osd: Optional[int], view: ClusterView) -> Optional[int]:
    """The OSD that is to be restarted; None where most of those that are up and in are silent:
    that is not the fault of one of them."""
    stale = view.stale_osds | view.snapshot.stale_osds
    alive = [one.id for one in view.snapshot.osds.values() if one.up and one.is_in]
    return None if 2 * len(stale.intersection(alive)) > len(alive) else osd


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
        numbers.update(limit=limit, most=f"backfillfull less {100.0 * FILL_MARGIN:.0f} points,"
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
    elif code in (codes.COOLDOWN, codes.GIVEN_UP):
        left = context.excluded.seconds
        numbers.update(option="pg_cooldown", limit=settings.pg_cooldown, until=format_deadline(
            context.now + left) if left and context.now else None)
    elif code == codes.STALE_STATISTICS:
        stale = sorted(view.stale_osds | snapshot.stale_osds)
        numbers["osd"] = _silent_osd(stale[0], view) if stale else None
    elif code == codes.TOO_FULL:
        for entry in view.too_full[:1]:
            helped = entry.state == BACKFILL and is_relieved(
                snapshot.osds[entry.osd], context.status)
            numbers.update(command=entry.command(snapshot.full_ratio), osd=entry.osd,
                           relieved=entry.osd if helped else None)
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
