"""The real cluster and the stub that is made of its state: both do the same."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from ..conftest import PACKAGE
from ..release import Release
from . import cluster_shape as shape
from .events import Event
from .real_side import RealCluster
from .recording import Recording
from .stub_side import StubSide

View = Dict[str, Any]


class Sides(NamedTuple):
    """Both, and what is kept of the real one."""

    real: RealCluster
    stub: StubSide
    recording: Recording

    def do(self, event: Event) -> Tuple[int, int]:
        """Does an event on both; the return codes, the real one first."""
        real, stub = self.real.do(event), self.stub.do(event)
        self.recording.event(event, real)
        return real, stub

    def settle(self) -> Tuple[View, View]:
        """Waits until nothing changes any more; what both tell then, the real one first."""
        real = self.real.settle()
        self.stub.settle()
        self.stub.adopt_objects(real)
        return real, self.stub.view()


@contextmanager
def both_sides(release: Release, keep: bool) -> Iterator[Sides]:
    """A real cluster with its pools, and its stub."""
    with RealCluster(release, PACKAGE, keep, shape.OSD_GIB) as real:
        real.prepare()
        recording = Recording(release.major, real.state())
        stub = StubSide(recording.state, release.major)
        try:
            yield Sides(real, stub, recording)
        finally:
            stub.close()
