"""Every scenario file, held against its expected outcome and against the rules of safety."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from . import drive, scenario
from .watch import truth

_THRASHING = 0.10


def _param(path: Path) -> Any:
    is_full = scenario.read(path).is_full
    return pytest.param(path, id=path.stem, marks=[pytest.mark.full] * is_full)


@pytest.mark.parametrize("path", list(map(_param, scenario.all_files())))
def test_scenario(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    played = scenario.read(path)
    result = drive.run(played, tmp_path)
    wrong = [what for what in result.watch.truth.broken
             if what.partition(":")[0] not in (*truth.PENDING, *played.pending)]
    if not played.is_full:   # a PG that is inactive at rest is told with the next look alone
        wrong += [what for what in result.watch.screen.broken if not what.startswith("N4")]
    # no rule of safety may be pending
    wrong += [what for what in result.watch.broken
              if not (what.startswith("A1:") and "A1" in played.pending)]
    assert not wrong
    # S4 at every look, not only as something is sent: what clients write meanwhile counts as well.
    # A PG that is larger than the limit goes alone.
    assert result.watch.figures.highest_together <= result.limit
    said = result.lines + ["status: " + result.status]
    assert not played.missed(said), "\n".join(said)
    if not played.is_recorded:
        return
    if request.config.getoption("--rewrite-scenarios"):
        scenario.rewrite(path, result.lines)
        return
    assert "\n".join(result.lines) == "\n".join(played.expected)
    thrashing = result.watch.figures.thrashing()
    if thrashing > _THRASHING:
        # visible, not hidden: OSDs near their target exchange shards for their pools' free space,
        # and what events themselves move there and back is in the figure as well
        assert dict(played.options).get("aim") != "least-motion"
        pytest.xfail(f"an OSD's utilization thrashes by {100.0 * thrashing:.0f} %")
