"""`sim` commands that change the cluster: OSDs, hosts, pools, clients, flags."""
from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, List

from ..clock import parse_span
from ..errors import invalid
from ..events import (
    cluster_events, omap_events, osd_events, pool_events as shard_events, pool_events)
from ..simulation.deletion import set_span
from ..simulation.simulation import Simulation
from .sim_arguments import (
    command, exact_words, parse_number, parse_on_off, parse_osd, parse_rate, parse_ratio,
    parse_size, parse_whole, split_options)

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
    pool_id = pool_events.create_pool(
        simulation, name, parse_whole(named["pg_num"]), parse_whole(named["size"]),
        parse_whole(named["k"]) if "k" in named else None, named.get("rule"))
    return f"created pool '{name}' with the id {pool_id}"


def _osd_allocation(simulation: Simulation, words: List[str]) -> str:
    plain, named = split_options(words, ("pool",))
    pool = pool_events.pool_id_of(simulation, named["pool"]) if "pool" in named else None
    return command("osd allocation [pool=NAME] RATIO N...", partial(
        shard_events.set_allocation, pool_id=pool), parse_number, parse_osd)(simulation, plain)


def _of_pool(act: Callable[[Simulation, int, Any], None]) -> Callable[[Simulation, str, Any], None]:
    """Returns the action on a pool, for the pool's name."""
    return lambda simulation, name, value: act(
        simulation, pool_events.pool_id_of(simulation, name), value)


def _write(simulation: Simulation, name: str, wanted: int) -> str:
    taken = pool_events.write(simulation, name, wanted)
    return "" if taken == wanted else f"only {taken} of {wanted} bytes found room"


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
    "host down": ("NAME", lambda simulation, name: osd_events.mark_down(
        simulation, osd_events.osds_of(simulation, name)), str),
    "host up": ("NAME", lambda simulation, name: osd_events.mark_up(
        simulation, osd_events.osds_of(simulation, name)), str),
    "pool rm": ("NAME", pool_events.remove_pool, str),
    "pool pg_num": ("NAME N", pool_events.set_pg_num, str, parse_whole),
    "pool tier": ("NAME BASE|-", lambda simulation, name, base: pool_events.set_tier(
        simulation, name, None if base == "-" else base), str, str),
    "pool optimize": ("NAME CHUNK", _of_pool(shard_events.optimize_pool), str, parse_size),
    "stretch": ("off|healthy|degraded|recovering", cluster_events.set_stretch_mode, str),
    "write": ("POOL SIZE", _write, str, parse_size),
    "delete": ("POOL SIZE", pool_events.delete, str, parse_size),
    "grow": ("POOL SIZE/SPAN", pool_events.grow, str, parse_rate),
    "swell": ("POOL RATIO", _of_pool(lambda simulation, pool_id, ratio: (
        simulation.cluster.copy_overhead.update({pool_id: ratio}))), str, parse_number),
    "flag set": ("NAME", cluster_events.set_flag, str),
    "flag unset": ("NAME", partial(cluster_events.set_flag, enabled=False), str),
    "peering": ("SPAN", cluster_events.set_peering_time, parse_span),
    "log-recovery": ("on|off", cluster_events.set_log_recovery, parse_on_off),
    "scrub": ("PGID SPAN", cluster_events.scrub, str, parse_span),
    "inconsistent": ("PGID on|off", cluster_events.set_inconsistent, str, parse_on_off),
    "write-omap": ("POOL SIZE", _of_pool(omap_events.write), str, parse_size),
    "deep-scrub": ("POOL", lambda simulation, name: omap_events.deep_scrub(
        simulation, pool_events.pool_id_of(simulation, name)), str),
    "compact": ("N...", omap_events.compact, parse_osd),
    "compaction": ("SPAN", lambda simulation, span: (
        setattr(simulation.cluster, "compaction_seconds", span)), parse_span),
    "deletion": ("SPAN", lambda simulation, span: (
        set_span(simulation.cluster, simulation.schedule, span)), parse_span),
}

def _backfill_rate(simulation: Simulation, words: List[str]) -> str:
    if not words:
        raise invalid("it is: sim backfill rate SIZE [N...]")
    cluster_events.set_backfill_rate(
        simulation, parse_size(words[0]), [parse_osd(word) for word in words[1:]])
    return ""


COMMANDS: Dict[str, Command] = {
    **{name: command(f"{name} {usage}", *action) for name, (usage, *action) in _TABLE.items()},
    "osd allocation": _osd_allocation,
    "backfill rate": _backfill_rate,
    "host add": _host_add,
    "pool create": _pool_create,
}
