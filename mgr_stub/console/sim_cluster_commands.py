"""`sim` commands that change the cluster: OSDs, hosts, pools, clients, flags."""

from __future__ import annotations

from typing import Callable, Dict, List

from ..clock import parse_span
from ..errors import invalid
from ..events import cluster_events, omap_events, osd_events, pool_events, shard_events
from ..simulation.deletion import set_span
from ..simulation.simulation import Simulation
from .sim_arguments import (
    exact_words, parse_number, parse_osd, parse_rate, parse_ratio, parse_size, parse_whole,
    split_options)

Command = Callable[[Simulation, List[str]], str]


def _for_osds(usage: str, act: Callable[[Simulation, List[int]], None]) -> Command:
    def run(simulation: Simulation, words: List[str]) -> str:
        if not words:
            raise invalid(f"it is: sim {usage}")
        act(simulation, [parse_osd(word) for word in words])
        return ""
    return run


def _osd_reweight(simulation: Simulation, words: List[str]) -> str:
    osd, weight = exact_words(words, 2, "osd reweight N WEIGHT")
    osd_events.reweight(simulation, parse_osd(osd),
                        parse_number(weight, "a reweight"))
    return ""


def _osd_crush_reweight(simulation: Simulation, words: List[str]) -> str:
    osd, weight = exact_words(words, 2, "osd crush-reweight N WEIGHT")
    osd_events.crush_reweight(simulation, parse_osd(osd),
                              parse_number(weight, "a CRUSH weight"))
    return ""


def _primary_affinity(simulation: Simulation, words: List[str]) -> str:
    osd, weight = exact_words(words, 2, "osd primary-affinity N WEIGHT")
    osd_events.primary_affinity(simulation, parse_osd(osd),
                                parse_number(weight, "a primary affinity"))
    return ""


def _osd_lose(simulation: Simulation, words: List[str]) -> str:
    osd, = exact_words(words, 1, "osd lose N")
    osd_events.lose(simulation, parse_osd(osd))
    return ""


def _full_ratios(simulation: Simulation, words: List[str]) -> str:
    usage = "osd full-ratios NEARFULL BACKFILLFULL FULL"
    ratios = [parse_ratio(word, "a full ratio") for word in exact_words(words, 3, usage)]
    osd_events.set_full_ratios(simulation, *ratios)
    return ""


def _host_add(simulation: Simulation, words: List[str]) -> str:
    usage = "host add NAME COUNT SIZE [class=hdd] [under=BUCKET]"
    plain, named = split_options(words, ("class", "under"))
    name, count, size = exact_words(plain, 3, usage)
    osds = osd_events.add_host(
        simulation, name, parse_whole(count, "COUNT"), parse_size(size),
        named.get("class", "hdd"), named.get("under"))
    return f"added {', '.join(f'osd.{osd}' for osd in osds)}"


def _host_down(simulation: Simulation, words: List[str]) -> str:
    osd_events.host_down(simulation, *exact_words(words, 1, "host down NAME"))
    return ""


def _host_up(simulation: Simulation, words: List[str]) -> str:
    osd_events.host_up(simulation, *exact_words(words, 1, "host up NAME"))
    return ""


def _pool_create(simulation: Simulation, words: List[str]) -> str:
    usage = "pool create NAME pg_num=N size=S [k=K] [rule=NAME]"
    plain, named = split_options(words, ("pg_num", "size", "k", "rule"))
    name, = exact_words(plain, 1, usage)
    if "pg_num" not in named or "size" not in named:
        raise invalid(f"it is: sim {usage}")
    pool_id = pool_events.create_pool(
        simulation, name, parse_whole(named["pg_num"], "pg_num"),
        parse_whole(named["size"], "size"),
        parse_whole(named["k"], "k") if "k" in named else None, named.get("rule"))
    return f"created pool '{name}' with the id {pool_id}"


def _pool_rm(simulation: Simulation, words: List[str]) -> str:
    name, = exact_words(words, 1, "pool rm NAME")
    pool_events.remove_pool(simulation, name)
    return ""


def _pool_pg_num(simulation: Simulation, words: List[str]) -> str:
    name, count = exact_words(words, 2, "pool pg_num NAME N")
    pool_events.set_pg_num(simulation, name, parse_whole(count, "pg_num"))
    return ""


def _pool_tier(simulation: Simulation, words: List[str]) -> str:
    name, base = exact_words(words, 2, "pool tier NAME BASE|-")
    pool_events.set_tier(simulation, name, None if base == "-" else base)
    return ""


def _stretch(simulation: Simulation, words: List[str]) -> str:
    name, = exact_words(words, 1, "stretch off|healthy|degraded|recovering")
    cluster_events.set_stretch_mode(simulation, name)
    return ""


def _write(simulation: Simulation, words: List[str]) -> str:
    name, size = exact_words(words, 2, "write POOL SIZE")
    wanted = parse_size(size)
    taken = pool_events.write(simulation, name, wanted)
    return "" if taken == wanted else f"only {taken} of {wanted} bytes found room"


def _delete(simulation: Simulation, words: List[str]) -> str:
    name, size = exact_words(words, 2, "delete POOL SIZE")
    pool_events.delete(simulation, name, parse_size(size))
    return ""


def _grow(simulation: Simulation, words: List[str]) -> str:
    name, rate = exact_words(words, 2, "grow POOL SIZE/SPAN")
    pool_events.grow(simulation, name, parse_rate(rate))
    return ""


def _swell(simulation: Simulation, words: List[str]) -> str:
    name, ratio = exact_words(words, 2, "swell POOL RATIO")
    simulation.cluster.copy_overhead[pool_events.pool_id_of(simulation, name)] = (
        parse_number(ratio, "RATIO"))
    return ""


def _osd_allocation(simulation: Simulation, words: List[str]) -> str:
    usage = "osd allocation RATIO N... [pool=NAME]"
    plain, named = split_options(words, ("pool",))
    if len(plain) < 2:
        raise invalid(f"it is: sim {usage}")
    pool = named.get("pool")
    shard_events.set_allocation(
        simulation, parse_number(plain[0], "RATIO"), [parse_osd(word) for word in plain[1:]],
        None if pool is None else pool_events.pool_id_of(simulation, pool))
    return ""


def _pool_optimize(simulation: Simulation, words: List[str]) -> str:
    name, chunk = exact_words(words, 2, "pool optimize NAME CHUNK")
    shard_events.optimize_pool(simulation, pool_events.pool_id_of(simulation, name),
                               parse_size(chunk))
    return ""


def _flag(wanted: bool) -> Command:
    def run(simulation: Simulation, words: List[str]) -> str:
        name, = exact_words(words, 1, f"flag {'set' if wanted else 'unset'} NAME")
        cluster_events.set_flag(simulation, name, wanted)
        return ""
    return run


def _backfill_rate(simulation: Simulation, words: List[str]) -> str:
    size, = exact_words(words, 1, "backfill rate SIZE")
    cluster_events.set_backfill_rate(simulation, parse_size(size))
    return ""


def _peering(simulation: Simulation, words: List[str]) -> str:
    span, = exact_words(words, 1, "peering SPAN")
    cluster_events.set_peering_time(simulation, parse_span(span))
    return ""


def _omap_by_scrub(simulation: Simulation, words: List[str]) -> str:
    word, = exact_words(words, 1, "omap-by-scrub on|off")
    if word not in ("on", "off"):
        raise invalid("it is: sim omap-by-scrub on|off")
    omap_events.set_by_scrub(simulation, word == "on")
    return ""


def _write_omap(simulation: Simulation, words: List[str]) -> str:
    name, size = exact_words(words, 2, "write-omap POOL SIZE")
    omap_events.write(simulation, pool_events.pool_id_of(simulation, name),
               parse_size(size))
    return ""


def _deep_scrub(simulation: Simulation, words: List[str]) -> str:
    name, = exact_words(words, 1, "deep-scrub POOL")
    omap_events.deep_scrub(simulation, pool_events.pool_id_of(simulation, name))
    return ""


def _compaction(simulation: Simulation, words: List[str]) -> str:
    span, = exact_words(words, 1, "compaction SPAN")
    simulation.cluster.compaction_seconds = parse_span(span)
    return ""


def _deletion(simulation: Simulation, words: List[str]) -> str:
    span, = exact_words(words, 1, "deletion SPAN")
    set_span(simulation.cluster, simulation.schedule, parse_span(span))
    return ""


def _scrub(simulation: Simulation, words: List[str]) -> str:
    pgid, span = exact_words(words, 2, "scrub PGID SPAN")
    cluster_events.scrub(simulation, pgid, parse_span(span))
    return ""


def _inconsistent(simulation: Simulation, words: List[str]) -> str:
    pgid, word = exact_words(words, 2, "inconsistent PGID on|off")
    if word not in ("on", "off"):
        raise invalid("it is: sim inconsistent PGID on|off")
    cluster_events.set_inconsistent(simulation, pgid, word == "on")
    return ""


def _log_recovery(wanted: bool) -> Command:
    def run(simulation: Simulation, words: List[str]) -> str:
        exact_words(words, 0, f"log-recovery {'on' if wanted else 'off'}")
        cluster_events.set_log_recovery(simulation, wanted)
        return ""
    return run


COMMANDS: Dict[str, Command] = {
    "osd out": _for_osds("osd out N...", osd_events.mark_out),
    "osd in": _for_osds("osd in N...", osd_events.mark_in),
    "osd down": _for_osds("osd down N...", osd_events.mark_down),
    "osd up": _for_osds("osd up N...", osd_events.mark_up),
    "osd reweight": _osd_reweight,
    "osd crush-reweight": _osd_crush_reweight,
    "osd primary-affinity": _primary_affinity,
    "osd lose": _osd_lose,
    "osd full-ratios": _full_ratios,
    "osd allocation": _osd_allocation,
    "host add": _host_add,
    "host down": _host_down,
    "host up": _host_up,
    "pool create": _pool_create,
    "pool rm": _pool_rm,
    "pool pg_num": _pool_pg_num,
    "pool tier": _pool_tier,
    "pool optimize": _pool_optimize,
    "stretch": _stretch,
    "write": _write,
    "delete": _delete,
    "grow": _grow,
    "swell": _swell,
    "flag set": _flag(True),
    "flag unset": _flag(False),
    "backfill rate": _backfill_rate,
    "peering": _peering,
    "log-recovery on": _log_recovery(True),
    "log-recovery off": _log_recovery(False),
    "scrub": _scrub,
    "inconsistent": _inconsistent,
    "omap-by-scrub": _omap_by_scrub,
    "write-omap": _write_omap,
    "deep-scrub": _deep_scrub,
    "compact": _for_osds("compact N...", omap_events.compact),
    "compaction": _compaction,
    "deletion": _deletion,
}
