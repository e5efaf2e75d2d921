"""Ceph's own command lines that change OSDs, ratios, weights, pools and the CRUSH tree."""

from __future__ import annotations

from typing import Callable, Dict, List

from ..crush.edit import with_bucket_moved
from ..errors import invalid
from ..events import osd_events, pool_events
from ..osdmap.map_change import MapChange
from ..simulation.simulation import Simulation
from .sim_arguments import exact_words, parse_number, parse_osd, parse_ratio, parse_whole

_Command = Callable[[Simulation, List[str]], None]


def _set_ratio(place: int) -> _Command:
    """Ceph refuses no order of the three; the simulation does."""
    names = ("nearfull_ratio", "backfillfull_ratio", "full_ratio")

    def run(simulation: Simulation, words: List[str]) -> None:
        usage = f"osd set-{names[place].replace('_', '-')} RATIO"
        ratios = [simulation.cluster.map.ratio(name) for name in names]
        ratios[place] = parse_ratio(exact_words(words, 1, usage)[0], "a full ratio")
        osd_events.set_full_ratios(simulation, *ratios)
    return run


def _reweight(simulation: Simulation, words: List[str]) -> None:
    osd, weight = exact_words(words, 2, "osd reweight OSD WEIGHT")
    osd_events.reweight(simulation, parse_osd(osd), parse_number(weight, "a reweight"))


def _crush_reweight(simulation: Simulation, words: List[str]) -> None:
    osd, weight = exact_words(words, 2, "osd crush reweight NAME WEIGHT")
    osd_events.crush_reweight(simulation, parse_osd(osd), parse_number(weight, "a CRUSH weight"))


def _crush_move(simulation: Simulation, words: List[str]) -> None:
    name, place = exact_words(words, 2, "osd crush move NAME TYPE=BUCKET")
    try:
        crush = with_bucket_moved(simulation.cluster.crush.as_dump(), name, place.split("=")[-1])
    except ValueError as error:
        raise invalid(str(error)) from None
    simulation.apply_change(MapChange(crush=crush))


def _pool_set(simulation: Simulation, words: List[str]) -> None:
    name, variable, value = exact_words(words, 3, "osd pool set POOL pg_num N")
    if variable != "pg_num":
        raise invalid("the simulation sets pg_num alone")
    pool_events.set_pg_num(simulation, name, parse_whole(value, "pg_num"))


COMMANDS: Dict[str, _Command] = {
    "osd set-nearfull-ratio": _set_ratio(0), "osd set-backfillfull-ratio": _set_ratio(1),
    "osd set-full-ratio": _set_ratio(2), "osd reweight": _reweight,
    "osd crush reweight": _crush_reweight, "osd crush move": _crush_move,
    "osd pool set": _pool_set,
    "osd in": lambda simulation, words: osd_events.mark_in(simulation, map(parse_osd, words)),
    "osd out": lambda simulation, words: osd_events.mark_out(simulation, map(parse_osd, words))}
