"""An OSD that was down and out returns with its data: real daemons and mgr_stub copy the same.

Ceph keeps what the OSD has of its PGs: the PGs get what was written meanwhile, by their logs as far
as these reach, else by a backfill that compares all objects and copies those that differ.

    python -m tests.ceph.conformance.test_return MAJOR FILE     records it for recording.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import pytest

from ..conftest import FIGURES
from ..release import RELEASES, Release
from .compare import Difference, compare
from .events import Event
from .recording import Recording
from .sides import Sides, both_sides

OUT_SECONDS = 2
"""After so long the monitor marks an OSD out, and in when it is up."""
TOLERANCE, LEAST_OBJECTS = 0.2, 10
"""By how much the stub may be off, and so many objects in any case: hashes are no equal shares."""


class Absence(NamedTuple):
    """An OSD that is away, how many objects each pool gets meanwhile, and how long that takes."""

    name: str
    osd: int
    objects: Dict[str, int]
    seconds: float = 0.0


ABSENCES = (
    Absence("nothing is written", 0, {}),
    Absence("within the logs", 0, {"trimmed": 100, "ec": 40}),
    Absence("beyond the logs", 5, {"trimmed": 1000, "ec_trimmed": 600}),
    Absence("five minutes", 3, {"whole": 200, "trimmed": 600, "ec_trimmed": 300}, 300.0))
AN_HOUR = Absence("an hour", 3, {"whole": 400, "trimmed": 800, "ec_trimmed": 400}, 3600.0)


class Copied(NamedTuple):
    """Objects that went to OSDs after a return, of those that the OSD had held."""

    absence: str
    held: int
    real: int
    stub: int

    def __str__(self) -> str:
        return (f"an OSD with {self.held} objects returns, {self.absence}: {self.real} copied, "
                f"{self.stub} in the stub")


# ten minutes a release: what was recorded is replayed in every run of tests/mgr_stub
@pytest.mark.long
def test_a_returned_osd_gets_what_it_lacks(major: int, request: pytest.FixtureRequest) -> None:
    _judge(request, major, ABSENCES)


@pytest.mark.long
def test_an_osd_returns_after_an_hour(major: int, request: pytest.FixtureRequest) -> None:
    _judge(request, major, (AN_HOUR,))


def _judge(request: pytest.FixtureRequest, major: int, absences: Sequence[Absence]) -> None:
    copied, differences, _ = play(RELEASES[major], absences,
                                  request.config.getoption("--ceph-keep"))
    request.config.stash[FIGURES].extend(
        f"Ceph {RELEASES[major].version}: {line}" for line in copied)
    assert not differences, "\n".join(map(str, differences[:50]))
    for line in copied:
        assert abs(line.real - line.stub) <= max(LEAST_OBJECTS, TOLERANCE * line.real), str(line)
    assert copied[-1].real > 100


def play(release: Release, absences: Sequence[Absence],
         keep: bool = False) -> Tuple[List[Copied], List[Difference], Recording]:
    """All these absences on both sides of one cluster."""
    with both_sides(release, keep) as sides:
        game = _Game(sides)
        sides.stub.settle()
        game.do("set_out_interval", OUT_SECONDS)
        return [game.play(absence) for absence in absences], game.differences, sides.recording


class _Game:
    """Both sides, and where they have differed."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.differences: List[Difference] = []

    def play(self, absence: Absence) -> Copied:
        """The OSD goes, is out, and returns; compared after each step."""
        osd, name = absence.osd, absence.name
        pgs = self.sides.stub.view()["pgs"].values()
        held = sum(pg["objects"] for pg in pgs if osd in pg["acting"])
        self.do("down", osd)
        self.do("await_out", osd)
        self._compare(f"{name}: osd.{osd} is out")
        self.do("pass", absence.seconds)
        for pool, count in absence.objects.items():
            self.do("write", pool, count, name)
        self._compare(f"{name}: written")
        real, stub = self._real_copied(), self._stub_copied()
        self.do("up", osd)
        self._compare(f"{name}: osd.{osd} is back")
        return Copied(name, held, self._real_copied() - real, self._stub_copied() - stub)

    def do(self, kind: str, *values: Any) -> None:
        """Does an event on both sides."""
        assert self.sides.do(Event(kind, values)) == (0, 0)

    def _compare(self, what: str) -> None:
        real, stub = self.sides.settle()
        self.differences += compare(real, stub).differences
        self.sides.recording.step(what, real, self.sides.real.mgr("probe shapes").json(), {})

    def _real_copied(self) -> int:
        """Recovery operations of all OSDs that are up: `num_objects_recovered` of a PG falls when
        an OSD returns as its primary."""
        real, count = self.sides.real, 0
        for osd in real.osd_dump()["osds"]:
            if osd["up"]:
                counters = real.ceph(f"tell osd.{osd['osd']} perf dump").json()
                count += counters["osd"]["recovery_ops"]
        return count

    def _stub_copied(self) -> int:
        """The objects that the stub's bytes amount to."""
        count = 0.0
        for pg in self.sides.stub.simulation.cluster.pgs.values():
            if pg.num_bytes:
                count += pg.recovered() * pg.num_objects / pg.num_bytes
        return int(count)


if __name__ == "__main__":
    found = play(RELEASES[int(sys.argv[1])], ABSENCES)
    print("\n".join(map(str, [*found[0], *found[1]])))
    found[2].save(Path(sys.argv[2]))
