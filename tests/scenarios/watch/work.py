"""How much work the module makes for the mgr and the monitors, as the simulated mgr counts it."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple

from mgr_stub.console.session import Session


class Work(NamedTuple):
    """Since a mgr became active; only what cannot be counted from outside is the module's word."""

    full_readings: int = 0          # full readings of the cluster
    pg_stats: int = 0
    osdmap_dumps: int = 0
    kv_writes: int = 0
    plans: int = 0

    def __sub__(self, other: Work) -> Work:
        return Work(*(mine - theirs for mine, theirs in zip(self, other)))


def work_of(session: Session) -> Work:
    """As of now. The larger of the mgr's own count and the module's: neither is to be too low."""
    calls: Dict[str, int] = session.mgr.calls
    counts: Any = session.module.gateway.counts if session.module is not None else None
    said = counts._asdict() if counts is not None else {}
    return Work(
        full_readings=max(calls.get("pg_progress", 0), said.get("full_readings", 0)),
        pg_stats=max(calls.get("pg_stats", 0), said.get("pg_stats", 0)),
        osdmap_dumps=max(calls.get("osdmap.dump", 0), said.get("osdmap_dumps", 0)),
        kv_writes=session.mgr.store.writes, plans=said.get("plans", 0))
