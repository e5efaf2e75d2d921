"""Finds what comes before balancing: OSDs that are down or above full_ratio, PGs that serve no
client or lack an OSD for a shard, rules that reach no OSD, clients stopped by the flag pause. Also
hosts that no rule uses.

`status`, health checks and `explain` show it, with the one thing to do first.
"""
from __future__ import annotations

from collections import Counter
from typing import (
    Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

from ...control.status import BalancerStatus
from ...crush.hierarchy import CrushHierarchy
from ...execution.guards import TRANSIENT_SECONDS
from ...observation.cluster_view import (
    DOWN, FULL, INACTIVE, STRANDED, UNREPORTED, ClusterView)
from ...observation.movements import HALTING, rebuild_time_left
from ...plan.options import osds_named
from ...runtime.formatting import format_duration, format_percent, format_time, named, plural
from ...runtime.time_slice import grouped
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import DEGRADED_STRETCH, NO_OSD_FOR_SHARD
from ...snapshot.model import Osd, Pool, Snapshot
from ...snapshot.osds import SILENT_SECONDS
from ..answer import Row
from .relief import MOST_NAMED, make_writable


#: Flags of the osdmap that make an outage longer, and what each does.
_FLAGS = {"noout": "keeps Ceph from rebuilding their data elsewhere", "noup": "keeps OSDs down",
          "norecover": "holds up recovery", "nobackfill": "holds up backfill"}


class _Outage(NamedTuple):
    """Everything that is wrong with the cluster now; PGs by pool id."""

    down: Sequence[Osd]
    full: Sequence[Osd]
    is_paused: bool
    nowhere: Optional[Pool]   # its rule takes buckets without OSDs
    inactive: Mapping[int, int]     # without the unreported
    unreported: Mapping[int, int]
    is_new: bool            # it is too early to call the unreported inactive
    silent: Sequence[str]   # OSDs that do not report
    stranded: int           # PGs without an OSD for a shard
    flags: Mapping[str, str]   # flag of _FLAGS → groups with that flag; empty text: the cluster


def find_outage(status: BalancerStatus, view: Optional[ClusterView]) -> Optional[Row]:
    """Returns a sentence about everything wrong with the cluster and the one action to take first,
    JSON-ready; None if nothing comes before balancing. `since_at`: when the module first saw the
    oldest trouble, seconds since the epoch."""
    if view is None:
        return None
    found = _outage_of(view)
    if found is None:
        return None
    inactive = sum(found.inactive.values())
    if not found.is_new:
        inactive += sum(found.unreported.values())
    flags = list(found.flags)
    if found.is_paused:
        flags.append("pause")
    action = _first_action(found, status, view)
    if status.steering_waits_for:
        action += f"; {codes.GIVE_WAY.format(plan=status.steering_waits_for)}"
    since = [min(seen.values()) for seen in view.troubles.values() if seen]
    return {
        "sentence": "; ".join(_clauses(found, view)),
        "action": action,
        "since_at": min(since, default=view.snapshot.taken_at),
        "down_osds": [osd.id for osd in found.down],
        "full_osds": [osd.id for osd in found.full],
        "inactive_pgs": inactive,
        "flags": flags}


def rebuilding_text(view: ClusterView) -> str:
    """Returns a sentence about OSDs that are down and out while PGs lack copies, and about the time
    that their rebuild takes; else empty text."""
    snapshot = view.snapshot
    gone = [snapshot.osds[osd] for osd in view.troubles[DOWN] if not snapshot.osds[osd].is_in]
    degraded = sum([states.degraded for states in snapshot.pool_states.values()])
    if not gone or not degraded:
        return ""
    text = (f"{plural(len(gone), 'OSD is', 'OSDs are')} down and out: {places(gone, snapshot)};"
            " unless they start again, Ceph rebuilds missing shards elsewhere:"
            f" {plural(degraded, 'PG is', 'PGs are')} degraded")
    left = rebuild_time_left(view.rates, view.movements)
    if left is not None and HALTING.isdisjoint(snapshot.flags):
        text += f", about {format_duration(left.seconds)} left"
    return text


def _outage_of(view: ClusterView) -> Optional[_Outage]:
    snapshot = view.snapshot
    troubles = view.troubles
    osds = snapshot.osds
    states = snapshot.pool_states
    nowhere = _pool_without_osds(snapshot)
    lasting = _lasting_troubles(view)
    if nowhere is not None:
        lasting |= {INACTIVE, UNREPORTED}
    down = [osds[osd] for osd in troubles[DOWN]]
    if not lasting and not view.too_full:
        # nobody misses an OSD that is out unless PGs lack OSDs or available space
        down = [osd for osd in down if osd.is_in]
    full = [osds[osd] for osd in troubles[FULL]]
    is_paused = any(flag.startswith("pause") for flag in snapshot.flags)
    if not any((down, full, lasting, is_paused)):
        return None
    inactive: Dict[int, int] = {}
    if INACTIVE in lasting:
        for pool in troubles[INACTIVE]:
            inactive[pool] = states[pool].inactive - states[pool].unreported
    unreported: Dict[int, int] = {}
    silent: List[str] = []
    if UNREPORTED in lasting and troubles[UNREPORTED]:
        unreported = {pool: states[pool].unreported for pool in troubles[UNREPORTED]}
        silent = [f"osd.{osd}" for osd in sorted(snapshot.alive)
                  if osd in snapshot.stale_osds or not osds[osd].has_statistics]
    stranded = 0
    if STRANDED in lasting:
        stranded = snapshot.skipped[NO_OSD_FOR_SHARD]
    return _Outage(
        down=down,
        full=full,
        is_paused=is_paused,
        nowhere=nowhere,
        inactive=inactive,
        unreported=unreported,
        is_new=bool(unreported) and nowhere is None and _is_new(view),
        silent=silent,
        stranded=stranded,
        flags=_flags_on(down, bool(lasting), snapshot))


def _lasting_troubles(view: ClusterView) -> Set[str]:
    """Returns the troubles of PGs that have lasted longer than peering does; all of them while an
    OSD is down."""
    found = set()
    for what in (INACTIVE, UNREPORTED, STRANDED):
        for since in view.troubles[what].values():
            if view.troubles[DOWN] or view.snapshot.taken_at - since >= TRANSIENT_SECONDS:
                found.add(what)
    return found


def _is_new(view: ClusterView) -> bool:
    """Returns True if OSDs have had too little time to report the unreported PGs."""
    known_at = max(view.snapshot.taken_at, view.statistics_at or 0.0)
    return known_at - min(view.troubles[UNREPORTED].values()) < SILENT_SECONDS


def _flags_on(down: Sequence[Osd], is_short: bool, snapshot: Snapshot) -> Dict[str, str]:
    """Returns the flags that make the outage longer → the groups that have each. `is_short`: PGs
    serve no client, or lack an OSD."""
    found: Dict[str, str] = {}
    for flag in _FLAGS:
        # Ceph rebuilds the data of an OSD that is out in spite of noout
        held = [osd for osd in down if osd.is_in or flag != "noout"]
        matters = bool(held)
        if is_short and flag not in ("noout", "noup"):
            matters = True
        if matters and flag in snapshot.flags:
            found[flag] = ""
            continue
        groups = [name for name, flags in snapshot.group_flags.items()
                  if flag in flags and _is_of_one(held, name, snapshot)]
        if groups:
            found[flag] = " ".join(groups)
    return found


def _is_of_one(osds: Sequence[Osd], group: str, snapshot: Snapshot) -> bool:
    """Returns True if one of the OSDs belongs to the group."""
    inside = osds_named(group, snapshot.crush) or frozenset()
    return any(osd.id in inside or osd.device_class == group for osd in osds)


def _first_action(found: _Outage, status: BalancerStatus, view: ClusterView) -> str:
    """Returns what to do first. Starting OSDs comes before unpausing clients: with too few OSDs
    clients would fill those that are left."""
    snapshot = view.snapshot
    if found.down:
        return _start(found.down, snapshot)
    if found.is_paused:
        return "'ceph osd unset pause'"
    if found.full:
        return make_writable(found.full, status, view)
    if found.nowhere is not None:
        return _give_rule(found.nowhere, snapshot)
    for host in unused_hosts(snapshot):
        if host["pool"]:
            return ("move host {host} from {under} to the {missing} that it stands in"
                    " ('ceph osd crush move')").format(**host)
    if found.flags and any(states.degraded for states in snapshot.pool_states.values()):
        return f"'ceph osd unset {list(found.flags)[-1]}'"
    if DEGRADED_STRETCH in snapshot.skipped:
        return DEGRADED_STRETCH.action("", "")
    if found.stranded:
        return "add OSDs where the CRUSH rule lacks them: it finds too few for each PG"
    if found.is_new and not found.inactive:
        return "nothing; it ends by itself when their OSDs have reported"
    if found.silent and not found.inactive:
        if 2 * len(found.silent) > len(snapshot.alive):   # then the mgr is at fault
            return "'ceph mgr fail'"
        return f"restart {found.silent[0]}"
    return "ask what the PGs that 'ceph health detail' names wait for by 'ceph pg PGID query'"


def _start(down: Sequence[Osd], snapshot: Snapshot) -> str:
    held_by = _flags_on(down, False, snapshot).get("noup")
    if held_by is None:
        return f"start {places(down, snapshot)}; 'ceph osd tree down' lists what is down"
    if held_by:
        return f"'ceph osd unset-group noup {held_by}'"
    return "'ceph osd unset noup'"


def osd_outage(osd: Osd, status: BalancerStatus,
               view: ClusterView) -> Optional[Tuple[str, str, str]]:
    """Returns (code, action, sentence) of an OSD that is down or above full_ratio, else None."""
    snapshot = view.snapshot
    if osd.id in view.troubles[DOWN]:
        return (codes.TARGET_UNAVAILABLE, _start([osd], snapshot),
                f"osd.{osd.id} is down{_seen(view, DOWN, osd)}")
    if osd.id in view.troubles[FULL]:
        return (codes.TOO_FULL, make_writable([osd], status, view),
                f"osd.{osd.id} is above full_ratio {format_percent(snapshot.full_ratio)}%"
                f"{_seen(view, FULL, osd)}: writes to {_pools_on([osd], snapshot)} are stopped")
    return None


# -- clauses ---------------------------------------------------------------------------------------

def _clauses(found: _Outage, view: ClusterView) -> List[str]:
    """Returns the clauses of the sentence, the worst first."""
    snapshot = view.snapshot
    said = []
    if found.is_paused:
        said.append("flag pause stops the reads and writes of all clients")
    if found.down:
        said.append(f"{plural(len(found.down), 'OSD is', 'OSDs are')} down:"
                    f" {places(found.down, snapshot)}{_seen(view, DOWN, *found.down)}")
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
    if found.stranded:
        said += _without_osd(found, view)
    if DEGRADED_STRETCH in snapshot.skipped:
        said.append(f"{DEGRADED_STRETCH}{_seen(view, STRANDED)}")
    awaits_out = all(osd.is_in for osd in found.down) and not _scarce_type(snapshot)
    if found.down and awaits_out and "noout" not in found.flags:
        said.append("Ceph rebuilds missing shards elsewhere once it has marked OSDs out: by"
                    " default after ten minutes, and not for a whole rack")
    for flag, groups in found.flags.items():
        whose = ""
        if groups:
            whose = f" of {groups}"
        said.append(f"flag {flag}{whose} {_FLAGS[flag]}")
    return said


def _without_osd(found: _Outage, view: ClusterView) -> List[str]:
    """Returns the clause about PGs without an OSD for a shard, unless another one explains it."""
    said = f"{plural(found.stranded, 'PG has', 'PGs have')} no OSD for a shard"
    if found.down:
        missing = _scarce_type(view.snapshot)
        if missing:
            return [f"{said} until that is back or another {missing} is added"]
        return []
    if found.inactive:
        return []
    return [f"{said}{_seen(view, STRANDED)}"]


def _scarce_type(snapshot: Snapshot) -> str:
    """Returns the first type of bucket that is too scarce for a pool's rule, or empty text."""
    alive = snapshot.alive
    for rule in dict.fromkeys(pool.rule for pool in snapshot.pools.values()):
        for block in rule.blocks if rule is not None else ():
            for domain in block.domains:
                buckets = {domain.bucket_of[osd] for osd in alive & block.osds}
                if domain.shards_per_bucket * len(buckets) < block.positions:
                    return domain.type_name
    return ""


def _writes_stopped(full: Sequence[Osd], view: ClusterView) -> str:
    snapshot = view.snapshot
    fills = {osd.id: view.utilization_now(osd.id) for osd in full}
    shown = [f"osd.{osd} ({format_percent(fills[osd])}%)"
             for osd in sorted(fills, key=lambda osd: -fills[osd])]
    osds = f"{named(shown, MOST_NAMED)} {_verb(len(full), 'is', 'are')}"
    return (f"writes to {_pools_on(full, snapshot)} are stopped: {osds} above full_ratio"
            f" {format_percent(snapshot.full_ratio)}%{_seen(view, FULL)}")


def _not_reported(found: _Outage, view: ClusterView) -> str:
    count = sum(found.unreported.values())
    text = f"{plural(count, 'PG')} of {_pools(found.unreported, view.snapshot)}"
    if found.is_new:
        text += f" {_verb(count, 'has', 'have')} not been reported yet since this mgr became active"
    else:
        text += " as far as is known cannot be read or written"
    if found.silent:
        verb = _verb(len(found.silent), "does", "do")
        text += f": {named(found.silent, MOST_NAMED)} {verb} not report"
    return text + _seen(view, UNREPORTED)


def _verb(count: int, one: str, more: str) -> str:
    if count == 1:
        return one
    return more


# -- CRUSH rules and hosts -------------------------------------------------------------------------

def _pool_without_osds(snapshot: Snapshot) -> Optional[Pool]:
    """Returns the first pool whose CRUSH rule takes only buckets without OSDs that are in, or
    None."""
    for pool in snapshot.pools.values():
        if pool.rule is not None and all(map(snapshot.is_out, pool.rule.osds())):
            return pool
    return None


def _no_osds(pool: Pool, snapshot: Snapshot) -> str:
    """Names the rule of the pool and the buckets that it takes."""
    takes = {snapshot.crush.name_of(block.take) for block in pool.blocks}
    return (f"rule {snapshot.crush.rule_name(pool.rule_id)} of pool {pool.name} takes"
            f" {named(sorted(takes), MOST_NAMED)}, where no OSD is in")


def _give_rule(pool: Pool, snapshot: Snapshot) -> str:
    """Returns the action that gives a pool a rule with OSDs. It names the rule of another pool of
    the same kind, the one with most PGs whose rule reaches enough OSDs."""
    others = []
    for one in snapshot.pools.values():
        if one.rule is None or one.erasure != pool.erasure:
            continue
        usable = [osd for osd in one.rule.osds() if not snapshot.is_out(osd)]
        if len(usable) >= pool.size:
            others.append(one)
    if not others:
        return (f"give pool {pool.name} a rule with OSDs ('ceph osd pool set {pool.name} crush_rule"
                " RULE'), or delete it")
    rule = snapshot.crush.rule_name(max(others, key=lambda one: one.pg_num).rule_id)
    return (f"'ceph osd pool set {pool.name} crush_rule {rule}' gives it a rule with OSDs; delete"
            " the pool if nobody needs it")


class _Reach(NamedTuple):
    """A rule of a pool, and the OSDs that it can use."""

    pool: Pool
    osds: Mapping[int, float]


def unused_hosts(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """Returns hosts with OSDs that are up but get no data, JSON-ready. Either the rule of `pool`
    takes a root above the host and can use none of its OSDs, because it is in no bucket of the type
    `missing`. Or no rule can use these `osds`."""
    crush = snapshot.crush
    rules = {pool.rule_id: _Reach(pool, pool.rule.osds())
             for pool in snapshot.pools.values() if pool.rule is not None}
    reached = set().union(*[reach.osds for reach in rules.values()])
    up = {osd.id for osd in snapshot.osds.values() if osd.up}
    found: List[Dict[str, Any]] = []
    for bucket in crush.buckets.values():
        if bucket.type_name != "host" or "~" in bucket.name or not rules:
            continue
        idle = [osd for osd, weight in crush.subtree(bucket.id).weights.items()
                if weight > 0.0 and osd in up]
        pool, missing = _missing_type(idle, list(rules.values()), crush)
        if not pool:
            idle = [osd for osd in idle if osd not in reached]
        if not idle:
            continue
        under = _parent(bucket.id, crush)
        classes = sorted({snapshot.osds[osd].device_class for osd in idle})
        why = f"where no pool's rule uses class {', '.join(classes)}"
        if pool:
            why = f"and in no {missing}: the rule of pool {pool} cannot use it"
        row = {
            "host": bucket.name,
            "under": under,
            "osds": idle,
            "pool": pool,
            "missing": missing,
            "sentence": f"host {bucket.name} ({plural(len(idle), 'OSD')}) is under {under} {why}"}
        found.append(row)
    return found


def _missing_type(osds: Sequence[int], rules: Sequence[_Reach],
                  crush: CrushHierarchy) -> Tuple[str, str]:
    """Returns (pool, type of bucket) of a rule that takes a root above the OSDs but can use none of
    them: they are in no bucket of that type. ('', '') if there is no such rule."""
    for pool, reached in rules:
        if not reached.keys().isdisjoint(osds):
            continue
        for block in pool.blocks:
            inside = crush.subtree(block.take).weights
            for domain in block.domains:
                if any(inside.get(osd) and osd not in domain.bucket_of for osd in osds):
                    return pool.name, domain.type_name
    return "", ""


def _parent(bucket_id: int, crush: CrushHierarchy) -> str:
    for bucket in crush.buckets.values():
        if "~" not in bucket.name and any(item == bucket_id for item, _ in bucket.items):
            return bucket.name
    return "no root"


# -- words -----------------------------------------------------------------------------------------

def _seen(view: ClusterView, what: str, *osds: Osd) -> str:
    """Returns a clause: since when the trouble `what` has been seen, of these OSDs; without OSDs,
    the oldest trouble of that kind."""
    seen = view.troubles[what]
    times = [seen[osd.id] for osd in osds] or seen.values()
    return f", seen since {format_time(min(times))} UTC"


def places(osds: Iterable[Osd], snapshot: Snapshot) -> str:
    """Names the first few hosts whose OSDs are all meant, then single OSDs, and counts the rest."""
    sizes = Counter(osd.host for osd in snapshot.osds.values())
    whole: List[str] = []
    single: List[str] = []
    for host, found in grouped((osd.host, osd.id) for osd in osds).items():
        if host and len(found) == sizes[host] > 1:
            whole.append(f"all of host {host}")
            continue
        single += [f"osd.{osd} of {host or 'no host'}" for osd in sorted(found)]
    return named(whole + single, MOST_NAMED)


def _pools_on(osds: Sequence[Osd], snapshot: Snapshot) -> str:
    """Names the pools whose rule reaches one of the OSDs: Ceph stops the writes of all of these."""
    numbers = [osd.id for osd in osds]
    found = []
    for pool in snapshot.pools.values():
        if pool.rule is None or not pool.rule.osds().keys().isdisjoint(numbers):
            found.append(pool.id)
    return _pools(found, snapshot)


def _pools(pools: Iterable[int], snapshot: Snapshot) -> str:
    names = [snapshot.pools[pool].name for pool in pools if pool in snapshot.pools]
    return f"{_verb(len(names), 'pool', 'pools')} {named(names, MOST_NAMED)}"
