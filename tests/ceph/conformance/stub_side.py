"""The simulated cluster, made of the real one's state: the same events, the same view."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Tuple

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from mgr_stub.crush.edit import with_host
from mgr_stub.errors import StubError
from mgr_stub.events import osd_events, pool_events
from mgr_stub.mgr.install import install
from mgr_stub.osdmap.osd_map import MapChange
from mgr_stub.simulation.simulation import Simulation
from mgr_stub.state.cluster_builder import build_cluster

from . import shapes, view
from .cluster_shape import MAX_BACKFILLS, MOST_LOG_ENTRIES, OBJECT_BYTES
from .events import Event

QUIET_SECONDS = 60.0
LONGEST_SECONDS = 7200.0
STEP_SECONDS = 10.0
RATE = 1e12
"""Bytes per second of every OSD: all that can be copied is there at the next look."""


class StubSide:
    """A session of the stub that follows the real cluster event by event."""

    def __init__(self, state: Dict[str, Any], major: int) -> None:
        install(major)
        self.simulation = Simulation(build_cluster(state, major, "the real cluster"))
        self.session = Session(self.simulation)
        for command in (
                "sim log-recovery on",
                "config set mon mon_osd_down_out_interval 1000000000",
                "config set mgr target_max_misplaced_ratio 1",
                f"config set osd osd_max_backfills {MAX_BACKFILLS}",
                f"config set osd osd_max_pg_log_entries {MOST_LOG_ENTRIES}"):
            self.session.command(command)
        rates = self.simulation.backfill.bytes_per_second
        rates.update(dict.fromkeys(rates, RATE))

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def do(self, event: Event) -> int:
        """Do one event; the return code of its command."""
        action: Callable[..., Any] = getattr(self, f"_do_{event.kind}")
        try:
            action(*event.values)
        except StubError as error:
            return error.code
        return 0

    def settle(self) -> Dict[str, Any]:
        """Let time pass until nothing changes any more; the last view."""
        quiet = waited = 0.0
        last: Dict[str, Any] = {}
        while quiet < QUIET_SECONDS and waited < LONGEST_SECONDS:
            self._do_pass(STEP_SECONDS)
            now = self.view()
            quiet = quiet + STEP_SECONDS if now == last else 0.0
            last = now
            waited += STEP_SECONDS
        return last

    def view(self) -> Dict[str, Any]:
        """What a module sees; as JSON makes it, for that is how the other side comes."""
        return dict(json.loads(json.dumps(view.view_of(self.session.mgr))))

    def shapes(self) -> Dict[str, List[str]]:
        """Types and keys of what get() gives."""
        return {name: sorted(shapes.shape_of(self.session.mgr.get(name))) for name in view.NAMES}

    def adopt_objects(self, real: Dict[str, Any]) -> None:
        """Takes over the PGs' numbers of objects of a real view: which go where in a split is a
        hash of names."""
        cluster = self.simulation.cluster
        for pgid, there in real["pgs"].items():
            pg, count = cluster.pgs.get(pgid), there["objects"]
            if pg is not None and pg.num_objects != count:
                pg.num_objects, pg.num_copies = count, count * cluster.size_of(pg)
                pg_reports.refresh(cluster, pg)
        cluster.invalidate_sums()

    # -- events ----------------------------------------------------------------------------------

    def _do_out(self, osd: int) -> None:
        osd_events.mark_out(self.simulation, [osd])

    def _do_in(self, osd: int) -> None:
        osd_events.mark_in(self.simulation, [osd])

    def _do_down(self, osd: int) -> None:
        osd_events.mark_down(self.simulation, [osd])

    def _do_up(self, osd: int) -> None:
        osd_events.mark_up(self.simulation, [osd])

    def _do_set_out_interval(self, seconds: int) -> None:
        self._line("config set mon mon_osd_down_out_interval", seconds)

    def _do_await_out(self, osd: int) -> None:
        while self.simulation.cluster.map.reweight(osd) > 0:
            self._do_pass(1.0)

    def _do_pass(self, seconds: float) -> None:
        self.session.host.run_for(seconds)

    def _do_write(self, pool: str, objects: int, _prefix: str) -> None:
        self._line("sim write", pool, objects * OBJECT_BYTES)

    def _do_reweight(self, osd: int, weight: float) -> None:
        osd_events.reweight(self.simulation, osd, weight)

    def _do_crush_reweight(self, osd: int, weight: float) -> None:
        osd_events.crush_reweight(self.simulation, osd, weight)

    def _do_affinity(self, osd: int, weight: float) -> None:
        osd_events.primary_affinity(self.simulation, osd, weight)

    def _do_add_osd(self, osd: int, host: str, weight: float) -> None:
        crush = with_host(self.simulation.cluster.crush.as_dump(), host, {osd: ("hdd", weight)},
                          "default")
        self.simulation.apply_change(MapChange(crush=crush))

    def _do_create_pool(self, name: str, pgs: int, kind: str) -> None:
        more: Tuple[Any, ...] = (None, "replicated_rule", None)
        if kind == "erasure":
            more = (2, "ec", "k2m1")
        pool_events.create_pool(self.simulation, name, pgs, 3, *more)

    def _do_remove_pool(self, name: str) -> None:
        pool_events.remove_pool(self.simulation, name)

    def _do_pg_num(self, name: str, count: int) -> None:
        pool_events.set_pg_num(self.simulation, name, count)

    def _do_upmap(self, pgid: str, *pairs: int) -> None:
        self._line("osd pg-upmap-items", pgid, *pairs)

    def _do_remove_upmap(self, pgid: str) -> None:
        self._line("osd rm-pg-upmap-items", pgid)

    def _do_set_flag(self, flag: str) -> None:
        self._line("osd set", flag)

    def _do_unset_flag(self, flag: str) -> None:
        self._line("osd unset", flag)

    def _do_fail_mgr(self) -> None:
        self.session.host.failover()

    def _line(self, *words: Any) -> None:
        code, _, message = self.session.command(" ".join(map(str, words)))
        if code:
            raise StubError(-code, message)
