"""Reading a cluster state file: the layout of jj-balancer's `gather`, plain JSON, xz or gz.

Writing the simulated cluster to a state file, in the layout that state_file.py reads.
"""
from __future__ import annotations

import errno
import gzip
import json
import lzma
import os
import zlib
from collections import Counter
from datetime import datetime, timezone
from typing import Any, Dict, List

from ..cluster.cluster import Cluster
from ..cluster.usage import share
from ..errors import StubError, invalid
from ..osdmap.osd_map import status_of
from ..simulation import statistics


_XZ_MAGIC = b"\xfd7zXZ\x00"
_GZ_MAGIC = b"\x1f\x8b"


def read_state(path: str) -> Dict[str, Any]:
    """Returns the content of a state file; StubError with one sentence if it is none. Building the
    cluster checks the content (cluster_builder.py).
    """
    loader: Any = globals()["__loader__"]   # of the zip with the demo in it, if there is one
    try:
        if path.startswith(getattr(loader, "archive", "\0")):
            packed: bytes = loader.get_data(path)
        else:
            with open(path, "rb") as file:
                packed = file.read()
    except FileNotFoundError:
        raise StubError(errno.ENOENT, f"{path}: no such state file") from None
    except OSError as error:
        code = error.errno or errno.EIO
        raise StubError(code, f"{path}: cannot be read: {error.strerror}") from None
    try:
        state: Any = json.loads(_unpacked(packed).decode("utf-8"))
    except (lzma.LZMAError, OSError, zlib.error, EOFError, ValueError, RecursionError) as error:
        raise invalid(f"{path}: this is no state file, or a part of one: {error}") from None
    version = None
    if isinstance(state, dict):
        version = state.get("stateversion")
    if version != 1:
        raise invalid(f"{path}: a state file has the stateversion 1, this has {version!r}")
    found: Dict[str, Any] = state
    return found


def _unpacked(packed: bytes) -> bytes:
    if packed.startswith(_XZ_MAGIC):
        return lzma.decompress(packed)
    if packed.startswith(_GZ_MAGIC):
        return gzip.decompress(packed)
    return packed


def save_state(cluster: Cluster, path: str) -> None:
    """Writes the state of the simulated cluster; StubError if that fails."""
    write_state(path, state_of(cluster))


def write_state(path: str, state: Dict[str, Any]) -> None:
    """Writes a state file, compressed if the name ends in .xz or .gz. StubError if that fails."""
    content = json.dumps(state, separators=(",", ":")).encode()
    if path.endswith(".xz"):
        content = lzma.compress(content, preset=2)
    elif path.endswith(".gz"):
        content = gzip.compress(content)
    write_file(path, content)


def write_file(path: str, content: bytes) -> None:
    """Writes a file, a new one whole or not at all. StubError if that fails."""
    part = f"{path}.part"
    if os.path.lexists(path):   # it may be a device
        part = path
    try:
        with open(part, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except OSError as error:
        raise StubError(error.errno or errno.EIO,
                        f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if part != path and os.path.lexists(part):
            os.unlink(part)


def state_of(cluster: Cluster) -> Dict[str, Any]:
    """Returns the keys that the simulation reads."""
    moment = datetime.fromtimestamp(cluster.clock(), timezone.utc).replace(tzinfo=None)
    return {
        "stateversion": 1,
        "timestamp": moment.isoformat(),
        "osd_dump": cluster.map.dump(cluster.release),
        "pg_dump": {"pg_ready": True, "pg_map": statistics.pg_dump(cluster)},
        "df_dump": statistics.df(cluster),
        "crush_dump": cluster.crush.dump(cluster.release),
    }


def osd_df_nodes(cluster: Cluster) -> List[Dict[str, Any]]:
    """Returns the nodes of `ceph osd df`; PGs are counted by acting sets (PGMap::stat_pg_add in
    Ceph).
    """
    pgs: Counter[int] = Counter()
    for pgid in cluster.pgs:
        pgs.update(cluster.map.acting(pgid))
    space = statistics.df(cluster)["stats"]
    mean = space["total_used_raw_ratio"]
    nodes = []
    for osd, entry in sorted(cluster.map.osds.items()):
        record = cluster.usage[osd].dump()
        used = cluster.usage[osd].utilization
        node = {"id": osd, "device_class": cluster.crush.classes.get(osd, ""),
                "name": f"osd.{osd}", "type": "osd", "type_id": 0, "depth": 2, "pool_weights": {},
                "crush_weight": cluster.crush.osd_weight(osd), "reweight": entry["weight"],
                "utilization": used * 100, "var": share(used, mean),
                "pgs": pgs[osd], "status": status_of(entry)}
        for key in ("kb", "kb_used", "kb_used_data", "kb_used_omap", "kb_used_meta", "kb_avail"):
            node[key] = record.get(key, 0)
        nodes.append(node)
    return nodes
