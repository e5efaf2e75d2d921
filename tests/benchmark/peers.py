"""What other balancers made of the same cluster, as recorded in its peers.json.

`default` is the built-in balancer, `jj…` are jj-balancer in several settings.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from tests.support.units import TIB

BUILT_IN = "default"
JJ_PREFIX = "jj"
#: Plans whose gained space differs by less than this share of it count as equally good.
_SAME_GAIN = 0.01


class Peer(NamedTuple):
    """One recorded plan."""

    setting: str
    highest: Dict[str, float]       # device class → utilization of its fullest OSD, a ratio
    gained_data_bytes: float
    gained_all_bytes: float
    worst_data_pool_bytes: float
    moved_bytes: float
    shard_moves: int
    item_pairs: int
    broken_pgs: int                 # up sets that the rule forbids, and entries a monitor cancels
    seconds: float


def read_peers(folder: Path) -> Dict[str, Peer]:
    """Setting → what it achieved; nothing where the folder has no peers.json."""
    path = folder / "peers.json"
    if not path.exists():
        return {}
    recorded: Dict[str, Any] = json.loads(path.read_text())
    return {name: _peer(name, entry) for name, entry in recorded.items()
            if isinstance(entry, dict) and "after" in entry}


def read_bound(folder: Path) -> Dict[str, float]:
    """Device class → lowest reachable highest utilization, where bound.json tells."""
    path = folder / "bound.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def best_jj(peers: Mapping[str, Peer]) -> Optional[Peer]:
    """The one of jj-balancer's plans to compare with.

    One that keeps the rules, if there is any; of these the one that gains the data pools most, and
    of those that gain as much (to 1 %) the one that moves least.
    """
    plans = [peer for name, peer in peers.items() if name.startswith(JJ_PREFIX)]
    sound: List[Peer] = [peer for peer in plans if not peer.broken_pgs] or plans
    if not sound:
        return None
    most = max(peer.gained_data_bytes for peer in sound)
    good = [p for p in sound if p.gained_data_bytes >= most - _SAME_GAIN * abs(most)]
    return min(good, key=lambda peer: peer.moved_bytes)


def _peer(name: str, entry: Mapping[str, Any]) -> Peer:
    return Peer(
        setting=name, highest={c: usage["max"] for c, usage in entry["after"].items()},
        gained_data_bytes=entry["gained_data_TiB"] * TIB,
        gained_all_bytes=entry["gained_TiB"] * TIB,
        worst_data_pool_bytes=entry["worst_data_pool_TiB"] * TIB,
        moved_bytes=entry["moved_TiB"] * TIB, shard_moves=entry["shard_moves"],
        item_pairs=entry["upmap_pairs"],
        broken_pgs=entry.get("broken", 0) + entry.get("illegal", 0),
        seconds=entry["seconds"])
