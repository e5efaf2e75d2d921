"""The screen is of now: `status` at any moment, held against the cluster of that moment.

N1 OSDs that are down, N2 OSDs above full_ratio, N3 flags of the cluster and of groups of OSDs, N4
PGs that serve no client, N5 how full classes are, N6 bounds that can be, N7 what will not fit, N8
"nothing before", N9 the class that comes first, N10 what to do where something will not fit, N11
commands that set what is so already.

The question starts no look at the cluster, so that each is the first one that an operator asks.
"""
from __future__ import annotations

import calendar
import json
import re
import time
from operator import itemgetter
from typing import Any, Dict, Iterator, List, Optional, Set

from mgr_stub.console.session import Session

from ..watch import cluster_view, truth
from ..watch.advice import labelled, needless, plain
from .under_way import is_ours

Answer = Dict[str, Any]

#: Calls of `observe` for one question; each event has its own.
_CALLS = 7
_MOST_NOTES = 20
#: Seconds that a figure of a look may be behind: looks at what stands still, and reports.
_LATE_SECONDS = 730.0
#: Ratios of an OSD: reports come one after the other.
_SLACK, _SOON_SLACK = 0.002, 0.02
#: States of PGs that serve clients, or of which nothing is known.
_SERVING = frozenset(("active", "premerge", "unknown"))
_GROUP_FLAGS = ("noout", "noup")
_BEFORE = re.compile(r"nothing (?:is sent )?before ([0-9]{4}-[0-9]{2}-[0-9]{2} )?"
                     r"([0-9]{2}:[0-9]{2})")


class ScreenOfNow:
    """`broken`: what was said and is not so; `asked`: moments that were looked at."""

    def __init__(self) -> None:
        self.broken: List[str] = []
        self.asked = 0
        self._calls = 0
        self._asked_at = self._pause = 0.0   # seconds; the pause is that before this question
        self._since: Dict[str, float] = {}   # what is wrong, or there → seconds, without end
        self._read = 0                       # of the monitor's log
        self._not_before: Optional[float] = None

    def observe(self, session: Session, is_event: bool = False) -> None:
        """One moment. `is_event`: something has just happened."""
        self._hold_promise(session, is_event)
        self._calls += 1
        if cluster_view.is_away(session) or not is_event and self._calls % _CALLS != 1:
            return
        self._pause = session.clock.now - self._asked_at
        self._asked_at = session.clock.now
        status, screen = (_ask(session, line) for line in ("status --format json", "status"))
        self.asked += 1
        data: Answer = json.loads(status)
        self._not_before = _promised(data, session)
        if not data["classes"]:   # before the first look there is none
            if not data["look_started"] and labelled(screen, "figures:"):
                self._note(session, "N0", "it knows nothing and looks at nothing")
            return
        if not session.mgr.mon_connected:   # what the mgr knows of the map is of before
            return
        for rule, check in _RULES.items():
            for what in check(session, data, screen):
                self._note(session, rule, what)
        rounds = 2.0 * float(session.module.settings().sleep_interval)
        for rule, check, most in _LATE:
            found = list(check(session, data, screen))
            if rule in _OF_THE_LOOK and labelled(screen, "figures:"):
                continue   # which says that these are old
            for what in self._late(session, rule, found, most + rounds):
                self._note(session, rule, what)

    def _late(self, session: Session, rule: str, found: List[str], most: float) -> List[str]:
        """What has been wrong for longer than reports and rounds take."""
        now = session.clock.now
        if not found or self._pause > most:   # two moments tell nothing of a long time in between
            self._since.pop(rule, None)
        if not found:
            return []
        if now - self._since.setdefault(rule, now) > most:
            return found
        return []

    def _hold_promise(self, session: Session, is_event: bool) -> None:
        """N8: nothing is sent before the time that was said, unless something happens."""
        log, until = session.command_log, self._not_before
        early = any(map(is_ours, log[self._read:]))
        self._read = len(log)
        if is_event:
            self._not_before = None
        elif until is not None and early and session.clock() < until:
            self._note(session, "N8", f"sent {int(until - session.clock())} s before the time"
                       " that was said")
            self._not_before = None

    def _note(self, session: Session, rule: str, what: str) -> None:
        if len(self.broken) < _MOST_NOTES:
            self.broken.append(f"{rule}: {what} (at {int(session.clock.elapsed())} s)")


def _ask(session: Session, line: str) -> str:
    """The answer of a question that no look comes of, as little as of none."""
    balancer = session.module.balancer
    balancer.request_observation = lambda at_rest=False: True
    try:
        return plain(session, line)
    finally:
        del balancer.request_observation


def _promised(data: Answer, session: Session) -> Optional[float]:
    found = _BEFORE.search(f"{data['action']}; {data['reason']}")
    if found is None:
        return None
    now = session.clock()
    day = (found.group(1) or time.strftime("%Y-%m-%d ", time.gmtime(now)))
    return float(calendar.timegm(time.strptime(day + found.group(2), "%Y-%m-%d %H:%M")))


def reported(session: Session) -> Dict[int, float]:
    """OSD that is up and in → utilization as the mgr has been told."""
    levels = cluster_view.reported_levels(session.simulation.reports)
    return {osd: level for osd, level in levels.items()
            if cluster_view.may_take(session.cluster, osd)}


def _outage(data: Answer) -> Answer:
    empty: Answer = {"down_osds": [], "full_osds": [], "inactive_pgs": 0, "flags": []}
    return data["outage"] or empty


def n1_down(session: Session, data: Answer, screen: str) -> Iterator[str]:
    said, down = set(_outage(data)["down_osds"]), cluster_view.down(session.cluster)
    if down - said:
        yield f"OSDs {sorted(down)} are down, said are {sorted(said)}"
    alive = {osd for osd in said if session.cluster.map.is_up(osd)}
    if alive:
        yield f"OSDs {sorted(alive)} are up, and said to be down"


def n2_full(session: Session, data: Answer, screen: str) -> Iterator[str]:
    full = {osd for osd, level in reported(session).items()
            if level > session.cluster.map.ratio("full_ratio")}
    said = set(_outage(data)["full_osds"])
    if said != full:
        yield f"OSDs {sorted(full)} are full, said are {sorted(said)}"
    elif full and "are stopped: " not in labelled(screen, "cluster:"):
        yield f"osd.{min(full)} takes no writes, and the first line does not say so"


def n3_flags(session: Session, data: Answer, screen: str) -> Iterator[str]:
    osdmap, first = session.cluster.map, labelled(screen, "cluster:")
    there = {re.sub("^pause.*", "pause", flag) for flag in osdmap.flags}
    for flag in set(_outage(data)["flags"]) - there - _held_flags(session):
        yield f"flag {flag} is not set"
    if "pause" in there and "flag pause " not in first:
        yield f"flag pause is set, first is said '{first}'"
    if not cluster_view.down(session.cluster):
        return
    for flag in _GROUP_FLAGS:
        if flag in there | _held_flags(session) and f"flag {flag} " not in first:
            yield f"flag {flag} is of OSDs that are down, first is said '{first}'"


def _held_flags(session: Session) -> Set[str]:
    """Flags that OSDs which are down and in have of their own, of a bucket or of their class."""
    cluster, found = session.cluster, set()
    by_name: Dict[str, List[str]] = cluster.map.rest.get("crush_node_flags") or {}
    by_class: Dict[str, List[str]] = cluster.map.rest.get("device_class_flags") or {}
    below = {bucket["name"]: set(cluster.crush.weights_below(bucket["id"]))
             for bucket in cluster.crush.as_dump()["buckets"] if bucket["name"] in by_name}
    for osd in cluster_view.down(cluster):
        found.update(cluster.map.osds[osd].get("state", ()))
        found.update(by_class.get(cluster_view.class_of(cluster, osd), ()))
        for name, flags in by_name.items():
            if name == f"osd.{osd}" or osd in below.get(name, ()):
                found.update(flags)
    return found.intersection(_GROUP_FLAGS)


def n4_inactive(session: Session, data: Answer, screen: str) -> Iterator[str]:
    told = _outage(data)["inactive_pgs"]
    if data["state"] == "off" and not told:
        return   # PGs may only peer: a look tells since when, and the question of others starts it
    if told and "reported" in str(data["outage"]["sentence"]):
        return
    count = sum(count for _, words, count in cluster_view.pool_states(session.simulation.reports)
                if not words & _SERVING)
    if bool(count) != bool(told):
        yield f"{count} PGs are inactive, said are {told}"


def n5_use(session: Session, data: Answer, screen: str) -> Iterator[str]:
    levels = reported(session)
    for row in data["classes"]:
        name, said = row["device_class"], row["max_utilization"]
        here = [level for osd, level in levels.items()
                if cluster_view.class_of(session.cluster, osd) == name]
        if here and len(here) == row["osds"] and abs(max(here) - said) > _SLACK:
            yield f"class {name} is at {max(here):.4f}, said is {said:.4f}"


def n6_bound(session: Session, data: Answer, screen: str) -> Iterator[str]:
    """No placement leaves less data than there is once all has arrived, and been freed."""
    if data["drains"]["osds"] or not _are_classes_apart(session):
        return
    for pg in session.simulation.reports.get("pg_progress")["pgs"].values():
        if "degraded" in pg["state"]:
            return   # of what is lost, nobody knows what its copies will take
    for row in data["classes"]:
        name, bound = row["device_class"], row["bound_utilization"]
        least = _mean_soon(session, name)
        if bound is not None and bound < least - _SLACK:
            yield f"class {name} is at {least:.4f}, said to be possible is {bound:.4f}"


def _mean_soon(session: Session, device_class: str) -> float:
    """The utilization of a class once all has arrived: none of its placements is below that."""
    cluster, fits = session.cluster, truth.arrived(session.cluster)
    here = [osd for osd in fits if cluster_view.is_in(cluster, osd)
            and cluster_view.class_of(cluster, osd) == device_class]
    means = []
    for osds in (here, list(filter(cluster.map.is_up, here))):
        used = sum(fits[osd] * cluster.usage[osd].total for osd in osds)
        means.append(used / max(1, sum(cluster.usage[osd].total for osd in osds)))
    return min(means)


def _are_classes_apart(session: Session) -> bool:
    """Nothing is on its way from one device class to another."""
    classes = session.cluster.crush.classes
    for pg in session.cluster.unclean.values():
        holders = map(classes.get, pg.holders())
        if pg.targets() and len({*holders, *map(classes.get, pg.targets())}) > 1:
            return False
    return True


def will_not_fit(session: Session) -> Dict[int, float]:
    """OSD that takes data → utilization, of those that pass a ratio with what comes."""
    osdmap, soon = session.cluster.map, truth.arrived(session.cluster)
    ratios = [osdmap.ratio(f"{name}_ratio") for name in ("nearfull", "backfillfull", "full")]
    found: Dict[int, float] = {}
    for osd, level in reported(session).items():
        least, most = level + _SLACK, soon.get(osd, 0.0) - _SOON_SLACK
        if any(least < ratio < most for ratio in ratios):
            found[osd] = soon[osd]
    return found


def n7_will_not_fit(session: Session, data: Answer, screen: str) -> Iterator[str]:
    """N7 and N10."""
    said = {one["osd"]: one["soon_utilization"] for one in data.get("will_not_fit", ())}
    fits, ratio, action = truth.arrived(session.cluster), session.cluster.map.ratio, data["action"]
    least, most = ratio("nearfull_ratio") - _SOON_SLACK, ratio("backfillfull_ratio") + _SOON_SLACK
    is_to_end = action.startswith("nothing; it ends by itself")
    for osd, soon in will_not_fit(session).items():
        if osd not in said:
            yield f"osd.{osd} will be at {soon:.4f}, and nothing says so"
        elif abs(said[osd] - soon) > _SOON_SLACK:
            yield f"osd.{osd} will be at {soon:.4f}, said is {said[osd]:.4f}"
        if is_to_end and soon > most:
            yield f"osd.{osd} will be at {soon:.4f}, to do is '{action}'"
    for osd in said:
        soon = fits.get(osd, 0.0)
        if soon < least:
            yield f"osd.{osd} will be at {soon:.4f}, said is that it will not fit"
    for row in data["classes"]:
        if is_to_end and _mean_soon(session, row["device_class"]) > most:
            yield f"all of class {row['device_class']} is too full, to do is '{action}'"
    if said and "will not fit" not in labelled(screen, "cluster:"):
        yield "the first line does not say what will not fit"


def n9_first(session: Session, data: Answer, screen: str) -> Iterator[str]:
    """The OSD that comes first is the fullest, now or soon, where one passes nearfull_ratio."""
    nearfull = session.cluster.map.ratio("nearfull_ratio")
    levels = {f"osd.{row['fullest_osd']}": max(row["max_utilization"],
                                               row["soon_max_utilization"] or 0.0)
              for row in data["classes"] if row["max_utilization"] is not None}
    named = _ask(session, "status --brief").split()[2]
    osd, highest = max(levels.items(), key=itemgetter(1))
    if highest >= nearfull + _SLACK and levels.get(named, 0.0) <= highest - _SLACK:
        yield f"{osd} is or will be at {highest:.4f}, first is {named}"


def n11_needless(session: Session, data: Answer, screen: str) -> Iterator[str]:
    return needless(session, data["action"])


_RULES = {"N1": n1_down, "N2": n2_full, "N3": n3_flags, "N5": n5_use}
#: What may be wrong for so many seconds, and two rounds: of reports, of peering, between looks.
_LATE = (("N11", n11_needless, 0.0), ("N4", n4_inactive, 130.0), ("N6", n6_bound, 130.0),
         ("N7", n7_will_not_fit, _LATE_SECONDS), ("N9", n9_first, _LATE_SECONDS))
_OF_THE_LOOK = ("N6", "N7", "N9")
