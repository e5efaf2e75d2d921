"""Every scenario file, held against its expected outcome and against the rules of safety."""
from __future__ import annotations

from pathlib import Path

import pytest

from . import drive, scenario
from .watch import truth

_THRASHING = 0.10


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=[pytest.mark.full] if is_full else [])
    for path, is_full in ((path, scenario.read(path).is_full) for path in scenario.all_files())])
def test_scenario(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    played = scenario.read(path)
    result = drive.run(played, tmp_path)
    untrue = [what for what in result.watch.truth.broken
              if what.partition(":")[0] not in (*truth.PENDING, *played.pending)]
    # N4: a PG that is inactive while nothing is to be moved is told with the next look alone
    untrue += [what for what in result.watch.screen.broken
               if not (played.is_full or what.startswith("N4"))]
    # no rule of safety may be pending
    broken = [what for what in result.watch.broken
              if not (what.startswith("A1:") and "A1" in played.pending)]
    assert not broken + untrue
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


@pytest.mark.full
@pytest.mark.parametrize("name", ["limit_of_shards", "builtin"])
def test_the_same_scenario_runs_the_same_way(name: str, tmp_path: Path) -> None:
    played = scenario.read(scenario.FOLDER / f"{name}.txt")
    outcomes = []
    for turn in ("first", "second"):
        (tmp_path / turn).mkdir()
        outcomes.append(drive.run(played, tmp_path / turn).lines)
    assert outcomes[0] == outcomes[1]


@pytest.mark.full
def test_a_balancer_that_sets_primaries_holds_nothing_up(tmp_path: Path) -> None:
    """Beside it as without it: as many moves, no later than PGs that are led by others have them
    copied, and the same end."""
    played = scenario.read(scenario.FOLDER / "read_mode.txt")
    alone = played._replace(events=tuple(
        event for event in played.events if event.line != "balancer on"))
    found = [drive.run(one, tmp_path) for one in (played, alone)]
    beside, figures = (one.watch.figures for one in found)
    assert (beside.moved_bytes, beside.commands) == (figures.moved_bytes, figures.commands)
    assert beside.last_command_at <= figures.last_command_at + 600.0
    assert found[0].status == found[1].status
    assert [bool(one.session.cluster.map.chosen_primaries) for one in found] == [True, False]
