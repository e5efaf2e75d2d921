"""`sim` commands that change the cluster: OSDs, hosts, pools, clients, flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List

from ..clock import parse_span
from ..errors import invalid
from ..events import cluster_events, osd_events, pool_events
from ..simulation import omap
from ..simulation.simulation import Simulation
from . import sim_arguments as sim_words

if TYPE_CHECKING:
    from .session import Session

Command = Callable[["Session", List[str]], str]


def _for_osds(usage: str, act: Callable[[Simulation, List[int]], None]) -> Command:
    def run(session: Session, words: List[str]) -> str:
        if not words:
            raise invalid(f"it is: sim {usage}")
        act(session.simulation, [sim_words.osd_number(word) for word in words])
        return ""
    return run


def _osd_reweight(session: Session, words: List[str]) -> str:
    osd, weight = sim_words.take(words, 2, "osd reweight N WEIGHT")
    osd_events.reweight(session.simulation, sim_words.osd_number(osd),
                        sim_words.number(weight, "a reweight"))
    return ""


def _osd_crush_reweight(session: Session, words: List[str]) -> str:
    osd, weight = sim_words.take(words, 2, "osd crush-reweight N WEIGHT")
    osd_events.crush_reweight(session.simulation, sim_words.osd_number(osd),
                              sim_words.number(weight, "a CRUSH weight"))
    return ""


def _primary_affinity(session: Session, words: List[str]) -> str:
    osd, weight = sim_words.take(words, 2, "osd primary-affinity N WEIGHT")
    osd_events.primary_affinity(session.simulation, sim_words.osd_number(osd),
                                sim_words.number(weight, "a primary affinity"))
    return ""


def _osd_lose(session: Session, words: List[str]) -> str:
    osd, = sim_words.take(words, 1, "osd lose N")
    osd_events.lose(session.simulation, sim_words.osd_number(osd))
    return ""


def _full_ratios(session: Session, words: List[str]) -> str:
    usage = "osd full-ratios NEARFULL BACKFILLFULL FULL"
    ratios = [sim_words.ratio(word, "a full ratio") for word in sim_words.take(words, 3, usage)]
    osd_events.set_full_ratios(session.simulation, *ratios)
    return ""


def _host_add(session: Session, words: List[str]) -> str:
    usage = "host add NAME COUNT SIZE [class=hdd] [under=BUCKET]"
    plain, named = sim_words.options(words, ("class", "under"))
    name, count, size = sim_words.take(plain, 3, usage)
    osds = osd_events.add_host(
        session.simulation, name, sim_words.whole(count, "COUNT"), sim_words.size(size),
        named.get("class", "hdd"), named.get("under"))
    return f"added {', '.join(f'osd.{osd}' for osd in osds)}"


def _host_down(session: Session, words: List[str]) -> str:
    osd_events.host_down(session.simulation, *sim_words.take(words, 1, "host down NAME"))
    return ""


def _host_up(session: Session, words: List[str]) -> str:
    osd_events.host_up(session.simulation, *sim_words.take(words, 1, "host up NAME"))
    return ""


def _pool_create(session: Session, words: List[str]) -> str:
    usage = "pool create NAME pg_num=N size=S [k=K] [rule=NAME]"
    plain, named = sim_words.options(words, ("pg_num", "size", "k", "rule"))
    name, = sim_words.take(plain, 1, usage)
    if "pg_num" not in named or "size" not in named:
        raise invalid(f"it is: sim {usage}")
    pool_id = pool_events.create_pool(
        session.simulation, name, sim_words.whole(named["pg_num"], "pg_num"),
        sim_words.whole(named["size"], "size"),
        sim_words.whole(named["k"], "k") if "k" in named else None, named.get("rule"))
    return f"created pool '{name}' with the id {pool_id}"


def _pool_rm(session: Session, words: List[str]) -> str:
    name, = sim_words.take(words, 1, "pool rm NAME")
    pool_events.remove_pool(session.simulation, name)
    return ""


def _pool_pg_num(session: Session, words: List[str]) -> str:
    name, count = sim_words.take(words, 2, "pool pg_num NAME N")
    pool_events.set_pg_num(session.simulation, name, sim_words.whole(count, "pg_num"))
    return ""


def _pool_tier(session: Session, words: List[str]) -> str:
    name, base = sim_words.take(words, 2, "pool tier NAME BASE|-")
    pool_events.set_tier(session.simulation, name, None if base == "-" else base)
    return ""


def _stretch(session: Session, words: List[str]) -> str:
    name, = sim_words.take(words, 1, "stretch off|healthy|degraded|recovering")
    cluster_events.set_stretch_mode(session.simulation, name)
    return ""


def _write(session: Session, words: List[str]) -> str:
    name, size = sim_words.take(words, 2, "write POOL SIZE")
    wanted = sim_words.size(size)
    taken = pool_events.write(session.simulation, name, wanted)
    return "" if taken == wanted else f"only {taken} of {wanted} bytes found room"


def _delete(session: Session, words: List[str]) -> str:
    name, size = sim_words.take(words, 2, "delete POOL SIZE")
    pool_events.delete(session.simulation, name, sim_words.size(size))
    return ""


def _grow(session: Session, words: List[str]) -> str:
    name, rate = sim_words.take(words, 2, "grow POOL SIZE/SPAN")
    pool_events.grow(session.simulation, name, sim_words.rate(rate))
    return ""


def _swell(session: Session, words: List[str]) -> str:
    name, ratio = sim_words.take(words, 2, "swell POOL RATIO")
    session.cluster.swelling[pool_events.pool_id_of(session.simulation, name)] = (
        sim_words.number(ratio, "RATIO"))
    return ""


def _flag(wanted: bool) -> Command:
    def run(session: Session, words: List[str]) -> str:
        name, = sim_words.take(words, 1, f"flag {'set' if wanted else 'unset'} NAME")
        cluster_events.set_flag(session.simulation, name, wanted)
        return ""
    return run


def _backfill_rate(session: Session, words: List[str]) -> str:
    size, = sim_words.take(words, 1, "backfill rate SIZE")
    cluster_events.set_backfill_rate(session.simulation, sim_words.size(size))
    return ""


def _peering(session: Session, words: List[str]) -> str:
    span, = sim_words.take(words, 1, "peering SPAN")
    cluster_events.set_peering_time(session.simulation, parse_span(span))
    return ""


def _omap_by_scrub(session: Session, words: List[str]) -> str:
    word, = sim_words.take(words, 1, "omap-by-scrub on|off")
    if word not in ("on", "off"):
        raise invalid("it is: sim omap-by-scrub on|off")
    omap.set_by_scrub(session.simulation, word == "on")
    return ""


def _write_omap(session: Session, words: List[str]) -> str:
    name, size = sim_words.take(words, 2, "write-omap POOL SIZE")
    omap.write(session.simulation, pool_events.pool_id_of(session.simulation, name),
               sim_words.size(size))
    return ""


def _deep_scrub(session: Session, words: List[str]) -> str:
    name, = sim_words.take(words, 1, "deep-scrub POOL")
    omap.deep_scrub(session.simulation, pool_events.pool_id_of(session.simulation, name))
    return ""


def _compaction(session: Session, words: List[str]) -> str:
    span, = sim_words.take(words, 1, "compaction SPAN")
    session.cluster.compaction_seconds = parse_span(span)
    return ""


def _scrub(session: Session, words: List[str]) -> str:
    pgid, span = sim_words.take(words, 2, "scrub PGID SPAN")
    cluster_events.scrub(session.simulation, pgid, parse_span(span))
    return ""


def _inconsistent(session: Session, words: List[str]) -> str:
    pgid, word = sim_words.take(words, 2, "inconsistent PGID on|off")
    if word not in ("on", "off"):
        raise invalid("it is: sim inconsistent PGID on|off")
    cluster_events.set_inconsistent(session.simulation, pgid, word == "on")
    return ""


def _log_recovery(wanted: bool) -> Command:
    def run(session: Session, words: List[str]) -> str:
        sim_words.take(words, 0, f"log-recovery {'on' if wanted else 'off'}")
        cluster_events.set_log_recovery(session.simulation, wanted)
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
    "host add": _host_add,
    "host down": _host_down,
    "host up": _host_up,
    "pool create": _pool_create,
    "pool rm": _pool_rm,
    "pool pg_num": _pool_pg_num,
    "pool tier": _pool_tier,
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
    "compact": _for_osds("compact N...", omap.compact),
    "compaction": _compaction,
}
