"""What the real side of a stream has shown, kept in a file, and the stub held against it again.

    python3 -m tests.ceph.conformance.play 16 18 9 FILE    plays, and writes the file
    python3 -m tests.ceph.conformance.recording FILE...    compares without real daemons

Those in `recorded` are compared in every test run.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .compare import Comparison, Difference, allowed, compare, compare_shapes, unknown
from .events import Event
from .stub_side import StubSide

Step = Dict[str, Any]
"""`events` with the return codes of the real commands, then the real `view` and `shapes`."""


class Recording:
    """A stream as it is played; `save` keeps it."""

    def __init__(self, major: int, state: Dict[str, Any]) -> None:
        self.major, self.state = major, state
        self.steps: List[Step] = []
        self._events: List[Tuple[str, Tuple[Any, ...], int]] = []

    def event(self, event: Event, code: int) -> None:
        """An event and what the real command has returned."""
        self._events.append((event.kind, event.values, code))

    def step(self, name: str, view: Dict[str, Any], shapes: Dict[str, Any],
             queries: Dict[str, Any]) -> None:
        """What is there after the events so far; `queries` of PGs that differ tell the cause."""
        self.steps.append({"name": name, "events": self._events, "view": view, "shapes": shapes,
                           "queries": queries})
        self._events = []

    def save(self, path: Path) -> None:
        """Write all of it."""
        with lzma.open(path, "wt") as file:
            json.dump({"major": self.major, "state": self.state, "steps": self.steps}, file)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """What `save` has written."""
        with lzma.open(path, "rt") as file:
            content = json.load(file)
        made = cls(content["major"], content["state"])
        made.steps = content["steps"]
        return made


class Result(NamedTuple):
    """What a stream has shown."""

    events: int
    pgs: int
    values: int
    differences: List[Difference]

    def __str__(self) -> str:
        return (f"{self.events} events, {self.pgs} PGs and {self.values} values compared: "
                f"{len(self.unknown)} differences{allowed(self.differences)}")

    @property
    def unknown(self) -> List[Difference]:
        """Differences that nobody has given a reason for."""
        return unknown(self.differences)


def replay(recording: Recording, note: Callable[[str], None] = print) -> Result:
    """The stub does what the real cluster has done; compared after each step."""
    stub = StubSide(recording.state, recording.major)
    events = pgs = values = 0
    differences: List[Difference] = []
    try:
        stub.settle()
        for step in recording.steps:
            fresh: List[Difference] = []
            for kind, arguments, code in step["events"]:
                event = Event(kind, tuple(arguments))
                events += 1
                values += 1
                fresh += answers(event, code, stub.do(event))
            for found in _compare(stub, step):
                values += found.values
                fresh += found.differences
            pgs += len(step["view"]["pgs"])
            differences += fresh
            left = unknown(fresh)
            note(f"{step['name']}: {len(left)} differences")
            tell(note, left, step["view"])
    finally:
        stub.close()
    return Result(events, pgs, values, differences)


def answers(event: Event, real: int, stub: int) -> List[Difference]:
    """Whether one side has taken an event that the other has not."""
    if (real == 0) == (stub == 0):
        return []
    return [Difference(f"answer of {event}", real, stub)]


def _compare(stub: StubSide, step: Step) -> List[Comparison]:
    stub.settle()
    stub.adopt_objects(step["view"])
    return [compare(step["view"], stub.view()), compare_shapes(step["shapes"], stub.shapes())]


def tell(note: Callable[[str], None], differences: List[Difference], real: Dict[str, Any]) -> None:
    """Notes them, and what a real PG that differs is like."""
    for difference in differences:
        note(f"      {difference}   ({real['pgs'].get(difference.pgid, '')})")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {replay(Recording.load(Path(name)))}")
