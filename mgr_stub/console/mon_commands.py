"""Command lines that go to the monitor: `osd ...`, `config ...`, `health`, and `progress`."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..cluster import pg_reports
from ..cluster.pg import pg_order
from ..errors import Answer, invalid
from ..mgr.daemon_metadata import health_status
from ..mgr.mgr import Mgr
from ..state.state_writer import osd_df_nodes
from . import osd_commands


def try_command(mgr: Mgr, words: List[str]) -> Optional[Answer]:
    """The answer if the words are a known monitor command, else None."""
    plain, wanted_json = _without_format(words)
    for prefix, handler in _HANDLERS.items():
        length = len(prefix.split())
        if plain[:length] == prefix.split():
            return handler(mgr, plain[length:], wanted_json)
    return None


def _without_format(words: List[str]) -> Tuple[List[str], bool]:
    plain: List[str] = []
    wanted_json = False
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word in ("--format", "-f"):
            wanted_json = "json" in (queue.pop(0) if queue else "")
        elif word.startswith("--format="):
            wanted_json = "json" in word
        else:
            plain.append(word)
    return plain, wanted_json


def _send(mgr: Mgr, command: Dict[str, Any]) -> Answer:
    answers: List[Answer] = []
    mgr.simulation.monitor.submit_from(
        "client", json.dumps(command), lambda rc, out, err: answers.append((rc, out, err)))
    mgr.commit()
    return answers[0]


def _osd_number(word: str) -> int:
    text = word[len("osd."):] if word.startswith("osd.") else word
    if not text.isdigit():
        raise invalid(f"Invalid command: {word} is not an OSD")
    return int(text)


def _upmap_items(mgr: Mgr, words: List[str], _: bool) -> Answer:
    if not words:
        raise invalid("Invalid command: missing required parameter pgid(<pgid>)")
    return _send(mgr, {"prefix": "osd pg-upmap-items", "pgid": words[0],
                       "id": [_osd_number(word) for word in words[1:]]})


def _pg_and_osds(prefix: str) -> Callable[[Mgr, List[str], bool], Answer]:
    def run(mgr: Mgr, words: List[str], _: bool) -> Answer:
        if len(words) < 2:
            raise invalid(f"Invalid command: {prefix} needs a PG and OSDs")
        return _send(mgr, {"prefix": prefix, "pgid": words[0],
                           "id": [_osd_number(word) for word in words[1:]]})
    return run


def _one_argument(prefix: str, name: str) -> Callable[[Mgr, List[str], bool], Answer]:
    def run(mgr: Mgr, words: List[str], _: bool) -> Answer:
        plain = [word for word in words if not word.startswith("--yes-i-really")]
        if not plain:
            raise invalid(f"Invalid command: missing required parameter {name}")
        return _send(mgr, {"prefix": prefix, name: plain[0]})
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


def _changing(run: Callable[[Any, List[str]], None]) -> Callable[[Mgr, List[str], bool], Answer]:
    def answer(mgr: Mgr, words: List[str], _: bool) -> Answer:
        run(mgr.simulation, words)
        return 0, "", ""
    return answer


def _osd_tree(mgr: Mgr, words: List[str], wanted_json: bool) -> Answer:
    nodes = [{"id": osd, "status": "up" if entry["up"] else "down"}
             for osd, entry in sorted(mgr.cluster.map.osds.items())]
    nodes = [node for node in nodes if not words or node["status"] in words]
    if wanted_json:
        return 0, json.dumps({"nodes": nodes}), ""
    return 0, "\n".join(f"osd.{node['id']}  {node['status']}" for node in nodes), ""


def _pg_states(mgr: Mgr, words: List[str], _: bool) -> Answer:
    """The PGs that are not clean, or the one that is named."""
    pgs = mgr.cluster.pgs if words[:1] != ["dump_stuck"] else mgr.cluster.unclean
    return 0, "\n".join(f"{pgid} {pg_reports.state_of(mgr.cluster, pg)}"
                        for pgid, pg in pgs.items() if pgid == words[0] or len(words) < 2
                        or words[0] == "dump_stuck"), ""


def _osd_dump(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    dump = mgr.cluster.map.dump(mgr.release)
    if wanted_json:
        return 0, json.dumps(dump), ""
    lines = [f"epoch {dump['epoch']}", f"flags {dump['flags']}",
             f"require_min_compat_client {dump['require_min_compat_client']}"]
    for pgid in sorted(mgr.cluster.map.upmap_items, key=pg_order):
        pairs = ",".join(str(osd) for pair in mgr.cluster.map.upmap_items[pgid] for osd in pair)
        lines.append(f"pg_upmap_items {pgid} [{pairs}]")
    return 0, "\n".join(lines), ""


def _osd_df(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    nodes = osd_df_nodes(mgr.cluster)
    if wanted_json:
        return 0, json.dumps({"nodes": nodes, "stray": [], "summary": {}}), ""
    lines = [f"{'ID':>4} {'CLASS':<6} {'SIZE':>16} {'USED':>16} {'%USE':>6} {'PGS':>4}"]
    lines += [f"{n['id']:>4} {n['device_class']:<6} {n['kb'] * 1024:>16} "
              f"{n['kb_used'] * 1024:>16} {n['utilization']:>6.2f} {n['pgs']:>4}" for n in nodes]
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


def _mgr_services(mgr: Mgr, _: List[str], wanted_json: bool) -> Answer:
    shown = {name: uri for name, uri in mgr.services.items() if uri}
    return 0, json.dumps(shown, indent=None if wanted_json else 4), ""


def _progress(mgr: Mgr, words: List[str], _: bool) -> Answer:
    return mgr.progress_module.command(words)


_HANDLERS: Dict[str, Callable[[Mgr, List[str], bool], Answer]] = {
    "osd pg-upmap-items": _upmap_items,
    "osd rm-pg-upmap-items": _one_argument("osd rm-pg-upmap-items", "pgid"),
    "osd pg-upmap": _pg_and_osds("osd pg-upmap"),
    "osd rm-pg-upmap": _one_argument("osd rm-pg-upmap", "pgid"),
    "osd pg-upmap-primary": _pg_and_osds("osd pg-upmap-primary"),
    "osd rm-pg-upmap-primary": _one_argument("osd rm-pg-upmap-primary", "pgid"),
    "osd set-require-min-compat-client": _one_argument(
        "osd set-require-min-compat-client", "version"),
    "osd set": _one_argument("osd set", "key"),
    "osd unset": _one_argument("osd unset", "key"),
    "osd pool rm": _one_argument("osd pool rm", "pool"),
    "osd dump": _osd_dump,
    "osd df": _osd_df,
    "osd tree": _osd_tree,
    **{prefix: _changing(run) for prefix, run in osd_commands.COMMANDS.items()},
    "pg": _pg_states,
    "config": _config,
    "health": _health,
    "progress": _progress,
    "mgr services": _mgr_services,
}
