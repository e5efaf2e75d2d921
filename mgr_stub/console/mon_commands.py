"""Command lines that go to the monitor: `osd ...`, `config ...`, `health`, and `progress`."""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..cluster import pg_reports
from ..cluster.pg import pg_order
from ..crush.edit import replicated_steps, with_bucket, with_bucket_moved, with_rule
from ..errors import Answer, invalid
from ..events import osd_events, pool_events
from ..mgr.mon_queries import answer_to, health_status
from ..mgr.mgr import Mgr
from ..osdmap.osd_map import MapChange, status_of
from ..simulation.simulation import Simulation
from ..state.state_file import osd_df_nodes
from .sim_arguments import command, parse_number, parse_osd, parse_ratio, parse_whole


def try_command(mgr: Mgr, words: List[str]) -> Optional[Answer]:
    """Returns the answer if the words are a known monitor command, else None."""
    plain, wanted_json = _without_format(words)
    for prefix, handler in _HANDLERS.items():
        length = len(prefix.split())
        if plain[:length] == prefix.split():
            return handler(mgr, plain[length:], wanted_json)
    return None


def _without_format(words: List[str]) -> Tuple[List[str], bool]:
    plain: List[str] = []
    wanted_json = False
    rest = iter(words)
    for word in rest:
        if word in ("--format", "-f"):
            wanted_json = "json" in next(rest, "")
        elif word.startswith("--format="):
            wanted_json = "json" in word
        else:
            plain.append(word)
    return plain, wanted_json


def _send(mgr: Mgr, command: Dict[str, Any]) -> Answer:
    with mgr.lock:
        return mgr.simulation.answer_to("client", command)


def _pg_and_osds(prefix: str) -> Callable[[Mgr, List[str], bool], Answer]:
    def run(mgr: Mgr, words: List[str], _: bool) -> Answer:
        if not words:
            raise invalid("Invalid command: missing required parameter pgid(<pgid>)")
        return _send(mgr, {"prefix": prefix, "pgid": words[0],
                           "id": list(map(parse_osd, words[1:]))})
    return run


def _one_argument(prefix: str, name: str) -> Callable[[Mgr, List[str], bool], Answer]:
    def run(mgr: Mgr, words: List[str], _: bool) -> Answer:
        plain = [word for word in words if not word.startswith("--yes-i-really")]
        if not plain:
            raise invalid(f"Invalid command: missing required parameter {name}")
        return _send(mgr, {"prefix": prefix, name: plain[0]})
    return run


def _group(prefix: str) -> Callable[[Mgr, List[str], bool], Answer]:
    def run(mgr: Mgr, words: List[str], _: bool) -> Answer:
        return _send(mgr, {"prefix": prefix, "flags": "".join(words[:1]), "who": words[1:]})
    return run


def _config(mgr: Mgr, words: List[str], _: bool) -> Answer:
    if len(words) == 4 and words[0] == "set":
        mgr.config.set(words[1], words[2], words[3])
        mgr.config_changed = True
        return 0, "", ""
    if len(words) == 3 and words[0] == "get":
        return 0, mgr.config.get(words[1], words[2]), ""
    if len(words) == 3 and words[0] == "rm":
        mgr.config.remove(words[1], words[2])
        mgr.config_changed = True
        return 0, "", ""
    raise invalid("Invalid command: config set WHO NAME VALUE, config get WHO NAME or "
                  "config rm WHO NAME")


def _changing(usage: str, act: Callable[..., Any],
              *parsers: Callable[[str], Any]) -> Callable[[Mgr, List[str], bool], Answer]:
    """Returns a command that changes the cluster at once."""
    change = command(usage, act, *parsers)

    def run(mgr: Mgr, words: List[str], _: bool) -> Answer:
        return 0, change(mgr.simulation, words), ""
    return run


def _set_ratio(simulation: Simulation, ratio: float, place: int) -> None:
    """Sets a ratio. Ceph accepts the three in any order; the simulation does not."""
    ratios = list(map(simulation.cluster.map.ratio,
                      ("nearfull_ratio", "backfillfull_ratio", "full_ratio")))
    ratios[place] = ratio
    osd_events.set_full_ratios(simulation, *ratios)


def _crush(edit: Callable[..., Dict[str, Any]]) -> Callable[..., None]:
    """Applies an edit of the CRUSH dump; its ValueError is an error of the command."""
    def change(simulation: Simulation, *words: str) -> None:
        try:
            crush = edit(simulation.cluster.crush.as_dump(), *words)
        except ValueError as error:
            raise invalid(str(error)) from None
        simulation.apply_change(MapChange(crush=crush))
    return change


def _replicated_rule(mgr: Mgr, words: List[str], _: bool) -> Answer:
    if not 3 <= len(words) <= 4:
        raise invalid("it is: osd crush rule create-replicated NAME ROOT TYPE [CLASS]")
    _crush(_with_replicated_rule)(mgr.simulation, *words)
    return 0, "", ""


def _with_replicated_rule(dump: Dict[str, Any], name: str, *place: str) -> Dict[str, Any]:
    return with_rule(dump, name, 1, replicated_steps(dump, *place))


def _with_bucket_moved(dump: Dict[str, Any], name: str, place: str) -> Dict[str, Any]:
    return with_bucket_moved(dump, name, place.split("=")[-1])


def _pool_set(simulation: Simulation, name: str, variable: str, value: str) -> None:
    if variable == "crush_rule":
        pool_events.set_rule(simulation, name, value)
    elif variable in ("pg_num", "pgp_num"):
        pool_events.set_pg_num(simulation, name, parse_whole(value), variable)
    else:
        raise invalid("the simulation sets pg_num, pgp_num and crush_rule alone")


def _osd_tree(mgr: Mgr, words: List[str], wanted_json: bool) -> Answer:
    nodes = [{"id": osd, "status": status_of(entry)}
             for osd, entry in sorted(mgr.cluster.map.osds.items())]
    nodes = [node for node in nodes if not words or node["status"] in words]
    if wanted_json:
        return 0, json.dumps({"nodes": nodes}), ""
    return 0, "\n".join(f"osd.{node['id']}  {node['status']}" for node in nodes), ""


def _pg_states(mgr: Mgr, words: List[str], _: bool) -> Answer:
    """Returns the PGs that are not clean, or the one that is named."""
    cluster = mgr.cluster
    if words[:1] == ["dump_stuck"]:
        pgs = cluster.unclean
    elif len(words) < 2:
        pgs = cluster.pgs
    else:
        pgs = {pgid: pg for pgid, pg in cluster.pgs.items() if pgid == words[0]}
    lines = [f"{pgid} {pg_reports.state_of(cluster, pg)}" for pgid, pg in pgs.items()]
    return 0, "\n".join(lines), ""


def _osd_dump(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    dump = mgr.cluster.map.dump(mgr.release)
    if wanted_json:
        return 0, json.dumps(dump), ""
    lines = [f"epoch {dump['epoch']}", f"flags {dump['flags']}",
             f"require_min_compat_client {dump['require_min_compat_client']}"]
    for pgid in sorted(mgr.cluster.map.upmap_items, key=pg_order):
        osds = chain.from_iterable(mgr.cluster.map.upmap_items[pgid])
        lines.append(f"pg_upmap_items {pgid} [{','.join(map(str, osds))}]")
    return 0, "\n".join(lines), ""


def _osd_df(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    nodes = osd_df_nodes(mgr.cluster)
    if wanted_json:
        return 0, json.dumps({"nodes": nodes, "stray": [], "summary": {}}), ""
    lines = [f"{'ID':>4} {'CLASS':<6} {'SIZE':>16} {'USED':>16} {'%USE':>6} {'PGS':>4}"]
    for node in nodes:
        size = node["kb"] * 1024
        used = node["kb_used"] * 1024
        name = f"{node['id']:>4} {node['device_class']:<6}"
        lines.append(f"{name} {size:>16} {used:>16} {node['utilization']:>6.2f} {node['pgs']:>4}")
    return 0, "\n".join(lines), ""


def _health(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    checks = mgr.all_health_checks()
    status = health_status(checks)
    if wanted_json:
        return 0, json.dumps({"status": status, "checks": checks}), ""
    lines = [status]
    for code, check in sorted(checks.items()):
        lines.append(f"{code}: {check.get('summary', '')}")
        lines += [f"    {detail}" for detail in check.get("detail", [])]
    return 0, "\n".join(lines), ""


def _status(mgr: Mgr, _: List[str], __: bool) -> Answer:
    """Returns the lines of `ceph -s` that the simulation has figures for."""
    checks = mgr.all_health_checks()
    lines = ["health: " + health_status(checks)]
    lines += ["        " + check["summary"] for check in checks.values()]
    lines.append("osd: " + str(answer_to({"prefix": "osd stat"}, mgr.cluster.map, 0)).rstrip())
    lines += [f"pgs: {found['count']} {found['state_name']}"
              for found in mgr.get("pg_status")["pgs_by_state"]]
    return 0, "\n".join(lines), ""


def _df(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    """Returns the answer of `ceph df` in bytes, like `osd df` here."""
    space = mgr.get("df")
    if wanted_json:
        return 0, json.dumps(space), ""
    lines = ["TOTAL {total_bytes} USED {total_used_bytes}".format(**space["stats"]),
             f"{'POOL':<16} {'STORED':>16} {'MAX AVAIL':>16}"]
    lines += ["{:<16} {stored:>16} {max_avail:>16}".format(pool["name"], **pool["stats"])
              for pool in space["pools"]]
    return 0, "\n".join(lines), ""


def _pools(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    pools = list(mgr.cluster.map.pools.values())
    line = ("pool {pool} '{pool_name}' size {size} min_size {min_size} crush_rule {crush_rule}"
            " pg_num {pg_num} pg_num_target {pg_num_target}")
    if wanted_json:
        return 0, json.dumps(pools), ""
    lines = [line.format(**{"pg_num_target": pool["pg_num"], **pool}) for pool in pools]
    return 0, "\n".join(lines), ""


def _mgr_services(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    shown = {name: uri for name, uri in mgr.services.items() if uri}
    if wanted_json:
        return 0, json.dumps(shown), ""
    return 0, json.dumps(shown, indent=4), ""


def _progress(mgr: Mgr, words: List[str], _: bool) -> Answer:
    return mgr.progress_module.command(words)


_HANDLERS: Dict[str, Callable[[Mgr, List[str], bool], Answer]] = {
    "osd pg-upmap-items": _pg_and_osds("osd pg-upmap-items"),
    "osd rm-pg-upmap-items": _one_argument("osd rm-pg-upmap-items", "pgid"),
    "osd pg-upmap": _pg_and_osds("osd pg-upmap"),
    "osd rm-pg-upmap": _one_argument("osd rm-pg-upmap", "pgid"),
    "osd pg-upmap-primary": _pg_and_osds("osd pg-upmap-primary"),
    "osd rm-pg-upmap-primary": _one_argument("osd rm-pg-upmap-primary", "pgid"),
    "osd set-require-min-compat-client": _one_argument(
        "osd set-require-min-compat-client", "version"),
    "osd set": _one_argument("osd set", "key"),
    "osd unset": _one_argument("osd unset", "key"),
    "osd set-group": _group("osd set-group"),
    "osd unset-group": _group("osd unset-group"),
    "osd pool ls detail": _pools,
    "osd pool rm": _one_argument("osd pool rm", "pool"),
    "osd dump": _osd_dump,
    "osd df": _osd_df,
    "osd tree": _osd_tree,
    "osd set-nearfull-ratio": _changing("osd set-nearfull-ratio RATIO", partial(
        _set_ratio, place=0), parse_ratio),
    "osd set-backfillfull-ratio": _changing("osd set-backfillfull-ratio RATIO", partial(
        _set_ratio, place=1), parse_ratio),
    "osd set-full-ratio": _changing("osd set-full-ratio RATIO", partial(
        _set_ratio, place=2), parse_ratio),
    "osd reweight": _changing(
        "osd reweight OSD WEIGHT", osd_events.reweight, parse_osd, parse_number),
    "osd crush reweight": _changing("osd crush reweight NAME WEIGHT", osd_events.crush_reweight,
                                    parse_osd, parse_number),
    "osd crush move": _changing("osd crush move NAME TYPE=BUCKET", _crush(_with_bucket_moved),
                                str, str),
    "osd crush add-bucket": _changing("osd crush add-bucket NAME TYPE", _crush(with_bucket),
                                      str, str),
    "osd crush rule create-replicated": _replicated_rule,
    "osd pool set": _changing("osd pool set POOL VARIABLE VALUE", _pool_set, str, str, str),
    "osd in": _changing("osd in OSD...", osd_events.mark_in, parse_osd),
    "osd out": _changing("osd out OSD...", osd_events.mark_out, parse_osd),
    "pg": _pg_states,
    "config": _config,
    "health": _health,
    "-s": _status,
    "status": _status,
    "df": _df,
    "progress": _progress,
    "mgr services": _mgr_services,
}

#: Of all commands.
NAMES = tuple(_HANDLERS)
