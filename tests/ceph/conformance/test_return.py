"""An OSD that was down and out returns with its data: real daemons and mgr_stub copy the same.

Ceph keeps what the OSD has of its PGs: the PGs get what was written meanwhile, by their logs as far
as these reach, else by a backfill that compares all objects and copies those that differ.

    python -m tests.ceph.conformance.test_return MAJOR FILE     records it for recording.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

import pytest

from ..conftest import FIGURES
from ..release import RELEASES
from . import cluster_shape as shape
from .compare import Difference, compare
from .events import Event
from .play import PACKAGE
from .real_side import RealCluster
from .recording import Recording
from .stub_side import StubSide

MAJORS = (16, 20)
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = str(metafunc.config.getoption("--ceph", "") or "").split(",")
    metafunc.parametrize("major", [major for major in MAJORS if str(major) in wanted])


# ten minutes a release: what was recorded is replayed in every run of tests/mgr_stub
@pytest.mark.long
def test_a_returned_osd_gets_what_it_lacks(major: int, request: pytest.FixtureRequest) -> None:
    _judge(request, major, ABSENCES)


@pytest.mark.long
def test_an_osd_returns_after_an_hour(major: int, request: pytest.FixtureRequest) -> None:
    _judge(request, major, (AN_HOUR,))


def _judge(request: pytest.FixtureRequest, major: int, absences: Sequence[Absence]) -> None:
    copied, differences, _ = play(major, absences, request.config.getoption("--ceph-keep"))
    request.config.stash[FIGURES].extend(
        f"Ceph {RELEASES[major].version}: {line}" for line in copied)
    assert not differences, "\n".join(map(str, differences[:50]))
    for line in copied:
        assert abs(line.real - line.stub) <= max(LEAST_OBJECTS, TOLERANCE * line.real), str(line)
    assert copied[-1].real > 100


def play(major: int, absences: Sequence[Absence],
         keep: bool = False) -> Tuple[List[Copied], List[Difference], Recording]:
    """All these absences on both sides of one cluster."""
    with RealCluster(RELEASES[major], PACKAGE, keep, shape.OSD_GIB) as real:
        real.prepare()
        recording = Recording(major, real.state())
        stub = StubSide(recording.state, major)
        game = _Game(real, stub, recording)
        try:
            stub.settle()
            game.do(Event("set_out_interval", (OUT_SECONDS,)))
            return [game.play(absence) for absence in absences], game.differences, recording
        finally:
            stub.close()


class _Game:
    """Both sides, and where they have differed."""

    def __init__(self, real: RealCluster, stub: StubSide, recording: Recording) -> None:
        self.real, self.stub, self.recording = real, stub, recording
        self.differences: List[Difference] = []

    def play(self, absence: Absence) -> Copied:
        """The OSD goes, is out, and returns; compared after each step."""
        osd = absence.osd
        held = sum(pg["objects"] for pg in self.stub.view()["pgs"].values() if osd in pg["acting"])
        self.do(Event("down", (osd,)), Event("await_out", (osd,)))
        self._compare(f"{absence.name}: osd.{osd} is out")
        self.do(Event("pass", (absence.seconds,)),
                *(Event("write", (pool, count, absence.name))
                  for pool, count in absence.objects.items()))
        self._compare(f"{absence.name}: written")
        before = self._copied()
        self.do(Event("up", (osd,)))
        self._compare(f"{absence.name}: osd.{osd} is back")
        return Copied(absence.name, held, *(
            after - there for after, there in zip(self._copied(), before)))

    def do(self, *events: Event) -> None:
        """Does events on both sides."""
        for event in events:
            code = self.real.do(event)
            assert code == self.stub.do(event) == 0
            self.recording.event(event, code)

    def _compare(self, what: str) -> None:
        real = self.real.settle()
        self.stub.settle()
        self.stub.adopt_objects({pgid: pg["objects"] for pgid, pg in real["pgs"].items()})
        self.differences += compare(real, self.stub.view()).differences
        self.recording.step(what, real, self.real.mgr("probe shapes").json(), {})

    def _copied(self) -> Tuple[int, int]:
        """Recovery operations of all real OSDs that are up, and the objects that the stub's bytes
        amount to.

        `num_objects_recovered` of a real PG falls when an OSD returns as its primary.
        """
        real = self.real
        ups = [osd["osd"] for osd in real.mon_json("osd dump")["osds"] if osd["up"]]
        counts = [real.ceph(f"tell osd.{osd} perf dump").json()["osd"] for osd in ups]
        own = sum(pg.recovered() * pg.num_objects / pg.num_bytes
                  for pg in self.stub.simulation.cluster.pgs.values() if pg.num_bytes)
        return sum(count["recovery_ops"] for count in counts), int(own)


if __name__ == "__main__":
    found = play(int(sys.argv[1]), ABSENCES)
    print("\n".join(map(str, [*found[0], *found[1]])))
    found[2].save(Path(sys.argv[2]))
