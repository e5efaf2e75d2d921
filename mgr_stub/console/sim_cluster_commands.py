"""`sim` commands that change the cluster: OSDs, hosts, pools, clients, flags."""
from __future__ import annotations

from functools import partial
from operator import mul
from typing import Any, Callable, Dict, List

from ..clock import parse_span
from ..cluster import operations
from ..cluster.load import Load, Rhythm
from ..errors import invalid
from ..events import (
    cluster_events, omap_events, osd_events, pool_events as shard_events, pool_events)
from ..simulation.deletion import set_span
from ..simulation.simulation import Simulation
from .sim_arguments import (
    command, exact_words, parse_amount, parse_hours, parse_number, parse_on_off, parse_osd,
    parse_rate, parse_ratio, parse_size, parse_whole, split_options)

Command = Callable[[Simulation, List[str]], str]


def _host_add(simulation: Simulation, words: List[str]) -> str:
    usage = "host add NAME COUNT SIZE [class=hdd] [under=BUCKET]"
    plain, named = split_options(words, ("class", "under"))
    name, count, size = exact_words(plain, 3, usage)
    osds = osd_events.add_host(simulation, name, parse_whole(count), parse_size(size),
                               named.get("class", "hdd"), named.get("under"))
    return f"added {', '.join(f'osd.{osd}' for osd in osds)}"


def _pool_create(simulation: Simulation, words: List[str]) -> str:
    usage = "pool create NAME pg_num=N size=S [k=K] [rule=NAME]"
    plain, named = split_options(words, ("pg_num", "size", "k", "rule"))
    name, = exact_words(plain, 1, usage)
    if "pg_num" not in named or "size" not in named:
        raise invalid(f"it is: sim {usage}")
    pg_num = parse_whole(named["pg_num"])
    size = parse_whole(named["size"])
    data_chunks = None
    if "k" in named:
        data_chunks = parse_whole(named["k"])
    pool_id = pool_events.create_pool(
        simulation, name, pg_num, size, data_chunks, named.get("rule"))
    return f"created pool '{name}' with the id {pool_id}"


#: Options of `load`, and what they are by default.
_LOAD_OPTIONS = {"parts": "1", "day": "0-0:1", "backup": "0-0:1", "weekend": "1"}


def _load(simulation: Simulation, words: List[str]) -> str:
    usage = ("load POOL READS/s WRITES/s [READ_KB WRITE_KB] [parts=N] [day=HH-HH:FACTOR]"
             " [backup=HH-HH:FACTOR] [weekend=FACTOR]")
    plain, named = split_options(words, list(_LOAD_OPTIONS))
    if len(plain) == 3:
        plain += ["4", "4"]
    name, *amounts = exact_words(plain, 5, usage)
    options = {**_LOAD_OPTIONS, **named}
    weekend = parse_amount(options["weekend"])
    day = parse_hours(options["day"])
    with_backup = map(mul, day, parse_hours(options["backup"]))
    reads, writes, read_kb, write_kb = map(parse_amount, amounts)
    load = Load(reads, writes, read_kb, write_kb, parse_whole(options["parts"]),
                _weekly(list(with_backup), weekend), _weekly(day, weekend))
    operations.set_load(simulation.cluster, pool_events.pool_id_of(simulation, name), load)
    return ""


def _weekly(day: List[float], weekend: float) -> Rhythm:
    """Returns the rhythm of the factors of a day, which Saturday and Sunday multiply by another."""
    return Rhythm([*day * 5, *[factor * weekend for factor in day] * 2])


def _osd_allocation(simulation: Simulation, words: List[str]) -> str:
    plain, named = split_options(words, ("pool",))
    pool = None
    if "pool" in named:
        pool = pool_events.pool_id_of(simulation, named["pool"])
    return command("osd allocation [pool=NAME] RATIO N...", partial(
        shard_events.set_allocation, pool_id=pool), parse_number, parse_osd)(simulation, plain)


def _of_pool(act: Callable[..., None]) -> Callable[..., None]:
    """Returns the action on a pool, for the pool's name."""
    return lambda simulation, name, *values: act(
        simulation, pool_events.pool_id_of(simulation, name), *values)


def _of_host(act: Callable[[Simulation, List[int]], None]) -> Callable[[Simulation, str], None]:
    """Returns the action on the OSDs of a host, for the host's name."""
    return lambda simulation, name: act(simulation, osd_events.osds_of(simulation, name))


def _set_tier(simulation: Simulation, name: str, base: str) -> None:
    if base == "-":
        pool_events.set_tier(simulation, name, None)
    else:
        pool_events.set_tier(simulation, name, base)


def _swell(simulation: Simulation, pool_id: int, ratio: float) -> None:
    simulation.cluster.copy_overhead[pool_id] = ratio


def _set_compaction_time(simulation: Simulation, span: float) -> None:
    simulation.cluster.compaction_seconds = span


def _set_deletion_time(simulation: Simulation, span: float) -> None:
    set_span(simulation.cluster, simulation.schedule, span)


def _write(simulation: Simulation, name: str, wanted: int) -> str:
    taken = pool_events.write(simulation, name, wanted)
    if taken == wanted:
        return ""
    return f"only {taken} of {wanted} bytes found room"


#: Arguments, action, and the parser of each argument, by command.
_TABLE: Dict[str, Any] = {
    "osd out": ("N...", osd_events.mark_out, parse_osd),
    "osd in": ("N...", osd_events.mark_in, parse_osd),
    "osd down": ("N...", osd_events.mark_down, parse_osd),
    "osd up": ("N...", osd_events.mark_up, parse_osd),
    "osd reweight": ("N WEIGHT", osd_events.reweight, parse_osd, parse_number),
    "osd crush-reweight": ("N WEIGHT", osd_events.crush_reweight, parse_osd, parse_number),
    "osd primary-affinity": ("N WEIGHT", osd_events.primary_affinity, parse_osd, parse_number),
    "osd lose": ("N", osd_events.lose, parse_osd),
    "osd full-ratios": ("NEARFULL BACKFILLFULL FULL", osd_events.set_full_ratios,
                        parse_ratio, parse_ratio, parse_ratio),
    "host down": ("NAME", _of_host(osd_events.mark_down), str),
    "host up": ("NAME", _of_host(osd_events.mark_up), str),
    "pool rm": ("NAME", pool_events.remove_pool, str),
    "pool pg_num": ("NAME N", pool_events.set_pg_num, str, parse_whole),
    "pool tier": ("NAME BASE|-", _set_tier, str, str),
    "pool optimize": ("NAME CHUNK", _of_pool(shard_events.optimize_pool), str, parse_size),
    "stretch": ("off|healthy|degraded|recovering", cluster_events.set_stretch_mode, str),
    "write": ("POOL SIZE", _write, str, parse_size),
    "delete": ("POOL SIZE", pool_events.delete, str, parse_size),
    "grow": ("POOL SIZE/SPAN", pool_events.grow, str, parse_rate),
    "swell": ("POOL RATIO", _of_pool(_swell), str, parse_number),
    "flag set": ("NAME", cluster_events.set_flag, str),
    "flag unset": ("NAME", partial(cluster_events.set_flag, enabled=False), str),
    "peering": ("SPAN", cluster_events.set_peering_time, parse_span),
    "log-recovery": ("on|off", cluster_events.set_log_recovery, parse_on_off),
    "scrub": ("PGID SPAN", cluster_events.scrub, str, parse_span),
    "inconsistent": ("PGID on|off", cluster_events.set_inconsistent, str, parse_on_off),
    "write-omap": ("POOL SIZE", _of_pool(omap_events.write), str, parse_size),
    "deep-scrub": ("POOL", _of_pool(omap_events.deep_scrub), str),
    "compact": ("N...", omap_events.compact, parse_osd),
    "compaction": ("SPAN", _set_compaction_time, parse_span),
    "deletion": ("SPAN", _set_deletion_time, parse_span),
}

def _backfill_rate(simulation: Simulation, words: List[str]) -> str:
    if not words:
        raise invalid("it is: sim backfill rate SIZE [N...]")
    cluster_events.set_backfill_rate(
        simulation, parse_size(words[0]), list(map(parse_osd, words[1:])))
    return ""


COMMANDS: Dict[str, Command] = {
    **{name: command(f"{name} {usage}", *action) for name, (usage, *action) in _TABLE.items()},
    "osd allocation": _osd_allocation,
    "backfill rate": _backfill_rate,
    "host add": _host_add,
    "load": _load,
    "pool create": _pool_create,
}
