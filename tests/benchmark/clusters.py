"""Which clusters there are, and how each becomes a snapshot."""
from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from mgr_stub.console.session import Session
from mgr_stub.demo import DEMO_STATE

from equilibrium_mgr.snapshot.model import Snapshot
from tests.support.clusters.unit_cluster import Cluster

from .made.shapes import BYTES_PER_OBJECT, FIXED_BYTES, SHAPES, make_cluster

DEMO, MADE, GIVEN = "demo", "made", "given"
STATE_NAME = "state.json.xz"


class Source(NamedTuple):
    """A cluster to measure; `kind` is DEMO, MADE or GIVEN, `folder` that of a given one."""

    name: str
    kind: str
    folder: str = ""

    @property
    def description(self) -> str:
        if self.kind == MADE:
            return str(SHAPES[self.name].__doc__).partition("\n")[0]
        return "the simulation's demo cluster" if self.kind == DEMO else ""

    def state_file(self) -> Optional[Path]:
        """The state file that the cluster is read from, if it is."""
        if self.kind == MADE:
            return None
        return Path(self.folder) / STATE_NAME if self.kind == GIVEN else Path(DEMO_STATE)

    def osdmap(self) -> Optional[Path]:
        """The binary osdmap beside a given cluster's state file."""
        path = Path(self.folder) / "osdmap"
        return path if self.kind == GIVEN and path.exists() else None

    def snapshot(self) -> Snapshot:
        """The cluster as the module sees it. Raises StubError for a bad state file."""
        path = self.state_file()
        if path is None:
            return make_cluster(self.name).snapshot()
        # switched off, the loop observes nothing by itself
        snapshot: Snapshot = Session.from_state(str(path), release=18).module.gateway.snapshot()
        return snapshot

    def write_state(self, folder: Path) -> Path:
        """A state file of the cluster, written into the folder where there is none yet."""
        present = self.state_file()
        if present is not None:
            return present
        path = folder / "state.json"
        path.write_text(json.dumps(state_of(make_cluster(self.name))))
        return path


def find_sources(folders: Sequence[str], only: Sequence[str]) -> List[Source]:
    """The demo cluster, the made ones, and those in folders, or those among them that are wanted.

    `only` holds names or kinds, * and ? allowed. Raises ValueError for a folder without a state
    file and where nothing is left.
    """
    sources = [Source(DEMO, DEMO)] + [Source(name, MADE) for name in SHAPES]
    for folder in folders:
        path = Path(folder).resolve()
        if not (path / STATE_NAME).exists():
            raise ValueError(f"{folder}: there is no {STATE_NAME}")
        sources.append(Source(path.name, GIVEN, str(path)))
    wanted = [source for source in sources if not only or any(
        fnmatch(source.name, word) or source.kind == word for word in only)]
    if not wanted:
        raise ValueError(f"no cluster is called {' or '.join(only)}; "
                         f"there are: {', '.join(source.name for source in sources)}")
    return wanted


def state_of(cluster: Cluster) -> Dict[str, Any]:
    """A made cluster in the layout of a state file."""
    osd_map = cluster.osd_map()
    metadata = dict.fromkeys(cluster.osds, FIXED_BYTES)
    data = dict.fromkeys(cluster.osds, 0)
    omap = dict.fromkeys(cluster.osds, 0)
    pg_stats = []
    for pgid, up in cluster.up.items():
        record = cluster.records[pgid]
        for osd in up:
            metadata[osd] += record.num_objects * BYTES_PER_OBJECT
            omap[osd] += record.omap_bytes
            data[osd] += cluster.shard_bytes(pgid) - record.omap_bytes
        pg_stats.append({
            "pgid": pgid, "state": record.state, "up": up, "acting": up, "up_primary": up[0],
            "acting_primary": up[0], "reported_epoch": record.reported_epoch, "stat_sum": {
                "num_bytes": record.num_bytes, "num_objects": record.num_objects,
                "num_object_copies": record.num_objects * len(up), "num_objects_degraded": 0,
                "num_objects_misplaced": 0, "num_omap_bytes": record.omap_bytes}})
    osd_stats = []
    for stats in cluster.osd_stats():
        osd = stats["osd"]
        pgs = sum(osd in up for up in cluster.up.values())
        osd_stats.append(dict(stats, num_pgs=pgs, statfs=dict(
            stats["statfs"], allocated=data[osd], data_stored=data[osd],
            omap_allocated=omap[osd], internal_metadata=metadata[osd])))
    return {"stateversion": 1, "timestamp": "2026-01-01T00:00:00", "osd_dump": osd_map,
            "pg_dump": {"pg_map": {"version": 1, "pg_stats": pg_stats, "osd_stats": osd_stats}},
            "crush_dump": cluster.crush}
