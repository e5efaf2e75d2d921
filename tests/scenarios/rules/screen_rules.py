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
from typing import Any, Dict, Iterator, List, Optional, Set

from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR

from ..watch import truth
from ..watch.advice import labelled, needless

Answer = Dict[str, Any]

#: Calls of `observe` for one question; each event has its own.
_CALLS = 7
_MOST_NOTES = 20
#: Seconds that a figure of a look may be behind: looks at what stands still, and reports.
_LATE_SECONDS = 730.0
#: Ratios of an OSD: reports come one after the other.
_SLACK, _SOON_SLACK = 0.002, 0.02
_GROUP_FLAGS = ("noout", "noup")
_BEFORE = re.compile(r"nothing (?:is sent )?before ([0-9]{4}-[0-9]{2}-[0-9]{2} )?([0-9]{2}:[0-9]{2})")
_UPMAPS = ("osd pg-upmap-items", "osd rm-pg-upmap-items")


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
        process = session.mgr.process
        self._calls += 1
        if session.module is None or process.is_dead or process.counts_calls or not (
                is_event or self._calls % _CALLS == 1):
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
        return found if now - self._since.setdefault(rule, now) > most else []

    def _hold_promise(self, session: Session, is_event: bool) -> None:
        """N8: nothing is sent before the time that was said, unless something happens."""
        log, until = session.simulation.monitor.log, self._not_before
        early = [entry for entry in log[self._read:]
                 if entry.sender == MGR and entry.prefix in _UPMAPS]
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
        code, out, message = session._module_command(["equilibrium", *line.split()])
    finally:
        del balancer.request_observation
    return message if code else out


def _promised(data: Answer, session: Session) -> Optional[float]:
    found = _BEFORE.search(f"{data['action']}; {data['reason']}")
    if found is None:
        return None
    now = session.clock()
    day = (found.group(1) or time.strftime("%Y-%m-%d ", time.gmtime(now)))
    return float(calendar.timegm(time.strptime(day + found.group(2), "%Y-%m-%d %H:%M")))


def reported(session: Session) -> Dict[int, float]:
    """OSD that is up and in → utilization as the mgr has been told."""
    osds = session.cluster.map.osds
    found: Dict[int, float] = {}
    for record in session.simulation.reports.get("osd_stats")["osd_stats"]:
        entry, total = osds.get(record["osd"]), record["statfs"]["total"]
        if entry is not None and entry["up"] and float(entry["weight"]) > 0.0 and total:
            found[record["osd"]] = (total - record["statfs"]["available"]) / total
    return found


def _down(session: Session) -> Set[int]:
    return {osd for osd, entry in session.cluster.map.osds.items()
            if not entry["up"] and float(entry["weight"]) > 0.0}


def _outage(data: Answer) -> Answer:
    empty: Answer = {"down_osds": [], "full_osds": [], "inactive_pgs": 0, "flags": []}
    return data["outage"] or empty


def n1_down(session: Session, data: Answer, screen: str) -> Iterator[str]:
    said, down = set(_outage(data)["down_osds"]), _down(session)
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
    there = {"pause" if flag.startswith("pause") else flag for flag in osdmap.flags}
    for flag in set(_outage(data)["flags"]) - there - _held_flags(session):
        yield f"flag {flag} is not set"
    if "pause" in there and "flag pause " not in first:
        yield f"flag pause is set, first is said '{first}'"
    if not _down(session):
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
    for osd in _down(session):
        found.update(cluster.map.osds[osd].get("state", ()))
        found.update(by_class.get(cluster.crush.classes.get(osd, ""), ()))
        for name, flags in by_name.items():
            if name == f"osd.{osd}" or osd in below.get(name, ()):
                found.update(flags)
    return found.intersection(_GROUP_FLAGS)


def n4_inactive(session: Session, data: Answer, screen: str) -> Iterator[str]:
    told = _outage(data)["inactive_pgs"]
    if data["state"] == "off" and not told:
        return   # PGs may only peer: a look tells since when, and the question of others starts it
    count = sum(entry["count"] for pool in
                session.simulation.reports.get("pg_status")["pgs_by_pool_state"]
                for entry in pool["pg_state_counts"]
                if not {"active", "premerge", "unknown"}.intersection(
                    entry["state_name"].split("+")))
    if bool(count) != bool(told) and not (told and data["outage"] and "reported" in str(
            data["outage"]["sentence"])):
        yield f"{count} PGs are inactive, said are {told}"


def n5_use(session: Session, data: Answer, screen: str) -> Iterator[str]:
    levels, classes = reported(session), session.cluster.crush.classes
    for row in data["classes"]:
        here = [level for osd, level in levels.items()
                if (classes.get(osd) or "none") == row["device_class"]]
        if here and len(here) == row["osds"] and abs(
                max(here) - row["max_utilization"]) > _SLACK:
            yield f"class {row['device_class']} is at {max(here):.4f}, said is" \
                  f" {row['max_utilization']:.4f}"


def n6_bound(session: Session, data: Answer, screen: str) -> Iterator[str]:
    """No placement leaves less data than there is once all has arrived, and been freed."""
    cluster = session.cluster
    states = session.simulation.reports.get("pg_progress")["pgs"].values()
    if data["drains"]["osds"] or not _are_classes_apart(session) or any(
            "degraded" in pg["state"] for pg in states):
        return   # of what is lost, nobody knows what its copies will take
    for row in data["classes"]:
        least, bound = _mean_soon(session, row["device_class"]), row["bound_utilization"]
        if bound is not None and bound < least - _SLACK:
            yield f"class {row['device_class']} is at {least:.4f}, said to be possible is" \
                  f" {bound:.4f}"


def _mean_soon(session: Session, device_class: str) -> float:
    """The utilization of a class once all has arrived: none of its placements is below that."""
    cluster, fits = session.cluster, truth.arrived(session.cluster)
    here = {osd: cluster.usage[osd].total for osd in fits
            if cluster.map.exists(osd) and cluster.map.reweight(osd) > 0.0 and (
                cluster.crush.classes.get(osd) or "none") == device_class}
    alive = {osd: size for osd, size in here.items() if cluster.map.is_up(osd)}
    return min(sum(fits[osd] * size for osd, size in some.items()) / max(1, sum(some.values()))
               for some in (here, alive))


def _are_classes_apart(session: Session) -> bool:
    """Nothing is on its way from one device class to another."""
    classes = session.cluster.crush.classes
    return all(classes.get(source) == classes.get(target)
               for pg in session.cluster.unclean.values()
               for source in pg.holders() for target in pg.targets())


def will_not_fit(session: Session) -> Dict[int, float]:
    """OSD that takes data → utilization, of those that pass a ratio with what comes."""
    levels, osdmap = reported(session), session.cluster.map
    ratios = [osdmap.ratio(f"{name}_ratio") for name in ("nearfull", "backfillfull", "full")]
    return {osd: soon for osd, soon in truth.arrived(session.cluster).items() if osd in levels
            and any(levels[osd] + _SLACK < ratio < soon - _SOON_SLACK for ratio in ratios)}


def n7_will_not_fit(session: Session, data: Answer, screen: str) -> Iterator[str]:
    """N7 and N10."""
    said = {one["osd"]: one for one in data.get("will_not_fit", ())}
    fits = truth.arrived(session.cluster)
    nearfull = session.cluster.map.ratio("nearfull_ratio")
    backfillfull = session.cluster.map.ratio("backfillfull_ratio")
    for osd, soon in will_not_fit(session).items():
        if osd not in said:
            yield f"osd.{osd} will be at {soon:.4f}, and nothing says so"
        elif abs(said[osd]["soon_utilization"] - soon) > _SOON_SLACK:
            yield f"osd.{osd} will be at {soon:.4f}, said is {said[osd]['soon_utilization']:.4f}"
        if soon > backfillfull + _SOON_SLACK and str(data["action"]).startswith(
                "nothing; it ends by itself"):
            yield f"osd.{osd} will be at {soon:.4f}, to do is '{data['action']}'"
    for osd in said:
        if fits.get(osd, 0.0) < nearfull - _SOON_SLACK:
            yield f"osd.{osd} will be at {fits.get(osd, 0.0):.4f}, said is that it will not fit"
    for row in data["classes"]:
        if _mean_soon(session, row["device_class"]) > backfillfull + _SOON_SLACK and str(
                data["action"]).startswith("nothing; it ends by itself"):
            yield f"all of class {row['device_class']} is too full, to do is '{data['action']}'"
    if said and "will not fit" not in labelled(screen, "cluster:"):
        yield "the first line does not say what will not fit"


def n9_first(session: Session, data: Answer, screen: str) -> Iterator[str]:
    """The OSD that comes first is the fullest, now or soon, where one passes nearfull_ratio."""
    nearfull = session.cluster.map.ratio("nearfull_ratio")
    rows = [(max(row["max_utilization"], row["soon_max_utilization"] or 0.0), row["fullest_osd"])
            for row in data["classes"] if row["max_utilization"] is not None]
    highest, osd = max(rows)
    named = _ask(session, "status --brief").split()[2]
    near = {f"osd.{one}" for level, one in rows if level > highest - _SLACK}
    if highest >= nearfull + _SLACK and named not in near:
        yield f"osd.{osd} is or will be at {highest:.4f}, first is {named}"


def n11_needless(session: Session, data: Answer, screen: str) -> Iterator[str]:
    return needless(session, data["action"])


_RULES = {"N1": n1_down, "N2": n2_full, "N3": n3_flags, "N5": n5_use}
#: What may be wrong for so many seconds, and two rounds: of reports, of peering, between looks.
_LATE = (("N11", n11_needless, 0.0), ("N4", n4_inactive, 130.0), ("N6", n6_bound, 130.0),
         ("N7", n7_will_not_fit, _LATE_SECONDS), ("N9", n9_first, _LATE_SECONDS))
_OF_THE_LOOK = ("N6", "N7", "N9")
