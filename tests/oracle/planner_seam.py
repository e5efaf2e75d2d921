"""The package as these tests reach it: its commands through the simulated mgr, and its snapshot."""

from __future__ import annotations

import importlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any, ContextManager, Dict, NamedTuple, Optional, Tuple

from mgr_stub.console.session import Session

from .maps.binary_osdmap import Items


class Planned(NamedTuple):
    """What the package's commands say of a plan."""

    items: Items  # only the PGs that change; an empty list takes the items away
    predicted_up: Dict[str, Tuple[int, ...]]
    moves: int
    dump: Dict[str, Any]


def open_session(state: Path) -> ContextManager[Session]:
    """A simulated mgr over a saved state, with the module loaded."""
    return closing(Session.from_state(str(state), release=16, seed=0, own_job_thread=False))


def command(session: Session, line: str) -> str:
    """Runs one command that has to succeed; its output."""
    rc, out, err = session.command(line)
    assert rc == 0, f"{line}: rc {rc}: {err}"
    return out


def plan(session: Session, name: str = "p") -> Planned:
    """Has a plan made by the module's own commands."""
    command(session, f"equilibrium optimize {name}")
    dump = json.loads(command(session, f"equilibrium dump {name} --format json"))
    shown = json.loads(command(session, f"equilibrium show {name} --format json"))
    predicted = {pgid: tuple(up) for pgid, up in dump["predicted_up"].items()}
    items = {pgid: [(a, b) for a, b in pairs] for pgid, pairs in dump["upmap_items"].items()}
    return Planned(items, predicted, len(shown["moves"]), dump)


class Judgment(NamedTuple):
    """The package's word on one move: the items it would send and the up set it expects."""

    items: Tuple[Tuple[int, int], ...]
    up: Tuple[int, ...]


class PackageLegality:
    """Asks the package about single moves in the cluster of a session."""

    def __init__(self, session: Session) -> None:
        # the package can be imported only once a session has put mgr_module in its place
        options = importlib.import_module("equilibrium_mgr.plan.options").PlanOptions()
        state = importlib.import_module("equilibrium_mgr.planner.state.placement_state")
        self._upmap = importlib.import_module("equilibrium_mgr.snapshot.upmap_items")
        self.snapshot: Any = session.module.gateway.snapshot()
        self._placement: Any = state.PlacementState(self.snapshot, options)
        self._number = {pg.pgid: number for number, pg in enumerate(self._placement.pgs)}

    def judge(self, pgid: str, position: int, target: int) -> Optional[Judgment]:
        """None where the package would not make this move."""
        pg = self.snapshot.pgs[pgid]
        pool = self.snapshot.pools[pg.pool]
        if pg.immovable or pool.rule is None or self.snapshot.osds[target].unusable_reason():
            return None
        if pgid not in self._number:
            return None
        index_of = self._placement.index_of
        source = index_of[pg.up[position]]
        if not self._placement.is_legal(self._number[pgid], source, index_of[target]):
            return None
        wanted = pg.up[:position] + (target,) + pg.up[position + 1:]
        if not pool.erasure:
            wanted = self._upmap.keep_raw_positions(pg.raw, wanted, pool.rule)
        return Judgment(tuple(self._upmap.items_for(pg.raw, wanted)), tuple(wanted))
