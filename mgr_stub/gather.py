"""`python3 -m mgr_stub gather FILE`: the state of a real cluster, by Ceph's own commands.

It needs the command `ceph`, and only reads. The file is that of `equilibrium dump-state`, with
Ceph's statistics of PGs. Reports of PGs lag behind the osdmap; so CRUSH computes up and acting sets
from the osdmap, like the mgr.
"""
from __future__ import annotations

import argparse
import errno
import importlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Container, Dict, List, Mapping, Sequence, Set

from .clock import parse_timestamp
from .cluster.cluster import Cluster
from .errors import StubError, error_name
from .mgr.install import install, release_of
from .monitor.config import CORE_OPTIONS
from .osdmap.osd_map import OsdMap, pgids_of
from .state.cluster_builder import build_cluster, read_osdmap
from .state.state_file import write_state

#: Seconds that a command may take; to find a monitor; and between two tries.
TIMEOUT = 120
_CONNECT_SECONDS = 20
_PAUSE = 2.0
#: Tries to read CRUSH map, PGs and osdmap of one state, while the cluster is being changed.
_TRIES = 5

_HELP = """\
Writes the state of the cluster to FILE, by Ceph's own commands, which only read. FILE is
JSON, compressed where it ends in .xz or .gz. Each command is named before it runs.

A key that may only read is enough:
    ceph auth get-or-create client.reader mon 'allow r' mgr 'allow r' > reader.keyring
    CEPH_ARGS='--id reader --keyring reader.keyring' python3 -m mgr_stub gather state.json.xz

Then, on any host, nothing of it reaches the cluster:
    python3 -m mgr_stub --state state.json.xz -c 'equilibrium eval' \\
        -c 'equilibrium optimize p' -c 'equilibrium eval p' -c 'equilibrium show p'
    python3 -m mgr_stub --state state.json.xz --console"""

#: The keys kept of a PG's record, and the keys dropped of an OSD's: much text that nothing reads.
_KEPT_OF_PG = frozenset((
    "pgid", "state", "version", "reported_epoch", "log_start", "ondisk_log_start", "log_size",
    "ondisk_log_size", "up_primary", "acting_primary", "blocked_by", "stat_sum"))
_DROPPED_OF_OSD = frozenset(("network_ping_times", "hb_peers", "alerts", "op_queue_age_hist"))
_NO_KEY = ("; run this with sudo or in 'cephadm shell', or name what 'ceph' lacks here:"
           " CEPH_ARGS='--conf FILE --id NAME --keyring FILE'")
_OTHER_FORM = "this Ceph answers in another form than Ceph 16 to 20 do"
#: Sections of options; another names a daemon or a client.
_SECTION = re.compile(r"global|mon|mgr|osd|osd\.\d+")

Json = Dict[str, Any]


def main(words: Sequence[str]) -> int:
    """Runs `gather FILE [--anonymous]`; returns 0, or the errno of an error that it prints as one
    sentence.
    """
    parser = argparse.ArgumentParser(
        prog="python3 -m mgr_stub gather", description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", help="must not exist")
    parser.add_argument("--anonymous", action="store_true",
                        help="numbers in place of all names; no addresses and no fsid")
    options = parser.parse_args(words)
    try:
        gather(options.file, options.anonymous)
    except KeyboardInterrupt:
        error = StubError(errno.EINTR, "interrupted; nothing has been written")
    except StubError as caught:
        error = caught
    else:
        return 0
    print(f"Error {error_name(error.code)}: {error.message}", file=sys.stderr, flush=True)
    return abs(error.code)


def gather(path: str, anonymous: bool) -> None:
    """Writes the file; if that fails, raises StubError with one sentence and leaves no file."""
    say = partial(print, flush=True)
    folder = os.path.dirname(path) or "."
    if os.path.lexists(path):
        raise StubError(errno.EEXIST, f"{path} exists already; name another file")
    if not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise StubError(errno.EACCES, f"{path}: no file can be made in {folder}")
    state = gathered(anonymous, partial(_ask, say=say), say)
    write_state(path, state)
    osd_map = state["osd_dump"]
    kib = os.path.getsize(path) / 1024
    osds = len(osd_map["osds"])
    pools = len(osd_map["pools"])
    pgs = len(state["pg_dump"]["pg_map"]["pg_stats"])
    say(f"{path}: {osds} OSDs, {pools} pools, {pgs} PGs at osdmap epoch {osd_map['epoch']},"
        f" {kib:.0f} KiB")


def _without(record: Json, keys: Container[str]) -> Json:
    return {key: value for key, value in record.items() if key not in keys}


def _as_placed(record: Json, placed: OsdMap) -> Json:
    """Returns what is kept of a PG's record, with the sets that CRUSH computes."""
    kept = {key: value for key, value in record.items() if key in _KEPT_OF_PG}
    return {**kept, "up": placed.up[record["pgid"]], "acting": placed.acting(record["pgid"])}


def gathered(anonymous: bool, ask: Callable[[str], Any], say: Callable[[str], None]) -> Json:
    """Returns the state of the cluster; `ask` runs a command of Ceph and returns its JSON."""
    try:
        versions = ask("versions")
        options = [{key: one[key] for key in ("section", "name", "value")}
                   for one in ask("config dump") if _is_wanted(one)]
        osd_map, crush, pg_map = _maps(ask)
        known = _pgids(osd_map)
        pgs = [pg for pg in pg_map["pg_stats"] if pg["pgid"] in known]
        taken_at = parse_timestamp(pg_map.get("stamp"))
        raw = {"osd_dump": osd_map, "crush_dump": crush,
               "pg_dump": {"pg_map": {**pg_map, "pg_stats": pgs}}}
        release = release_of(versions)
        placed = _placed(build_cluster(raw, release, _OTHER_FORM),
                         read_osdmap(osd_map, pgs), say)
        install(release)
        module: Any = importlib.import_module("equilibrium_mgr.report.state_dump")
        model: Any = importlib.import_module("equilibrium_mgr.snapshot.model")
        reading = model.Reading(
            taken_at=taken_at,
            osd_map=osd_map,
            crush=crush,
            up=placed.up,
            records={},
            pg_status={},
            osd_stats=[_without(row, _DROPPED_OF_OSD) for row in pg_map["osd_stats"]],
            pool_stats=pg_map["pool_stats"],
            pool_statfs=[(row["poolid"], row["osd"], row["allocated"], row["data_stored"])
                         for row in pg_map.get("pool_statfs", ())])
        state: Json = module.dump_state(reading, anonymous).data
        state["pg_dump"]["pg_map"]["pg_stats"] = [_as_placed(pg, placed) for pg in pgs]
        state.update(versions=versions, config_dump=options)
        for sentence in _lacking(osd_map, pg_map, versions):
            say(sentence)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
            RecursionError) as error:
        what = f"{type(error).__name__} {error}".replace("\n", " ")
        raise StubError(errno.EPROTO, f"{_OTHER_FORM}: {what}") from None
    return state


def _maps(ask: Callable[[str], Any]) -> List[Json]:
    """Returns the osdmap, CRUSH map and PGs of one state."""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)
        version = ask("osd dump").get("crush_version")
        crush = ask("osd crush dump")
        pgs = ask("pg dump")
        osd_map = ask("osd dump")
        if not pgs["pg_ready"]:
            why = "the mgr has not received the statistics of all PGs yet"
        elif osd_map.get("crush_version") != version:
            why = "the CRUSH map is being changed"
        elif not _pgids(osd_map) <= {pg["pgid"] for pg in pgs["pg_map"]["pg_stats"]}:
            why = "pools are being created, split or merged"
        else:
            return [osd_map, crush, pgs["pg_map"]]
    raise StubError(errno.EAGAIN, f"{why}; try again later")


def _pgids(osd_map: Json) -> Set[str]:
    found: Set[str] = set()
    for pool in osd_map["pools"]:
        found.update(pgids_of(pool["pool"], pool))
    return found


def _placed(cluster: Cluster, osd_map: OsdMap, say: Callable[[str], None]) -> OsdMap:
    """Returns the osdmap with its up sets of the PGs; with the reported up sets if CRUSH cannot be
    computed.
    """
    topology = cluster.topology()
    up = dict(osd_map.up)
    reweights = topology.reweights()
    try:
        for pgid, pg in cluster.pgs.items():
            pg.raw = cluster.raw_mapping.compute(topology, *pg.order, reweights)
            up[pgid] = cluster.up_with_items(pg, osd_map.upmap_items.get(pgid, ()))
    except StubError as error:
        say(f"up sets are those that PGs have reported, of maps before as well: {error.message}")
        return osd_map
    return replace(osd_map, up=up)


def _is_wanted(option: Mapping[str, Any]) -> bool:
    """Returns True if the simulation knows the option of Ceph: a number, for all daemons of a kind
    or one OSD."""
    if CORE_OPTIONS.get(option["name"], ("str",))[0] == "str" or option.get("mask"):
        return False
    return _SECTION.fullmatch(option["section"]) is not None


def _lacking(osd_map: Json, pg_map: Json, versions: Json) -> List[str]:
    """Returns a sentence on each thing that the file lacks."""
    told = []
    unknown = sum("unknown" in pg["state"] for pg in pg_map["pg_stats"])
    if unknown:
        told.append(f"{unknown} PGs are unknown, as nobody has reported them: they stay where they"
                    " are")
    known = {one["osd"] for one in pg_map["osd_stats"] if one["kb"]}
    silent = [one["osd"] for one in osd_map["osds"] if one["in"] and one["osd"] not in known]
    if silent:
        told.append(f"{len(silent)} OSDs that are in have no statistics: nothing is moved to them")
    if not pg_map.get("pool_statfs"):
        told.append("OSDs do not tell how much each pool takes: they count as alike")
    for pg in pg_map["pg_stats"][:1]:
        if "num_objects_omap" not in pg["stat_sum"]:
            told.append("PGs do not tell which objects have omap: it is taken as spread evenly")
    majors = map(int, re.findall(r"ceph version (\d+)", json.dumps(versions)))
    oldest = min(majors, default=16)
    if oldest < 16:
        told.append(f"a daemon runs Ceph {oldest}: equilibrium works from Ceph 16 on, and"
                    " plays this cluster as such a one")
    return told


def _ask(command: str, say: Callable[[str], None]) -> Any:
    """Returns the JSON that `ceph COMMAND` answers; StubError with one sentence if it fails.
    """
    line = ["ceph", "--connect-timeout", str(_CONNECT_SECONDS), *command.split(), "--format",
            "json"]
    say(" ".join(line))
    try:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
    except FileNotFoundError:
        raise StubError(errno.ENOENT, "there is no command 'ceph' here: run this on a host with"
                        " ceph-common, in 'cephadm shell' or in Rook's toolbox") from None
    except OSError as error:
        raise StubError(error.errno or errno.EIO, f"'ceph' does not run: {error}") from None
    except subprocess.TimeoutExpired:
        raise StubError(errno.ETIMEDOUT,
                        f"'ceph {command}' has not answered within {TIMEOUT} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        code = errno.EIO
        helps = ""
        if re.search("denied|EACCES|EPERM", said[-1]):
            code = errno.EACCES
            helps = "; the key needs: mon 'allow r' mgr 'allow r'"
        if re.search("keyring|conf_read_file", " ".join(said)):
            helps = _NO_KEY
        raise StubError(code, f"'ceph {command}' fails: {said[-1]}{helps}")
    try:
        return json.loads(done.stdout)
    except (ValueError, RecursionError):
        start = done.stdout[:60].decode(errors="replace").strip()
        raise StubError(errno.EPROTO,
                        f"'ceph {command}' does not answer in JSON: {start!r}") from None
