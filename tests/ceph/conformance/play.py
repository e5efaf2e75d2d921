"""Plays one stream of events on both sides and compares them after every step.

    python3 -m tests.ceph.conformance.play MAJOR [STEPS] [SEED] [FILE]

With FILE the real side is recorded, and recording.py compares it again.

What equilibrium has read (`dump-state`) against `ceph osd dump`, `pg ls` and `osd df`.
"""
from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from ..daemons import ClusterError, wait_for
from ..release import RELEASES, Release
from . import cluster_shape as shape
from .compare import Comparison, Difference, compare, compare_shapes, unknown
from .events import Event, Stream
from .real_side import RealCluster
from .recording import Result, answers, tell
from .sides import Sides, both_sides

USED_KB_TOLERANCE = 2048
"""OSDs report at other moments than those at which they are asked."""


def compare_reading(cluster: RealCluster) -> Comparison:
    """A fresh reading of the module in the running mgr, held against Ceph's own commands."""
    state = _fresh_state(cluster)
    count, found = 0, []

    def check(place: str, ceph: Any, own: Any) -> None:
        nonlocal count
        count += 1
        if ceph != own:
            found.append(Difference(f"reading.{place}", ceph, own))

    _check_pgs(cluster, state, check)
    _check_osds(cluster, state, check)
    osdmap = cluster.osd_dump()
    for name in ("epoch", "pg_upmap_items", "flags_set", "full_ratio", "backfillfull_ratio"):
        check(f"osd_dump.{name}", osdmap[name], state["osd_dump"][name])
    return Comparison(count, found)


def _fresh_state(cluster: RealCluster) -> Dict[str, Any]:
    epoch = cluster.osd_dump()["epoch"]

    def ready() -> Dict[str, Any]:
        cluster.mgr("equilibrium eval")  # begins a look where the last is too old
        answer = cluster.mgr("equilibrium dump-state")
        state: Dict[str, Any] = answer.json() if answer.rc == 0 else {}
        if state and state["osd_dump"]["epoch"] >= epoch:
            return state
        return {}
    return wait_for("a reading of the present map", ready, 60)


def _check_pgs(cluster: RealCluster, state: Dict[str, Any], check: Any) -> None:
    own = {pg["pgid"]: pg for pg in state["pg_dump"]["pg_map"]["pg_stats"]}
    listed: List[Dict[str, Any]] = cluster.mgr_json("pg ls")["pg_stats"]
    if not listed:
        raise ClusterError("pg ls shows nothing")
    for pg in listed:
        place, there = f"pgs.{pg['pgid']}", own.get(pg["pgid"], {"stat_sum": {}})
        for name in ("up", "acting", "state"):
            check(f"{place}.{name}", pg[name], there.get(name))
        check(f"{place}.num_bytes", pg["stat_sum"]["num_bytes"], there["stat_sum"].get("num_bytes"))


def _check_osds(cluster: RealCluster, state: Dict[str, Any], check: Any) -> None:
    own = {node["id"]: node for node in state["osd_df_dump"]["nodes"]}
    for node in cluster.osd_nodes():
        place, there = f"osds.{node['id']}", own.get(node["id"], {})
        for name in ("kb", "crush_weight", "reweight", "status"):
            check(f"{place}.{name}", _rounded(node[name]), _rounded(there.get(name)))
        apart = abs(node["kb_used"] - there.get("kb_used", 0))
        check(f"{place}.kb_used", True, apart <= USED_KB_TOLERANCE)


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


MOST_AT_ONCE = 2
"""Events of one step."""
LEAST_EVENTS = 6
"""With fewer a stream shows next to nothing."""
MOST_QUERIED = 8
"""PGs of a step that are asked why they differ."""
_LATEST_SECONDS = 240.0
"""So much later than asked for it ends all the same."""


def play(release: Release, steps: int, seed: int, note: Callable[[str], None] = print,
         seconds: float = float("inf"), keep: bool = False, record: Optional[Path] = None
         ) -> Result:
    """Begin the cluster, play the stream; `seconds` end it early, after a whole step that makes
    LEAST_EVENTS full: a busy machine takes longer for them. `record`: where the real side goes."""
    began = time.monotonic()
    with both_sides(release, keep) as sides:
        note(f"begun after {time.monotonic() - began:.0f} s")
        try:
            return _Game(sides, seed, note, began).play(steps, seconds)
        finally:
            if record is not None:
                sides.recording.save(record)


class _Game:
    """Both sides, and what has been counted so far."""

    def __init__(self, sides: Sides, seed: int, note: Callable[[str], None],
                 began: float) -> None:
        self.sides, self.note, self.began = sides, note, began
        self.stream = Stream(seed, shape.SPARES)
        self.rng = random.Random(f"steps/{seed}")
        self.differences: List[Difference] = []
        self.events = self.pgs = self.values = 0

    def play(self, steps: int, seconds: float) -> Result:
        """All steps, and one at the end in which everything is mended."""
        view = self.sides.stub.settle()
        self._compare("at the beginning")
        for number in range(steps):
            late = time.monotonic() - self.began - seconds
            if late > _LATEST_SECONDS or (late > 0.0 and self.events >= LEAST_EVENTS):
                break
            events: List[str] = []
            for _ in range(self.rng.randint(1, MOST_AT_ONCE)):
                event = self.stream.next(view)
                events.append(str(event))
                self._do(event)
                view = self.sides.stub.view()
            view = self._compare(f"step {number + 1}: {'; '.join(events)}")
        for event in self.stream.last(view):
            self._do(event)
        self._compare("the end: all is up, in, and allowed to move")
        self._add("equilibrium's own reading", compare_reading(self.sides.real), {"pgs": {}})
        return Result(self.events, self.pgs, self.values, self.differences)

    def _do(self, event: Event) -> None:
        self.events += 1
        self.values += 1
        self.differences += answers(event, *self.sides.do(event))

    def _compare(self, what: str) -> Dict[str, Any]:
        sides = self.sides
        real, stub = sides.settle()
        shapes = sides.real.mgr("probe shapes").json()
        found = compare(real, stub)
        sides.recording.step(what, real, shapes, self._queries(found.differences))
        self.pgs += len(real["pgs"])
        self._add(what, found, real)
        self._add(f"{what}, types", compare_shapes(shapes, sides.stub.shapes()), real)
        return stub

    def _queries(self, differences: List[Difference]) -> Dict[str, Any]:
        """What the real PGs that differ tell of their members and logs."""
        pgids = {one.pgid for one in differences if one.place.startswith("pgs.")}
        found = {}
        for pgid in sorted(pgids)[:MOST_QUERIED]:
            answer = self.sides.real.ceph(f"pg {pgid} query", 30.0)
            if answer.rc == 0:
                found[pgid] = answer.json()
        return found

    def _add(self, what: str, found: Comparison, real: Dict[str, Any]) -> None:
        """Count and note what a comparison has found; PGs are shown with their differences."""
        self.values += found.values
        self.differences += found.differences
        left = unknown(found.differences)
        took, known = time.monotonic() - self.began, len(found.differences) - len(left)
        so_far = f"{self.events} events, {self.pgs} PGs, {self.values} values so far"
        self.note(f"{took:5.0f} {what}: {len(left)} differences, {known} known ({so_far})")
        tell(self.note, left[:200], real)


def main(major: str = "16", steps: str = "10", seed: str = "1", record: str = "") -> None:
    """As the command line has them."""
    release = RELEASES[int(major)]
    release.prepare()
    print(play(release, int(steps), int(seed), record=Path(record) if record else None))


if __name__ == "__main__":
    main(*sys.argv[1:])
