"""The rules of when something may be sent at all, each as what is wrong with it, or nothing.

S4 the misplaced limit: ours as it is, and others' as far as the mgr has been told; PGs that wait
for space do not count against what makes it. S8 nothing passes a guard, S12 `off` is obeyed.
"""
from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.osdmap.osd_map import OsdMap
from tests.support.pg_num import is_to_be_touched

from .moment import Moment, is_lacking
from .under_way import Outgoing

STOP_FLAGS = ("pause", "pauserd", "pausewr", "norebalance", "nobackfill", "norecover")
_OLD_CLIENTS = ("", "firefly", "hammer", "jewel")
_SLACK = 1e-6


def s4_misplaced(moment: Moment, move: Outgoing) -> Iterator[str]:
    """Called before the move is among those under way."""
    if move.pgid in moment.ours.moves or move.redirects:
        return
    ours, more = moment.ours.copies(), move.pg.num_objects * len(move.gains)
    total, others = max(1, moment.object_copies), moment.others_misplaced
    limit = moment.misplaced_limit
    if any(moment.is_emergency(osd) for osd in move.losses):
        limit = max(limit, moment.settings.urgent_misplaced_ratio)
    before = ours + others
    if move.losses and all(map(moment.needs_space, move.losses)):
        before = max(0, before - moment.stuck_copies())   # these wait for such moves
    if more and before and before + more > (limit + _SLACK) * total:
        yield (f"makes it {(before + more) / total:.4f} misplaced ({others / total:.4f} by others)"
               f" of {limit:.4f}, and is not alone")


def is_held(session: Session) -> bool:
    """Does a flag, the built-in balancer or a lost connection keep everything from being sent?"""
    return bool(not session.mgr.mon_connected or session.mgr.balancer.may_move_data
                or flags_set(session.cluster.map))


def flags_set(osdmap: OsdMap) -> List[str]:
    """Of those that stop everything."""
    return [flag for flag in STOP_FLAGS if flag in osdmap.flags]


def is_site_gone(cluster: Cluster) -> bool:
    """Of a stretched cluster, or is it only coming back?"""
    stretch = cluster.map.rest.get("stretch_mode", {})
    return bool(stretch.get("degraded_stretch_mode") or stretch.get("recovering_stretch_mode"))


def has_window(settings: Any) -> bool:
    return bool(settings.begin_time % 1440 != settings.end_time % 1440)


def s8_cluster(moment: Moment, move: Outgoing) -> Iterator[str]:
    session = moment.session
    if session.mgr.maps()[0].min_compat_client in _OLD_CLIENTS:
        yield "goes although clients before luminous are allowed"
    if not session.mgr.mon_connected:
        yield "goes without a connection to a monitor"
    if is_site_gone(moment.cluster):
        yield "goes although a site of the stretched cluster is gone, or only coming back"
    if move.moves_nothing:
        return   # it has no more to fear than a monitor that does not keep it
    for flag in flags_set(session.mgr.maps()[0])[:1]:
        yield f"goes although the flag {flag} is set"
    if session.mgr.balancer.may_move_data:
        yield "goes although the built-in balancer is active"
    if moment.automatic and not moment.drains and not _is_open(moment):
        yield "goes outside the window"


def s8_pool(moment: Moment, move: Outgoing) -> Iterator[str]:
    pool = move.pg.pool_id
    if is_to_be_touched(moment.cluster.map.pools[pool], move.pg.order[1]) and not (
            move.moves_nothing and set(move.items) < set(move.had)):   # steps do that themselves
        yield "goes although a step of pg_num is to merge, split or place it anew"
    if move.moves_nothing or move.redirects:
        return
    is_relief = _is_relief(moment, move)
    inactive = moment.sharing(pool, moment.inactive_otherwise if is_relief else moment.inactive)
    if inactive:
        yield f"goes although PGs of pool {min(inactive)}, which shares OSDs, are inactive"
    degraded = moment.sharing(pool, moment.degraded)
    if degraded and not is_relief:
        yield f"goes although PGs of pool {min(degraded)}, which shares OSDs, are degraded"
    if "inconsistent" in moment.states.get(move.pgid, ""):
        yield "goes although its copies differ, and nobody knows which are good"
    if "scrubbing" in moment.states.get(move.pgid, ""):
        yield "goes although it is being scrubbed"


def s12_off(moment: Moment, move: Outgoing) -> Iterator[str]:
    if moment.automatic and not moment.settings.active and not moment.drains:
        yield "goes although the module is off"


def _is_relief(moment: Moment, move: Outgoing) -> bool:
    if not moment.settings.relieve_while_degraded or is_lacking(moment.states.get(move.pgid, "")):
        return False
    return bool(move.losses) and all(map(moment.needs_space, move.losses))


def _is_open(moment: Moment) -> bool:
    """Whether the hours of automatic balancing have begun; the week has no limit here."""
    local = time.localtime(moment.cluster.clock())
    minute = local.tm_hour * 60 + local.tm_min
    begin, end = moment.settings.begin_time % 1440, moment.settings.end_time % 1440
    if begin == end:
        return True
    if begin < end:
        return begin <= minute < end
    return not end <= minute < begin


#: A shard whose copy has come so far keeps its target: Ceph would copy it from the beginning.
_BEGUN = 0.15


def s23_steered(moment: Moment, move: Outgoing) -> Iterator[str]:
    """Of shards that are copied anyway, only those that have no data yet go elsewhere."""
    if not move.redirects:
        return
    state = moment.states.get(move.pgid, "")
    if "active" not in state.split("+") or "recover" in state:
        yield f"gets other targets while it is {state}"
    for (_, target), transfer in move.pg.transfers.items():
        if target in move.losses and transfer.missing < 1.0 - _BEGUN - _NOT_REPORTED:
            yield f"loses what has been copied to osd.{target}, {1.0 - transfer.missing:.2f} of it"


#: Of a shard: so much may have come since the last report.
_NOT_REPORTED = 0.5

OF_THE_MOMENT: Dict[str, Callable[[Moment, Outgoing], Iterator[str]]] = {
    "S4": s4_misplaced, "S8": s8_cluster, "S8 pool": s8_pool, "S12": s12_off,
    "S23": s23_steered}
