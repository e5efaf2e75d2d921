"""The monitor's care for OSDs: one that stays down is marked out, and in when it is back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

from ..cluster.map_change import MapChange
from .timers import Timer

if TYPE_CHECKING:
    from .simulation import Simulation

#: State of an OSD that the monitor has marked out by itself.
AUTO_OUT = "autoout"


class DownOut(Timer):
    """Marks OSDs out that have been down for `mon_osd_down_out_interval`, unless `noout` is set."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        #: When each OSD went down; those that the state file has down stay in.
        self._down_since: Dict[int, float] = {}
        self._seen = simulation.cluster.map.osds
        self._down_at_first = {osd for osd, entry in self._seen.items() if not entry["up"]}

    def next_moment(self) -> Optional[float]:
        osdmap = self._simulation.cluster.map
        if osdmap.osds is not self._seen:
            self._look(osdmap.osds)
        if not self._down_since or "noout" in osdmap.flags:
            return None
        return min(self._down_since.values()) + self._interval()

    def _look(self, osds: Dict[int, Dict[str, Any]]) -> None:
        known, now = self._down_since, self._simulation.clock.now
        self._seen = osds
        self._down_at_first &= {osd for osd, entry in osds.items() if not entry["up"]}
        self._down_since = {
            osd: known.get(osd, now) for osd, entry in osds.items()
            if not entry["up"] and float(entry["weight"]) > 0 and osd not in self._down_at_first}

    def _interval(self) -> float:
        return float(self._simulation.config.core("mon", "mon_osd_down_out_interval"))

    def run(self) -> None:
        limit = self._simulation.clock.now - self._interval()
        due = sorted(osd for osd, since in self._down_since.items() if since <= limit)
        for osd in due:
            del self._down_since[osd]
        osds = self._simulation.cluster.map.osds
        self._simulation.enact(MapChange(
            osds={osd: marked_out(osds[osd], by_itself=True) for osd in due}))


def marked_out(entry: Dict[str, Any], by_itself: bool = False) -> Dict[str, Any]:
    """The osdmap's entry of an OSD, with the OSD out; its reweight is kept for its return.

    With `by_itself` it is the monitor who does it, so it comes back in as soon as it is up.
    """
    if float(entry["weight"]) <= 0:
        return entry
    state = sorted({*entry["state"], AUTO_OUT}) if by_itself else entry["state"]
    return {**entry, "in": 0, "weight": 0.0, "old_weight": float(entry["weight"]), "state": state}


def marked_in(entry: Dict[str, Any]) -> Dict[str, Any]:
    """The osdmap's entry of an OSD, with the OSD in, of the reweight that it had."""
    if float(entry["weight"]) > 0:
        return entry
    return reweighted(entry, entry.get("old_weight", 0.0) or 1.0)


def reweighted(entry: Dict[str, Any], weight: float) -> Dict[str, Any]:
    """The osdmap's entry of an OSD of a reweight 0..1; above 0 it is forgotten that it was out."""
    if weight <= 0:
        return {**entry, "in": 0, "weight": 0.0}
    return {**entry, "in": 1, "weight": float(weight), "old_weight": 0.0,
            "state": [word for word in entry["state"] if word != AUTO_OUT]}


def marked_down(entry: Dict[str, Any]) -> Dict[str, Any]:
    """The osdmap's entry of an OSD, with the OSD down."""
    return {**entry, "up": 0, "state": [word for word in entry["state"] if word != "up"]}


def marked_up(entry: Dict[str, Any], comes_in: bool, epoch: int) -> Dict[str, Any]:
    """The osdmap's entry of an OSD, with the OSD up; with `comes_in` the monitor's out ends.

    `epoch` is the one that has it up first: where it has been down, that is its `up_from`.
    """
    if entry["up"]:
        started = entry
    else:
        down = marked_down(entry)
        started = {**down, "up": 1, "up_from": epoch, "state": down["state"] + ["up"]}
    return marked_in(started) if comes_in and AUTO_OUT in entry["state"] else started
