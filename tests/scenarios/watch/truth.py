"""What the module says of the cluster, held against what the simulator knows.

T1 how full OSDs will be when all has arrived, T2 what is misplaced, T3 what is moving, T4 what is
left of a plan, T5 the state, T6 `eval` says the same as `status`, T7 what is stored in pools, T8
how full OSDs are now, T9 that statistics stand still, T10 what waits for an OSD that is too full,
T11 each shard of `moves`, T12 to T14 the figures of `df` and `osds` (truth_of_tables.py), T15 that
figures are of a look of this round while data moves, T16 that no time left counts down where
nothing moves, T17 and T18 what is said to do (advice.py), T19 lines for people and their bytes, T20
which pools take more than was predicted, T21 since when the state lasts, T22 which OSDs are slow.

Rules of truth for `df` and `osds`: T12 pools, T13 OSDs, T14 room.

Each figure of now equals what Ceph reports, and each figure that Ceph does not report is computed
here anew, from the simulated cluster alone.
"""
from __future__ import annotations

import re
from collections import Counter
from itertools import chain, repeat
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set, Tuple

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.cluster.pg import pg_order
from mgr_stub.console.session import Session
from mgr_stub.crush.hashes import NONE
from mgr_stub.osdmap.osd_map import share_of
from tests.commands.asking import by_class

from ..rules.under_way import UnderWay
from . import advice, cluster_view
from .advice import ask, plain


Answer = Dict[str, Any]

#: Of a pool's free space and the room: sizes of shards move while they are read.
_FREE_SLACK = 0.02
_FEW_BYTES = 64 << 20


def t12_pools(session: Session, df: Answer) -> Iterator[str]:
    """Stored bytes, per cent used and MAX AVAIL are Ceph's; free is what the OSDs allow, but where
    a PG peers: until it has no report tells where its data is."""
    cluster = session.cluster
    peering = {pg.pool_id for pg in cluster.unclean.values()
               if "peering" in cluster_view.words_of(cluster, pg)}
    reported = {pool["id"]: pool["stats"] for pool in session.simulation.reports.get("df")["pools"]}
    said = {pool["id"]: pool for pool in df["pools"]}
    if said.keys() != cluster.map.pools.keys():
        yield f"df tells of pools {sorted(said)}, there are {sorted(cluster.map.pools)}"
    free = free_bytes(cluster)
    parts = parts_held(cluster)
    for pool_id in said.keys() & reported.keys() & parts.keys():
        for key in ("stored", "percent_used", "max_avail"):
            if said[pool_id][key] != reported[pool_id][key]:
                yield (f"{key} of pool {pool_id} is {reported[pool_id][key]}, said is"
                       f" {said[pool_id][key]}")
        most = min((free[osd] / part for osd, part in parts[pool_id].items() if osd in free),
                   default=0.0)
        if pool_id not in peering and (
                abs(said[pool_id]["free_bytes"] - most) > _FREE_SLACK * most + _FEW_BYTES):
            yield (f"pool {pool_id} can take {most:.0f}, said is {said[pool_id]['free_bytes']}")


def t13_osds(session: Session, osds: Answer) -> Iterator[str]:
    """Size and used bytes of an OSD are those that it reports; its PGs are counted by acting sets,
    as `ceph osd df` does (PGMap::get_num_pg_by_osd)."""
    pgs = Counter(osd for pgid in session.cluster.pgs for osd in session.cluster.map.acting(pgid))
    reported = {record["osd"]: record
                for record in session.simulation.reports.get("osd_stats")["osd_stats"]}
    for row in osds["osds"]:
        record = reported.get(row["id"])
        if record is None or not record["statfs"]["total"]:
            continue
        size, available = record["statfs"]["total"], record["statfs"]["available"]
        truth = (size, size - available, pgs[row["id"]])
        told = (row["size_bytes"], row["used_bytes"], row["pgs"])
        if told != truth:
            yield f"osd.{row['id']} reports size, used, PGs {truth}, said is {told}"
    known = {row["id"] for row in osds["osds"]}
    if known != set(session.cluster.map.osds):
        yield f"OSDs {sorted(set(session.cluster.map.osds) ^ known)} are not told of"


def t14_room(session: Session, df: Answer) -> Iterator[str]:
    """What fits if all pools grow alike."""
    cluster, free = session.cluster, free_bytes(session.cluster)
    stored, growth = stored_bytes(cluster), Counter[int]()
    for pool_id, parts in parts_held(cluster).items():
        growth.update({osd: stored[pool_id] * part for osd, part in parts.items()})
    most = min((free[osd] / rate for osd, rate in growth.items() if rate > 0.0 and osd in free),
               default=0.0) * sum(stored.values())
    if df["room"] is not None and abs(df["room"]["bytes"] - most) > _FREE_SLACK * most + _FEW_BYTES:
        yield f"{most:.0f} bytes fit into all pools, said is {df['room']['bytes']}"


def stored_bytes(cluster: Cluster) -> Counter[int]:
    """Pool → bytes of clients."""
    found = Counter[int]()
    for pg in cluster.pgs.values():
        found[pg.pool_id] += pg.num_bytes
    return found


def free_bytes(cluster: Cluster) -> Dict[int, float]:
    """OSD → bytes until it is full."""
    full = cluster.map.ratio("full_ratio")
    return {osd: max(0.0, full * usage.total - usage.used) for osd, usage in cluster.usage.items()
            if usage.total}


def parts_held(cluster: Cluster) -> Dict[int, Dict[int, float]]:
    """Pool → OSD → its part of the bytes that clients write to the pool, where data is now.

    PGs that are still to be split get twice as much as others. What the mean shard takes beyond
    the clients' bytes does not count, as it does not in Ceph's MAX AVAIL. What is written has as
    much metadata and omap as what there is: that takes the same everywhere.
    """
    parts: Dict[int, Dict[int, float]] = {}
    for pool_id in cluster.map.pools:
        pgs = cluster.pgs_of(pool_id)
        shares = {pg.pgid: share_of(pg_order(pg.pgid)[1], len(pgs)) for pg in pgs}
        whole = sum(shares.values()) * max(1, cluster.map.data_chunks(pool_id))
        found = parts[pool_id] = {}
        positions = cluster.shard_ratios.positions.get(pool_id, (1.0,))
        mean = sum(positions) / len(positions)
        data = mean * sum(pg.shard.data for pg in pgs)
        beside = sum(pg.shard.total - pg.shard.data for pg in pgs)
        for pg in pgs:
            for position, osd in zip(chain(positions, repeat(1.0)), pg.held):
                if osd == NONE:
                    continue
                ratio = position * cluster.shard_ratios.ratio(pool_id, osd) / mean
                if data > 0:
                    ratio = (ratio * data + beside) / (data + beside)
                found[osd] = found.get(osd, 0.0) + ratio * shares[pg.pgid] / whole
    return parts


_Check = Callable[[Session, Answer], Iterator[str]]
#: Command → its rules.
TABLE_RULES: Dict[str, Dict[str, _Check]] = {
    "df": {"T12": t12_pools, "T14": t14_room}, "osds": {"T13": t13_osds}}


def tables(answers: Dict[str, Answer], session: Session) -> Dict[str, List[str]]:
    """Rule → what is wrong in the answers."""
    found: Dict[str, List[str]] = {}
    for name, answer in answers.items():
        for rule, check in TABLE_RULES[name].items():
            if "refused" in answer:
                found[rule] = [f"{name} is refused: {answer['refused']}"]
            else:
                found[rule] = list(check(session, answer))
    return found


#: What sizes of shards are estimated to be: metadata is spread by objects.
_FILL_SLACK = 0.01
#: Ratio of all object copies; reports are rounded, and copies arrive while they are read.
_MISPLACED_SLACK = 0.005
#: Of a shard: an object counts as arrived when all moving shards of its PG have it.
_LEFT_SLACK = 0.15
#: A PG that has moved is believed to rest when it has said so since its map: what is wrong has to
#: be wrong at two looks so far apart, with no pg_num changed meanwhile.
_HEARD_SECONDS = 130.0
_SPLIT_SECONDS = 3600.0
#: OSDs that report nothing are noticed after two minutes, and observed ten minutes later.
_FROZEN_SECONDS = 900.0
#: A state that is back after fewer seconds goes on; after more it begins again.
_MOMENT_SECONDS, _AWAY_SECONDS = 55.0, 65.0
#: Seconds that a round may be late.
_ROUND_SLACK = 10.0
_FOR_PEOPLE = ("status", "history", "explain")   # without raw numbers
_RESTING = ("off", "balanced", "stuck")   # the loop does not look at what others move
#: Rules that main breaks today → the defect.
PENDING: Dict[str, str] = {
    "T1": "as T3; and what is still to come of a PG that moves a second time is an estimate",
    "T2": "our move of a PG that has lost a copy since is still held against the limit, while Ceph"
          " counts it as degraded",
    "T3": "a disk that comes back empty under its old id, while the PGs' logs are whole, is taken"
          " for one that has what it had"}

#: The same in random streams, where PGs are degraded for long; scenarios are held to these.
PENDING_IN_STREAMS: Dict[str, str] = {
    "T11": "of a PG that is down before a new mgr has seen it, or that an OSD has come back to with"
           " its old copy, the acting set does not tell which shards are still to come",
    "T12": "where the data of a degraded PG is, is taken from its acting set",
    "T14": "as T12, summed over all pools",
    "T15": "single looks are late where options, the map and the monitor change at once",
    "T16": "a time left may outlast the last arrival by some rounds"}

#: Of those the ones that are broken only after such an event of a stream.
_PENDING_AFTER: Dict[str, str] = {"T3": "sim osd lose "}


def is_pending(rule: str, lines: Iterable[str]) -> bool:
    """Does main break the rule today by a cause that is among these lines of a stream?"""
    if rule in PENDING_IN_STREAMS:
        return True
    cause = _PENDING_AFTER.get(rule, "")
    return rule in PENDING and any(line.startswith(cause) for line in lines)


def arrived(cluster: Cluster) -> Dict[int, float]:
    """OSD → utilization once all that is on its way has come, and what it leaves is gone, also
    from the stores of OSDs."""
    used = Counter({osd: usage.used for osd, usage in cluster.usage.items()})
    for left in (cluster.uncompacted, cluster.undeleted):
        for (_, osd), count in left.items():
            used[osd] -= count
    for pg in cluster.unclean.values():
        if not pg.movable:
            continue
        used.update(cluster_view.coming(cluster, pg))
        for osd in _leaving(cluster, pg):
            place = cluster_view.place_in(pg, pg.held, osd)
            used[osd] -= cluster_view.taken(cluster, pg, osd, place, pg.shard)
    return {osd: used[osd] / usage.total for osd, usage in cluster.usage.items() if usage.total}


def _leaving(cluster: Cluster, pg: Any) -> List[int]:
    up = cluster.map.up.get(pg.pgid, ())
    if NONE in up or len(up) < cluster.size_of(pg):
        return []   # nothing is given up while a shard has no place
    return list(cluster_view.misfits(pg, pg.held, up))


class Truth:
    """Looks where the module's view is of this very moment and reports are fresh."""

    def __init__(self) -> None:
        self.broken: List[str] = []
        self.looks = 0
        self.status: Answer = {}   # of the last look
        self._first_wrong: Dict[str, float] = {}   # rule → when it was broken first, without end
        self._seen: Tuple[Any, ...] = ()   # at the last look
        self._shown: Tuple[Any, ...] = ()  # by the last screen
        self._alike = 0                    # looks since at which it was the same
        self._pgs = 0
        self._split_at = float("-inf")
        self._left: Dict[Tuple[str, int], int] = {}   # (pgid, target) → bytes to come
        self._moved_at = self._looks_since = float("inf")
        self._states: Dict[str, Tuple[Any, float]] = {}   # state → said since, seconds without it
        self._module: Any = None
        self._state, self._state_at = "", 0.0   # of the last observation
        #: The last look: its time by the wall's clock, the longest sleep_interval since, and its
        #: time by the clock that never jumps.
        self._looked = (0.0, 0.0, 0.0)

    def observe(self, session: Session, ours: UnderWay) -> None:
        if cluster_view.is_away(session):
            return
        self._check_frozen(session)
        self._check_moving(session)
        self._check_since(session)
        if not self._is_fresh(session) or self._is_as_before(session):
            return
        self.looks += 1
        self.status = status = ask(session, "status")
        for rule, check in _RULES.items():
            self._note(rule, session, list(check(session, ours, status)), status)
        if self.looks % _LOOKS_PER_EVAL == 1:
            evaluation = ask(session, "eval")
            for rule, hold in _EVAL_RULES.items():
                self._note(rule, session, list(hold(session, status, evaluation)), status)
        seen = advice.shown(session, status)
        if seen != self._shown or self.looks % _LOOKS_PER_TABLE == 1:
            self._note("T17", session, list(advice.t17_screen(session, status)), status)
        self._shown = seen
        if self.looks % _LOOKS_PER_TABLE == 1:
            answers = {name: ask(session, name) for name in TABLE_RULES}
            for rule, found in tables(answers, session).items():
                self._note(rule, session, found, status)
            self._note("T17", session, list(advice.t17_explained(session, status)), status)
            self._note("T19", session, list(_unreadable(session)), status)

    def _is_as_before(self, session: Session) -> bool:
        """Where nothing happens one look in a few is enough; but while something is left alone for
        a time, or was wrong at the last look."""
        cluster, said, status = session.cluster, session.module.balancer.status, self.status
        before, self._seen = self._seen, (
            session.module, cluster.map.epoch, said.state, said.reason, self._left,
            cluster.utilizations())
        if self._seen != before or not status or session.simulation.reports.noise:
            self._alike = 0
        elif self._first_wrong or status["rejected"] or status["mispredicted"]:
            self._alike = 0
        else:
            self._alike += 1
        return self._alike % _LOOKS_ALIKE > 0

    def _note(self, rule: str, session: Session, found: List[str],
              status: Dict[str, Any]) -> None:
        for what in self._lasting(rule, session, found):
            if len(self.broken) < _MOST_NOTES:
                self.broken.append(f"{rule}: {what} (at {int(session.clock.elapsed())} s, "
                                   f"{status['state']}: {status['reason']})")

    def _check_frozen(self, session: Session) -> None:
        """T9: who rests on figures that nobody has renewed for long says so."""
        seconds = session.simulation.reports.frozen_seconds
        if seconds < _FROZEN_SECONDS or not session.cluster.usage:
            return
        status = ask(session, "status")
        if status["state"] == "balanced":
            self.broken.append(f"T9: nothing has been reported for {int(seconds)} s, said is "
                               f"{status['state']}: {status['reason']}")

    def _check_moving(self, session: Session) -> None:
        """T15, T16. It does not ask: that would have the module look."""
        status, now = session.module.balancer.status, session.clock.now
        before, self._left = self._left, cluster_view.all_coming(session.cluster)
        moved = {key[0] for key, left in before.items() if self._left.get(key, 0) < left}
        self._moved_at = min(self._moved_at, now)
        if moved:
            self._moved_at = now
        silent = session.simulation.reports.unreported
        is_told = any(silent.isdisjoint(session.cluster.map.acting(pgid)[:1]) for pgid in moved)
        taken_at = status.view.snapshot.taken_at if status.view is not None else 0.0
        if self._looked[0] != taken_at:
            self._looked = (taken_at, 60.0, now)
        a_round, looked_at = self._looked[1:]
        a_round = max(a_round, session.module.settings().sleep_interval)
        self._looked = (taken_at, a_round, looked_at)
        a_round += _ROUND_SLACK
        is_blind = session.simulation.reports.frozen_seconds or not session.mgr.mon_connected
        is_resting = status.view is None or status.state in _RESTING
        if is_blind or is_resting or not is_told:
            self._looks_since = now
        elif now - max(self._looks_since, looked_at) > a_round:
            self.broken.append(f"T15: data moves, and the last look is {int(now - looked_at)} s old"
                               f" at {int(session.clock.elapsed())} s ({status.state})")
        left = None if status.progress is None else status.progress.eta_seconds(session.clock())
        if left and now - self._moved_at > 60.0 + a_round:
            self.broken.append(f"T16: nothing has moved for {int(now - self._moved_at)} s, said is"
                               f" {int(left)} s left ({status.state}: {status.reason})")

    def _check_since(self, session: Session) -> None:
        """T21: a state that comes back after a moment, or after a plan alone, goes on. One that was
        away for longer begins again."""
        status, now = session.module.balancer.status, session.clock()
        module, self._module = self._module, session.module
        if module is not session.module or now < self._state_at:
            self._states = {}   # a new mgr, or the clock was set back
        passed, self._state_at = now - self._state_at, now
        for state, (begin, away) in self._states.items():
            if self._state not in (state, "planning"):
                self._states[state] = begin, away + passed
        self._state = status.state
        begin, away = self._states.get(status.state, (status.since_at, 0.0))
        is_wrong = away < _MOMENT_SECONDS
        if begin == status.since_at:
            is_wrong = away > _AWAY_SECONDS
        if is_wrong and status.state != "planning":
            self.broken.append(f"T21: {status.state} since {status.since_at} after"
                               f" {away:.0f} s without it, before that since {begin}")
        self._states[status.state] = status.since_at, 0.0

    def _lasting(self, rule: str, session: Session, found: List[str]) -> List[str]:
        """What is wrong for longer than a moment, where the rule allows one."""
        if rule not in _SLOW:
            return found
        now = session.clock.now
        if len(session.cluster.pgs) != self._pgs:
            self._pgs, self._split_at = len(session.cluster.pgs), now
        if not found or now - self._split_at < _SPLIT_SECONDS:
            self._first_wrong.pop(rule, None)
            return []
        if now - self._first_wrong.setdefault(rule, now) > _HEARD_SECONDS:
            return found
        return []

    @staticmethod
    def _is_fresh(session: Session) -> bool:
        view, reports = session.module.balancer.status.view, session.simulation.reports
        if view is None or not reports.is_fresh or not session.mgr.mon_connected:
            return False
        now = session.clock(), session.cluster.map.epoch
        return (view.snapshot.taken_at, view.snapshot.epoch) == now


def _unreadable(session: Session) -> Iterator[str]:
    for name in (*_FOR_PEOPLE, "eval", "df", "osds", "moves", "drain ls", "ls"):
        for line in plain(session, name).splitlines():
            if len(line) > 80:
                yield f"{name} has a line of {len(line)} columns: {line}"
            if name in _FOR_PEOPLE and re.search(r"\b\d{8,}\b", line):
                yield f"{name} has a raw number: {line}"


def t1_fill(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    cluster, will_be = session.cluster, arrived(session.cluster)
    for name, said in by_class(status).items():
        members = {osd: level for osd, level in will_be.items()
                   if cluster_view.class_of(cluster, osd) == name
                   and cluster_view.may_take(cluster, osd)}
        if not members:
            yield f"class {name} has no OSD that is in"
        # drained OSDs take no data: what is to be is not of them
        for osd in status["drains"]["osds"]:
            members.pop(osd, None)
        highest, soon = max(members.values(), default=-1.0), said["soon_max_utilization"]
        if abs(highest - (-1.0 if soon is None else soon)) > _FILL_SLACK:
            yield f"class {name} will be at {highest} at most, said is {soon}"


def t8_now(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    cluster = session.cluster
    for name, said in by_class(status).items():
        utilizations = {osd: usage.utilization for osd, usage in cluster.usage.items()
                        if cluster_view.class_of(cluster, osd) == name
                        and cluster_view.is_in(cluster, osd)}
        alive = [ratio for osd, ratio in utilizations.items()
                 if cluster_view.may_take(cluster, osd)]
        if not alive:
            continue
        # those that are down count or not: nobody knows what they hold
        if min(abs(max(some) - said["max_utilization"])
               for some in (alive, utilizations.values())) > _FILL_SLACK:
            yield (f"class {name} is at {max(alive):.4f} at most,"
                   f" said is {said['max_utilization']:.4f}")


def t2_misplaced(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    cluster = session.cluster
    total = max(1, cluster_view.object_copies(cluster))
    shown = cluster_view.misplaced_copies(cluster, cluster.unclean) / total
    said = status["misplaced_ratio"]
    if said < shown - _MISPLACED_SLACK:
        yield f"{shown:.4f} is misplaced, said is {said:.4f}"
    if said > shown + ours.copies() / total + _MISPLACED_SLACK:
        yield f"{shown:.4f} is misplaced, {ours.copies() / total:.4f} ours, said is {said:.4f}"


def t3_moving(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    said, peering = status["moving"]["shards"], _arrived_and_peering(session)
    said += status["moving"]["other_shards"]
    if peering:
        said -= sum(move["pgid"] in peering for move in ask(session, "moves")["moves"])
    moving = len(cluster_view.all_coming(session.cluster))
    if bool(said) != bool(moving) or abs(said - moving) > max(2, moving // 5):
        yield f"{moving} shards are on their way, said is {said}"


def _arrived_and_peering(session: Session) -> Set[str]:
    """PGs all of which is where it is wanted, without an object or recovered by log: until they
    have peered they report that they are remapped."""
    cluster = session.cluster
    return {pgid for pgid in cluster.peering if not cluster.pgs[pgid].num_objects
            or not cluster_view.coming(cluster, cluster.pgs[pgid])}


def t4_remaining(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    done, left = status["execution"], sum(group["shards"] for group in status["waiting"])
    if done is None:
        if left:
            yield f"{left} moves are left of no plan"
    elif left != (done["planned_moves"] - done["sent_moves"] - done["done_moves"]
                  - done["dropped_moves"]):
        yield f"{left} moves are left of {done}"


def t5_state(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    state, active = status["state"], session.module.settings().active
    if status["active"] != active:
        yield f"it is {active}, said is {status['active']}"
    drains = status["drains"]
    drained = bool(drains["osds"]) and not drains["paused"]
    may_work = active or drained or status["execution"]
    if not may_work and state != "off":
        yield f"it is off, said is {state}"
    if drains["safe_to_stop"]:
        yield from _unsafe(session.cluster, set(drains["osds"]))
    if state in ("balanced", "stuck", "off") and status["execution"]:
        yield "a plan is under way"
    if state == "balanced" and ours.moves:
        yield f"{len(ours.moves)} of our moves are on their way"
    if state == "throttled" and any(
            row["state"] in ("backfilling", "recovering") for row in status["moving"]["states"]):
        yield f"of our shards are being copied: {status['moving']['states']}"
    if state == "balanced" and not status["reason"]:
        yield "no reason is given"


def _unsafe(cluster: Cluster, osds: Set[int]) -> Iterator[str]:
    """What is wrong where these OSDs are called safe to stop."""
    for pgid, pg in cluster.pgs.items():
        here = osds.intersection(pg.holders(), cluster.map.acting(pgid),
                                 cluster.map.up.get(pgid, ()))
        if here:
            yield f"osd.{min(here)} is called safe to stop, and pg {pgid} is on it"
        lost = osds & _only_on_down(cluster, pg)
        if lost:
            yield f"osd.{min(lost)} is called safe to stop, and pg {pgid} lacks what it has"


def _only_on_down(cluster: Cluster, pg: Any) -> Set[int]:
    """OSDs that are down with shards on their disks, of a PG that lacks copies."""
    up = [osd for osd in cluster.map.up.get(pg.pgid, ()) if osd != NONE]
    if len(up) >= cluster.size_of(pg) and pg.pgid not in cluster.unclean:
        return set()
    strays = [osd for _, osd in pg.strays]
    return {osd for osd in (*pg.held, *strays) if osd != NONE and not cluster.map.is_up(osd)}


def t6_eval(session: Session, status: Answer, evaluation: Answer) -> Iterator[str]:
    if "refused" in evaluation:
        yield f"eval is refused: {evaluation['refused']}"
        return
    for said in evaluation["classes"]:
        name = said["device_class"]
        here = by_class(status).get(name, {})
        if (here.get("max_utilization"), here.get("fullest_osd")) != (
                said["max_utilization"], said["fullest_osd"]):
            yield f"eval and status differ in class {name}"


def t7_stored(session: Session, status: Answer, evaluation: Answer) -> Iterator[str]:
    cluster, stored = session.cluster, stored_bytes(session.cluster)
    known = {pool["id"] for pool in evaluation.get("pools", [])}
    if known != set(cluster.map.pools):
        yield f"pools {sorted(set(cluster.map.pools) ^ known)} are not told of"
    ceph = {pool["id"]: pool["stats"] for pool in session.mgr.get("df")["pools"]}
    for pool in evaluation.get("pools", []):
        really = stored[pool["id"]]
        said = pool["stored"] - ceph[pool["id"]]["stored_omap"]   # `ceph df` counts omap too
        if abs(said - really) > 0.02 * really + (64 << 20):
            yield f"pool {pool['name']} stores {really}, said is {said}"


def t10_too_full(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    progress = session.simulation.reports.get("pg_progress")["pgs"]
    waiting = sorted(pgid for pgid, pg in progress.items() if "toofull" in pg["state"])
    told = {pgid for entry in status["too_full"] for pgid in entry["pgids"]}
    if waiting and not told.intersection(waiting):
        yield f"pg {waiting[0]} waits for an OSD that is too full, told are {sorted(told)}"


def t11_moves(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    really = cluster_view.all_coming(session.cluster)
    said = {(move["pgid"], move["target"]): move for move in ask(session, "moves")["moves"]}
    peering = _arrived_and_peering(session)
    for what in sorted(said.keys() - really.keys(), key=str):
        # it is there when its PG has peered, and T3 holds its end
        if session.cluster.pgs[what[0]].shard.total and what[0] not in peering:
            yield f"{what} is not on its way, said is that it is"
    for what in sorted(really.keys() - said.keys(), key=str):
        # else it lacks entries of the log and no bytes, and no report names such an OSD
        if really[what] or what[1] not in session.cluster.map.acting(what[0]):
            yield f"{what} is on its way, said is that it is not"
    both = sorted(really.keys() & said.keys(), key=str)
    for what in both:
        if _is_ours(ours, *what) and said[what]["origin"] != "plan":
            yield f"{what} is ours, said is {said[what]['origin']}"
    # Ceph tells how much is left of a PG, not of each of its shards
    for pgid in dict.fromkeys(pgid for pgid, _ in both):
        left = sum(count for what, count in really.items() if what[0] == pgid)
        told = [move["left_bytes"] for what, move in said.items() if what[0] == pgid]
        # shards of a pool that was found to take more come with what was measured
        left = int(left * (1.0 + ours.swelling.get(session.cluster.pgs[pgid].pool_id, 0.0)))
        slack = _LEFT_SLACK * session.cluster.pgs[pgid].shard.total + (64 << 20)
        if abs(sum(told) - left) > slack * len(told):
            yield f"{left} bytes of {pgid} are left, said is {sum(told)}"


def t20_mispredicted(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    for found in status["mispredicted"]:
        pool = int(found["pool_id"])
        cluster = session.cluster
        if not cluster.copy_overhead.get(pool) and cluster.shard_ratios.is_plain:
            yield f"no shard of pool {pool} takes more, said is '{found['reason']}'"


def t22_slow(session: Session, ours: UnderWay, status: Answer) -> Iterator[str]:
    for one in status["slow_osds"]:
        if one["osd"] not in session.simulation.backfill.own_rates:
            yield f"osd.{one['osd']} is as fast as others, said is '{one['sentence']}'"


def _is_ours(ours: UnderWay, pgid: str, target: int) -> bool:
    move = ours.moves.get(pgid)
    return move is not None and move.entry.returncode == 0 and target in ours.flowing(move)


_RULES: Dict[str, Callable[[Session, UnderWay, Answer], Iterator[str]]] = {
    "T1": t1_fill, "T2": t2_misplaced, "T3": t3_moving, "T4": t4_remaining, "T5": t5_state,
    "T8": t8_now, "T10": t10_too_full, "T22": t22_slow,
    "T11": t11_moves, "T20": t20_mispredicted, "T17": advice.t17_advice, "T18": advice.t18_inactive}
_EVAL_RULES: Dict[str, Callable[[Session, Answer, Answer], Iterator[str]]] = {
    "T6": t6_eval, "T7": t7_stored}
_SLOW = ("T1", "T3", "T11", "T12", "T14", "T18")
#: Tables are asked for at one look in so many: each is a pass over all pools or OSDs.
_LOOKS_PER_TABLE, _LOOKS_PER_EVAL = 10, 3
_LOOKS_ALIKE = 6
_MOST_NOTES = 20
