"""Random streams of drains, undo and freeze, held against the rules of safety and of rest.

`--operation-streams N` plays more or fewer of them.

Random streams of what an operator does about data: drains, undo, cancel and freeze,
one in the middle of the other, among the events that befall a cluster anyway.

The same seed gives the same stream. In the end all is let go, and automatic balancing comes to
rest.
"""
from __future__ import annotations

import pytest
from pathlib import Path
from typing import List, Sequence

from .. import clusters, drive, random_events
from ..random_events import Kind, Stream
from ..scenario import Scenario
from ..test_event_streams import hold
from ..watch.at_rest import Rest


_ACTIVE = "config set mgr mgr/equilibrium/active "


def scenario(seed: int) -> Scenario:
    """The stream of a seed, with its healing, as a scenario."""
    # off, so that no undo is under way any more when automatic balancing is to begin again
    return random_events.stream_of("operation", seed, KINDS, "try equilibrium off",
                                   cluster=clusters.WITH_EMPTY_PGS)


def _name(stream: Stream) -> str:
    """An OSD or a host."""
    if stream.rng.random() < 0.7:
        return str(stream.rng.choice(stream.osds))
    return stream.rng.choice(sorted(stream.hosts))


def _drain_add(stream: Stream) -> List[str]:
    name = _name(stream)
    stream.heal(f"try equilibrium drain rm {name}")
    return [f"try equilibrium drain add {name}"]


def _drain_rm(stream: Stream) -> List[str]:
    added = [line.rpartition(" ")[2] for line in stream.heals if " drain rm " in line]
    return [f"try equilibrium drain rm {stream.rng.choice(added or ['0'])}",
            "try equilibrium drain ls"]


def _drain_while_off(stream: Stream) -> List[str]:
    return ["try equilibrium off", *_drain_add(stream)]


def _drain_and_stop(stream: Stream) -> List[str]:
    """The disk is replaced while the drain is listed."""
    osd = stream.rng.choice(stream.osds)
    stream.heal(f"try equilibrium drain rm {osd}", f"sim osd up {osd}", f"sim osd in {osd}")
    return [f"try equilibrium drain add {osd}", f"sim osd down {osd}", "try equilibrium drain ls",
            f"sim osd up {osd}"]


def _off_and_on(stream: Stream) -> List[str]:
    return ["try equilibrium off", "try equilibrium drain ls", "try equilibrium on"]


def _undo(stream: Stream) -> List[str]:
    line = stream.rng.choice(("undo", "undo --since 2h", "undo --since 1d", "cancel"))
    lines = [f"try equilibrium {line}"]
    if stream.rng.random() < 0.3:
        lines.insert(0, f"try equilibrium {line} --dry-run")
    return lines


def _undo_while_off(stream: Stream) -> List[str]:
    return ["try equilibrium off", *_undo(stream)]


def _undo_and_drain(stream: Stream) -> List[str]:
    lines = [*_undo_while_off(stream), *_drain_add(stream)]
    return lines if stream.rng.random() < 0.5 else [*lines, *_undo(stream)]


def _execute_and_drain(stream: Stream) -> List[str]:
    stream.made += 1
    plan = f"plan{stream.made}"
    return ["try equilibrium off", f"try equilibrium optimize {plan}",
            f"try equilibrium execute {plan}", *_drain_add(stream)]


def _option_while_undoing(stream: Stream) -> List[str]:
    return [*_undo_while_off(stream), _ACTIVE + "true"]


def _active(stream: Stream) -> List[str]:
    return [_ACTIVE + stream.rng.choice(("true", "false"))]


def _freeze(stream: Stream) -> List[str]:
    return ["try equilibrium freeze"]


def _freeze_after_expansion(stream: Stream) -> List[str]:
    stream.made += 1
    where = f" under={stream.rng.choice(stream.racks)}" if stream.racks else ""
    stream.heal("sim flag unset norebalance")
    return ["sim flag set norebalance", f"sim host add more{stream.made} 2 512G{where}",
            "try equilibrium freeze", "sim flag unset norebalance"]


_OPERATIONS: Sequence[Kind] = (
    _drain_add, _drain_add, _drain_add, _drain_rm, _drain_rm, _drain_while_off, _drain_while_off,
    _drain_and_stop, _off_and_on, _undo, _undo_while_off, _undo_while_off, _undo_and_drain,
    _undo_and_drain, _execute_and_drain, _execute_and_drain, _option_while_undoing, _active,
    _freeze, _freeze, _freeze_after_expansion)
#: Of two events one is an operation.
KINDS: Sequence[Kind] = (*random_events.KINDS, *_OPERATIONS, *_OPERATIONS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "operation_seed" in metafunc.fixturenames:
        metafunc.parametrize("operation_seed",
                             range(metafunc.config.getoption("--operation-streams")))


def test_operation_stream(operation_seed: int, tmp_path: Path) -> None:
    played, rest = scenario(operation_seed), Rest()
    result = drive.run(played, tmp_path, rest.before_event)
    hold(played, result, result.watch.broken + rest.broken)
