"""Random operations on a random cluster, which the properties of undo look back on."""
from __future__ import annotations

import errno
import json
import math
import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from tests.scenarios import clusters, drive
from tests.scenarios.rules.under_way import REMOVE_ITEMS, SET_ITEMS
from tests.scenarios.test_from_any_upmaps import made_by_others
from tests.scenarios.watch.watch import Watch

from mgr_stub.monitor.mon_store import LoggedCommand
from mgr_stub.monitor.monitor import MGR

_SETTINGS = ("config set mgr mgr/equilibrium/start_delay 0",
             "config set mgr mgr/equilibrium/pg_cooldown 0",
             "config set mgr mgr/equilibrium/max_misplaced_ratio 0.1", "sim backfill rate 40M")
_PLAN = ("try equilibrium optimize p{new} --max-moves {moves}; sim run 1m;"
         " try equilibrium execute p{new}")
_ON = "try equilibrium on; sim run {minutes}m; try equilibrium off"
#: An undo that undoes what came before it makes the rest of the story shorter: these are rare.
_STEPS = (
    _PLAN, _PLAN, _PLAN, _ON, _ON, "try equilibrium cancel", "try equilibrium undo",
    "try equilibrium rm p{old}",
    "sim mgr fail takeover=10s", "sim mgr fail at {point} {count} takeover=10s; " + _PLAN,
    "try equilibrium freeze",
    "try equilibrium drain add {osd}; sim run {minutes}m; try equilibrium drain rm {osd}",
    "try equilibrium undo --since {span}", "try equilibrium undo p{old}")
#: What else may happen: somebody removes upmap items, or OSDs go out and in and get other weights.
_OF_COMPANY = {
    "alone": (),
    "others": ("ceph osd rm-pg-upmap-items {pgid}",),
    "map_changes": ("sim osd out {osd}", "sim osd in {osd}", "sim osd reweight {osd} {weight}",
                    "sim osd crush-reweight {osd} {weight}")}
_CHOICES: Dict[str, Tuple[object, ...]] = {
    "moves": (5, 20, 60),
    "minutes": (5, 20),
    "count": (1, 3, 20),
    "span": ("10m", "1h", "3h"),
    "weight": (0.4, 0.8, 1),
    "point": ("before-send", "after-send", "before-store", "after-store", "after-map")}
DAY = 86400.0

Items = Dict[str, Tuple[Tuple[int, int], ...]]


class Moment(NamedTuple):
    """The upmap items at a moment, and what had been sent then."""

    at: float   # seconds since the epoch
    items: Items
    sent: int


class Story:
    """Holds all rules of safety in any company."""

    def __init__(self, seed: int, folder: Path, company: str) -> None:
        self.rng = random.Random(f"undo {seed}")
        self.session = clusters.session_of(clusters.WITH_EMPTY_PGS, seed, folder)
        for line in _SETTINGS:
            drive.command(self.session, line)
        made_by_others(self.session, self.rng)
        self.session.host.run_for(2 * 3600.0)
        self.watch = Watch(self.session)
        self.session.host.observers.append(lambda _: self.watch(self.session))
        self.session.simulation.monitor.observers.append(self._on_command)
        self.steps = (*_STEPS, *_OF_COMPANY[company])
        self.touched: List[str] = []   # PGs that others have changed
        self.sent: List[LoggedCommand] = []
        self.moments: List[Moment] = []
        self.made = 0

    def _on_command(self, entry: LoggedCommand) -> None:
        if entry.sender == MGR and entry.prefix in (SET_ITEMS, REMOVE_ITEMS):
            self.sent.append(entry)

    def tell(self, steps: int) -> None:
        for _ in range(steps):
            self.moments.append(self.now())
            self._step(self.rng.choice(self.steps))
            self.run(self.rng.choice((30.0, 400.0, 1500.0)))

    def _step(self, lines: str) -> None:
        present = sorted(self.session.cluster.map.upmap_items)
        if "{pgid}" in lines:
            if not present:
                return
            self.touched.append(self.rng.choice(present))
        words = {name: self.rng.choice(choice) for name, choice in _CHOICES.items()}
        words["old"] = self.rng.randint(1, self.made + 1)   # the last may not be there
        self.made += "{new}" in lines
        told = lines.format(osd=self.rng.choice(sorted(self.session.cluster.map.osds)),
                            pgid="".join(self.touched[-1:]), new=self.made, **words)
        for line in told.split("; "):
            self.play(line)

    def play(self, line: str) -> None:
        drive.play(self.session, self.watch, line)

    def run(self, seconds: float) -> None:
        self.session.host.run_for(seconds)

    def rest(self) -> None:
        """Ends all that is under way, and lets what moves arrive."""
        self.session.mgr.process.crash_point = None
        self.run(60.0)
        self.play("try equilibrium off")
        self.run(DAY)

    def undo(self, since: float) -> Dict[str, str]:
        """Takes back all changes since a moment (seconds since the epoch), often over a failover,
        and waits for the end; returns pgid → why a PG is not restored."""
        code, answer = self._undone(since)
        assert code in (0, -errno.ENOENT)
        self.run(self.rng.choice((1.0, 30.0, 600.0)))
        rows: List[Dict[str, str]] = answer.get("not_restored", [])
        if answer.get("plan"):
            rows += self._dropped()
        if self.rng.random() < 0.5:
            self.play("sim mgr fail takeover=10s")
        self.run(5 * DAY)
        if answer.get("plan"):
            rows += self._dropped()
        return {row["pgid"]: row["reason"] for row in rows}

    def _dropped(self) -> List[Dict[str, str]]:
        """PGs that the last execution has dropped; the next mgr does not know an ended one."""
        status = json.loads(self.session.command("equilibrium status --format json")[1])
        last: Dict[str, Any] = status["last_execution"] or {}
        return last.get("dropped", [])

    def _undone(self, since: float) -> Tuple[int, Dict[str, Any]]:
        for _ in range(5):
            span = math.ceil(self.now().at - since)   # counted from this moment
            self.watch.judge.silence.on_answer("equilibrium undo", 0)
            code, out, _ = self.session.command(f"equilibrium undo --since {span}s --format json")
            if code != -errno.EAGAIN:
                break
            self.run(60.0)
        return code, json.loads(out or "{}")

    def now(self) -> Moment:
        return Moment(self.session.simulation.clock.now,
                      dict(self.session.cluster.map.upmap_items), len(self.sent))

    def is_quiet(self, moment: Moment) -> bool:
        """True where no command was sent within seconds of it."""
        near = self.sent[max(0, moment.sent - 1):moment.sent + 1]
        return all(abs(one.sent_at - moment.at) > 2.0 for one in near)

    def changed_since(self, moment: Moment) -> Set[str]:
        """PGs to which the module has sent upmap items since."""
        return {str(one.command["pgid"]) for one in self.sent[moment.sent:]}
