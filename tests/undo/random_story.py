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
#: An undo that undoes what came before it makes the rest of the story shorter: the last ones of
#: these are rarer.
_STEPS = ("plan", "plan", "on", "plan", "on", "cancel", "undo", "rm", "fail", "fail at", "freeze",
          "drain", "undo since", "undo plan")
_OF_OTHERS = ("others",)
_OF_THE_MAP = ("out", "in", "reweight", "crush reweight")
_POINTS = ("before-send", "after-send", "before-store", "after-store", "after-map")
DAY = 86400.0

Items = Dict[str, Tuple[Tuple[int, int], ...]]


class Moment(NamedTuple):
    """The upmap items at a moment, and what had been sent then."""

    at: float   # seconds since the epoch
    items: Items
    sent: int


class Story:
    """All rules of safety are held. `others`: somebody else sets and removes upmap items;
    `map_changes`: OSDs go out and in, and get other weights."""

    def __init__(self, seed: int, folder: Path, others: bool = False,
                 map_changes: bool = False) -> None:
        self.rng = random.Random(f"undo {seed}")
        self.session = clusters.session_of(clusters.WITH_EMPTY_PGS, seed, folder)
        for line in _SETTINGS:
            drive.command(self.session, line)
        made_by_others(self.session, self.rng)
        self.session.host.run_for(2 * 3600.0)
        self.watch = Watch(self.session)
        self.session.host.observers.append(lambda _: self.watch(self.session))
        self.session.simulation.monitor.observers.append(self._on_command)
        self.steps = (*_STEPS, *(_OF_OTHERS if others else ()),
                      *(_OF_THE_MAP if map_changes else ()))
        self.touched: List[str] = []   # PGs that others have changed
        self.sent: List[LoggedCommand] = []
        self.moments: List[Moment] = []
        self.executed: List[str] = []   # plans, in the order in which they were
        self.made = 0

    def _on_command(self, entry: LoggedCommand) -> None:
        module = self.session.module
        if entry.sender != MGR or entry.prefix not in (SET_ITEMS, REMOVE_ITEMS) or module is None:
            return
        self.sent.append(entry)

    def tell(self, steps: int) -> None:
        for _ in range(steps):
            self.moments.append(self.now())
            self._step(self.rng.choice(self.steps))
            self.run(self.rng.choice((30.0, 400.0, 1500.0)))

    def _step(self, what: str) -> None:
        rng, osds = self.rng, sorted(self.session.cluster.map.osds)
        if what == "plan":
            self._execute()
        elif what == "on":
            self.play("try equilibrium on")
            self.run(rng.choice((300.0, 1200.0)))
            self.play("try equilibrium off")
        elif what == "rm" and self.executed:
            self.play(f"try equilibrium rm {self.executed[-1]}")
        elif what == "fail":
            self.play("sim mgr fail takeover=10s")
        elif what == "fail at":
            self.play(f"sim mgr fail at {rng.choice(_POINTS)} {rng.choice((1, 3, 20))}"
                      " takeover=10s")
            self._execute()
        elif what == "others":
            self._let_others_change()
        elif what == "drain":
            osd = rng.choice(osds)
            self.play(f"try equilibrium drain add osd.{osd}")
            self.run(rng.choice((200.0, 1500.0)))
            self.play(f"try equilibrium drain rm osd.{osd}")
        elif what == "undo since":
            self.play(f"try equilibrium undo --since {rng.choice(('10m', '1h', '3h'))}")
        elif what == "undo plan" and self.executed:
            self.play(f"try equilibrium undo {rng.choice(self.executed)}")
        elif what in ("out", "in"):
            self.play(f"sim osd {what} {rng.choice(osds)}")
        elif what in ("reweight", "crush reweight"):
            self.play(f"sim osd {what.replace(' ', '-')} {rng.choice(osds)}"
                      f" {rng.choice(('0.4', '0.8', '1'))}")
        elif what in ("cancel", "undo", "freeze"):
            self.play(f"try equilibrium {what}")

    def _execute(self) -> None:
        self.made += 1
        name = f"p{self.made}"
        self.play(f"try equilibrium optimize {name} --max-moves {self.rng.choice((5, 20, 60))}")
        self.run(60.0)
        self.executed.append(name)   # what it sends may be sent before it has answered
        self.play(f"try equilibrium execute {name}")

    def _let_others_change(self) -> None:
        present = sorted(self.session.cluster.map.upmap_items)
        if present:
            self.touched.append(self.rng.choice(present))
            self.play(f"ceph osd rm-pg-upmap-items {self.touched[-1]}")

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

    def undo(self, what: str = "", since: float = 0.0) -> Dict[str, str]:
        """Takes changes back, those of a plan or all `since` a moment (seconds since the epoch),
        often over a failover, and waits until nothing is left of it; pgid → why it is not
        restored."""
        for _ in range(5):   # a span is of the moment at which it is asked for
            span = what or f"--since {math.ceil(self.now().at - since)}s"
            line = f"equilibrium undo {span} --format json"
            self.watch.judge.silence.on_answer("equilibrium undo", 0)
            code, out, _ = self.session.command(line)
            if code != -errno.EAGAIN:
                break
            self.run(60.0)
        assert code in (0, -errno.ENOENT)
        answer: Dict[str, Any] = json.loads(out) if code == 0 else {"not_restored": []}
        self.run(self.rng.choice((1.0, 30.0, 600.0)))
        if self.rng.random() < 0.5:
            self.play("sim mgr fail takeover=10s")
        self.run(5 * DAY)
        found = {row["pgid"]: row["reason"] for row in answer["not_restored"]}
        last = json.loads(self.session.command(
            "equilibrium status --format json")[1])["last_execution"] or {"dropped": []}
        if answer.get("plan"):
            found.update({row["pgid"]: row["reason"] for row in last["dropped"]})
        return found

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
