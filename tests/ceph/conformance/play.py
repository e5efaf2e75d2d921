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
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ..daemons import ClusterError, wait_for
from ..release import RELEASES, Release
from . import cluster_shape as shape
from .compare import Comparison, Difference, allowed, compare, compare_shapes
from .events import Event, Stream
from .real_side import RealCluster
from .recording import Recording
from .stub_side import StubSide

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
    osdmap = cluster.mon_json("osd dump")
    for name in ("epoch", "pg_upmap_items", "flags_set", "full_ratio", "backfillfull_ratio"):
        check(f"osd_dump.{name}", osdmap[name], state["osd_dump"][name])
    return Comparison(count, found)


def _fresh_state(cluster: RealCluster) -> Dict[str, Any]:
    epoch = cluster.mon_json("osd dump")["epoch"]

    def ready() -> Dict[str, Any]:
        cluster.mgr("equilibrium eval")  # begins a look where the last is too old
        answer = cluster.mgr("equilibrium dump-state")
        state = answer.json() if answer.rc == 0 else {}
        return dict(state) if state and state["osd_dump"]["epoch"] >= epoch else {}
    return wait_for("a reading of the present map", ready, 60)


def _check_pgs(cluster: RealCluster, state: Dict[str, Any], check: Any) -> None:
    own = {pg["pgid"]: pg for pg in state["pg_dump"]["pg_map"]["pg_stats"]}
    listed: List[Dict[str, Any]] = cluster.mgr_json("pg ls")["pg_stats"]
    if not listed:
        raise ClusterError("pg ls shows nothing")
    for pg in listed:
        there = own.get(pg["pgid"], {})
        for name in ("up", "acting", "state"):
            check(f"pgs.{pg['pgid']}.{name}", pg[name], there.get(name))
        check(f"pgs.{pg['pgid']}.num_bytes", pg["stat_sum"]["num_bytes"],
              there.get("stat_sum", {}).get("num_bytes"))


def _check_osds(cluster: RealCluster, state: Dict[str, Any], check: Any) -> None:
    own = {node["id"]: node for node in state["osd_df_dump"]["nodes"]}
    for node in cluster.mgr_json("osd df")["nodes"]:
        there = own.get(node["id"], {})
        for name in ("kb", "crush_weight", "reweight", "status"):
            check(f"osds.{node['id']}.{name}", _rounded(node[name]), _rounded(there.get(name)))
        apart = abs(node["kb_used"] - there.get("kb_used", 0))
        check(f"osds.{node['id']}.kb_used", True, apart <= USED_KB_TOLERANCE)


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


PACKAGE = Path(__file__).resolve().parents[3] / "equilibrium_mgr"
MOST_AT_ONCE = 2
"""Events of one step."""
LEAST_EVENTS = 6
"""With fewer a stream shows next to nothing."""
MOST_QUERIED = 8
"""PGs of a step that are asked why they differ."""
_LATEST_SECONDS = 240.0
"""So much later than asked for it ends all the same."""


class Result(NamedTuple):
    """What a stream has shown."""

    steps: int
    events: int
    pgs: int
    values: int
    differences: List[Difference]
    seconds: float

    @property
    def unknown(self) -> List[Difference]:
        """Differences that nobody has given a reason for."""
        return [difference for difference in self.differences if not difference.reason]

    def __str__(self) -> str:
        return (f"{self.events} events in {self.steps} steps, {self.pgs} PGs and {self.values} "
                f"values compared: {len(self.unknown)} differences{allowed(self.differences)}; "
                f"{self.seconds:.0f} s")


def play(release: Release, steps: int, seed: int, note: Callable[[str], None] = print,
         seconds: float = float("inf"), keep: bool = False, record: Optional[Path] = None
         ) -> Result:
    """Begin the cluster, play the stream; `seconds` end it early, after a whole step that makes
    LEAST_EVENTS full: a busy machine takes longer for them. `record`: where the real side goes."""
    began = time.monotonic()
    with RealCluster(release, PACKAGE, keep, shape.OSD_GIB) as real:
        real.prepare()
        recording = Recording(release.major, real.state())
        stub = StubSide(recording.state, release.major)
        note(f"begun after {time.monotonic() - began:.0f} s")
        try:
            return _Game(real, stub, seed, note, began, recording).play(steps, seconds)
        finally:
            if record is not None:
                recording.save(record)
            stub.close()


class _Game:
    """Both sides, and what has been counted so far."""

    def __init__(self, real: RealCluster, stub: StubSide, seed: int, note: Callable[[str], None],
                 began: float, recording: Recording) -> None:
        self.real, self.stub, self.note, self.began = real, stub, note, began
        self.recording = recording
        self.stream = Stream(seed, shape.SPARES)
        self.rng = random.Random(f"steps/{seed}")
        self.differences: List[Difference] = []
        self.steps = self.events = self.pgs = self.values = 0

    def play(self, steps: int, seconds: float) -> Result:
        """All steps, and one at the end in which everything is mended."""
        view = self.stub.settle()
        self._compare("at the beginning")
        for number in range(steps):
            late = time.monotonic() - self.began - seconds
            if late > _LATEST_SECONDS or (late > 0.0 and self.events >= LEAST_EVENTS):
                break
            events: List[Event] = []
            for _ in range(self.rng.randint(1, MOST_AT_ONCE)):
                events.append(self.stream.next(view))
                self._do(events[-1])
                view = self.stub.view()
            view = self._compare(f"step {number + 1}: {'; '.join(map(str, events))}")
        for event in self.stream.last(view):
            self._do(event)
        self._compare("the end: all is up, in, and allowed to move")
        self._add("equilibrium's own reading", [compare_reading(self.real)], {})
        return Result(self.steps, self.events, self.pgs, self.values, self.differences,
                      time.monotonic() - self.began)

    def _do(self, event: Event) -> None:
        self.events += 1
        real, stub = self.real.do(event), self.stub.do(event)
        self.values += 1
        self.recording.event(event, real)
        if (real == 0) != (stub == 0):
            self.differences.append(Difference(f"answer of {event}", real, stub))

    def _compare(self, what: str) -> dict[str, object]:
        real, stub = self.real.settle(), self.stub.settle()
        self.stub.adopt_objects({pgid: pg["objects"] for pgid, pg in real["pgs"].items()})
        stub = self.stub.view()
        shapes = self.real.mgr("probe shapes").json()
        found = [compare(real, stub), compare_shapes(shapes, self.stub.shapes())]
        self.recording.step(what, real, shapes, self._queries(found[0].differences))
        self.steps += 1
        self.pgs += len(real["pgs"])
        self._add(what, found, real["pgs"])
        return stub

    def _queries(self, differences: List[Difference]) -> Dict[str, Any]:
        """What the real PGs that differ tell of their members and logs."""
        pgids = {".".join(one.place.split(".")[1:3]) for one in differences
                 if one.place.startswith("pgs.")}
        answers = {pgid: self.real.ceph(f"pg {pgid} query", 30.0)
                   for pgid in sorted(pgids)[:MOST_QUERIED]}
        return {pgid: answer.json() for pgid, answer in answers.items() if answer.rc == 0}

    def _add(self, what: str, found: list[Comparison], pgs: dict[str, object]) -> None:
        """Count and note what a comparison has found; `pgs` are shown with their differences."""
        self.values += sum(one.values for one in found)
        fresh = [difference for one in found for difference in one.differences]
        self.differences += fresh
        known = sum(1 for difference in fresh if difference.reason)
        self.note(f"{time.monotonic() - self.began:5.0f} {what}: {len(fresh) - known} differences"
                  + (f", {known} known" if known else "")
                  + f" ({self.events} events, {self.pgs} PGs, {self.values} values so far)")
        for difference in [one for one in fresh if not one.reason][:200]:
            pgid = difference.place.split(".misplaced")[0].removeprefix("pgs.")
            pgid = ".".join(pgid.split(".")[:2])
            more = f"   ({pgs[pgid]})" if pgid in pgs else ""
            self.note(f"      {difference}{more}")


if __name__ == "__main__":
    major, wanted_steps, wanted_seed = (
        int(word) for word in (*sys.argv[1:4], *("16", "10", "1")[len(sys.argv[1:4]):]))
    RELEASES[major].prepare()
    print(play(RELEASES[major], wanted_steps, wanted_seed,
               record=Path(sys.argv[4]) if len(sys.argv) > 4 else None))
