"""What comes before balancing: OSDs that are down, PGs that serve no client or have no OSD for a
shard, writes that are stopped, and hosts that a rule cannot use."""
from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ...control.status import BalancerStatus
from ...crush.hierarchy import CrushHierarchy
from ...crush.placement import PlacementRule
from ...execution.guards import TRANSIENT_SECONDS
from ...observation.cluster_view import (
    DOWN, FULL, HIGHEST_RATIO, INACTIVE, MOVING, OFF, PLANNING, RECOVERY, STRANDED, THROTTLED,
    ClusterView)
from ...runtime.formatting import format_percent, format_time, named, plural
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import NO_OSD_FOR_SHARD
from ...snapshot.model import Osd, Snapshot
from ...snapshot.reason_codes import action
from ..answer import Row
from .reasons import ExplainContext

#: Flags of the osdmap that an outage is the longer for, and what each does.
_FLAGS = {"noout": "keeps Ceph from rebuilding their data elsewhere", "noup": "keeps OSDs down",
          "norecover": "holds up recovery", "nobackfill": "holds up backfill"}
_OF_OSDS = ("noout", "noup")
_NAMED = 3


def find_outage(status: BalancerStatus, view: Optional[ClusterView]) -> Optional[Row]:
    """What is wrong with the cluster, and the one thing to do about it first, JSON-ready;
    `since_at`: when the first of it was seen, in seconds since the epoch. None where nothing is to
    be said before balancing."""
    if view is None:
        return None
    snapshot = view.snapshot
    down, full = [[snapshot.osds[osd] for osd in view.troubles[what]] for what in (DOWN, FULL)]
    # PGs that peer are inactive for a moment
    short = {what for what in (INACTIVE, STRANDED) for since in view.troubles[what].values()
             if down or snapshot.taken_at - since >= TRANSIENT_SECONDS}
    # what is out is missed where PGs are short of OSDs
    down = [osd for osd in down if osd.is_in or short]
    paused = ["pause"] if any(flag.startswith("pause") for flag in snapshot.flags) else []
    if not (down or full or short or paused):
        return None
    inactive = {pool: states.inactive for pool, states in snapshot.pool_states.items()
                if states.inactive and INACTIVE in short}
    stranded = snapshot.skipped[NO_OSD_FOR_SHARD] if STRANDED in short else 0
    flags = [flag for flag in _FLAGS if flag in snapshot.flags and (
        down or short and flag not in _OF_OSDS)]
    # clients come last: with too few OSDs they would write to what is left
    helps = (_start(down, snapshot) if down else "'ceph osd unset pause'" if paused
             else _make_writable(full, status, view) if full
             else _place(view, stranded, flags))
    said = ["flag pause stops the reads and writes of all clients" for _ in paused]
    if down:
        said.append(f"{plural(len(down), 'OSD')} {'is' if len(down) == 1 else 'are'} down:"
                    f" {_places(down, snapshot)}" + _seen(view, DOWN, *down))
    if full:
        said.append(f"writes to {_pools(_pools_on(full, snapshot), snapshot)} are stopped:"
                    f" {_fills(full)} above full_ratio {format_percent(snapshot.full_ratio)}%"
                    + _seen(view, FULL))
    if inactive:
        said.append(f"{plural(sum(inactive.values()), 'PG')} of {_pools(inactive, snapshot)} cannot"
                    " be read or written" + _seen(view, INACTIVE))
    elif stranded and not down:
        said.append(f"{plural(stranded, 'PG')} {'has' if stranded == 1 else 'have'} no OSD for a"
                    " shard" + _seen(view, STRANDED))
    return {"sentence": "; ".join([*said, *[f"flag {flag} {_FLAGS[flag]}" for flag in flags]]),
            "action": helps, "since_at": min(
                [at for seen in view.troubles.values() for at in seen.values()],
                default=snapshot.taken_at),
            "down_osds": [osd.id for osd in down], "full_osds": [osd.id for osd in full],
            "inactive_pgs": sum(inactive.values()), "flags": flags + paused}


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
    needed = math.floor(100.0 * (full[0].utilization or 0.0)) / 100.0 + 0.01
    # what is on its way would fill a ratio that only does for now
    raised = f"'ceph osd set-full-ratio {needed:.2f}' lets clients write" * (
        needed <= HIGHEST_RATIO and all(
            view.used_soon[osd.id] < needed * osd.size_bytes for osd in full))
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
        helps = action(status.reason_code, status.reason_numbers)
        if helps.startswith("'ceph"):
            return helps
    return (f"{raised} again, until data is deleted or OSDs are added" if raised
            else f"delete data, or add OSDs: {names} can take nothing more")


def is_relieved(osd: Osd, status: BalancerStatus) -> bool:
    """True where the plan under way takes shards off the OSD; recovery holds up only what has not
    been sent, and a pg_num that changes only as long as data of it is copied."""
    is_changing = status.reason_code == codes.PG_NUM_CHANGING and status.view is not None and any(
        move.is_running for move in status.view.movements)
    if status.progress is None or not (
            is_changing or status.state in (MOVING, THROTTLED, PLANNING)):
        return (status.progress is not None and status.reason_code == codes.DEGRADED
                and osd.outbound_bytes > 0)
    return osd.outbound_bytes > 0 or any(
        osd.id in set(change.up_before) - set(change.up_after) for change in status.wanted)


def _place(view: ClusterView, stranded: int, flags: Sequence[str]) -> str:
    """What gives PGs their OSDs, and lets those copy that have them."""
    misplaced = [host for host in unused_hosts(view.snapshot) if host["pool"]]
    if flags and any(states.degraded for states in view.snapshot.pool_states.values()) and (
            not misplaced):
        return f"'ceph osd unset {flags[-1]}'"
    return ("move host {host} from {under} to the {missing} that it stands in ('ceph osd crush"
            " move')".format(**misplaced[0]) if misplaced
            else "add OSDs where the CRUSH rule lacks them: it finds too few for each PG"
            if stranded else
            "ask what the PGs that 'ceph health detail' names wait for by 'ceph pg PGID query'")


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
        pool, missing = next(((pool.name, missing) for pool, rule in rules.values()
                              for missing in _missing(rule, osds, crush)), ("", ""))
        if osds and (pool or reached.isdisjoint(osds)):
            under = next((one.name for one in crush.buckets.values() if "~" not in one.name
                          and bucket.id in [item for item, _ in one.items]), "no root")
            why = (f"and in no {missing}: the rule of pool {pool} cannot use it" if pool
                   else "where no pool's rule reaches it")
            found.append({"host": bucket.name, "under": under, "osds": osds, "pool": pool,
                          "missing": missing, "sentence": f"host {bucket.name}"
                          f" ({plural(len(osds), 'OSD')}) is under {under} {why}"})
    return found


def _missing(rule: PlacementRule, osds: Sequence[int], crush: CrushHierarchy) -> List[str]:
    """The types of bucket that OSDs are in none of, under what the rule takes; empty where it can
    use one."""
    if any(osd in block.weights for block in rule.blocks for osd in osds):
        return []
    return [domain.type_name for block in rule.blocks for domain in block.domains for osd in osds
            if crush.subtree(block.take).weights.get(osd) and osd not in domain.bucket_of]


# -- words -----------------------------------------------------------------------------------------

def _seen(view: ClusterView, what: str, *osds: Osd) -> str:
    """Since when: of the OSDs, or of all; empty where that is not known."""
    seen = view.troubles.get(what, {})
    times = [seen[osd.id] for osd in osds if osd.id in seen] if osds else list(seen.values())
    return f", seen since {format_time(min(times))} UTC" if times else ""


def _places(osds: Iterable[Osd], snapshot: Snapshot) -> str:
    """Hosts of which all OSDs are meant, then single OSDs; the first few, and a count."""
    by_host: Dict[str, List[int]] = {}
    for osd in osds:
        by_host.setdefault(osd.host, []).append(osd.id)
    sizes = {host: sum(osd.host == host for osd in snapshot.osds.values()) for host in by_host}
    whole = [f"all of host {host}" for host, found in by_host.items()
             if host and len(found) == sizes[host] > 1]
    single = [f"osd.{osd} of {host or 'no host'}" for host, found in by_host.items()
              if not host or not len(found) == sizes[host] > 1 for osd in sorted(found)]
    return named(whole + single, _NAMED)


def _fills(osds: Sequence[Osd]) -> str:
    fills = [f"osd.{osd.id} ({format_percent(osd.utilization)}%)" for osd in sorted(
        osds, key=lambda osd: -(osd.utilization or 0.0))]
    return named(fills, _NAMED) + (" is" if len(osds) == 1 else " are")


def _pools_on(osds: Sequence[Osd], snapshot: Snapshot) -> List[int]:
    """Pools whose rule reaches one of the OSDs: Ceph stops the writes of all of these."""
    return [pool.id for pool in snapshot.pools.values()
            if pool.rule is None or any(osd.id in pool.rule.osds() for osd in osds)]


def _pools(pools: Iterable[int], snapshot: Snapshot) -> str:
    names = [snapshot.pools[pool].name for pool in pools if pool in snapshot.pools]
    return f"{'pool' if len(names) == 1 else 'pools'} {named(names, _NAMED)}"
