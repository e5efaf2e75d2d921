"""Random streams of drains, undo and freeze, held against the rules of safety and of rest.

`--operation-streams N` plays more or fewer of them.

Random streams of what an operator does about data: drains, undo, cancel and freeze,
one in the middle of the other, among the events that befall a cluster anyway.

The same seed gives the same stream. In the end all is let go, and automatic balancing comes to
rest.
"""
from __future__ import annotations

from pathlib import Path
from typing import Dict

from .. import clusters, random_events
from ..random_events import Stream
from ..scenario import Scenario
from ..test_event_streams import play


class Operations(Stream):
    """What operations draw besides."""

    def draw_name(self, names: Dict[str, str]) -> str:
        """An OSD or a host."""
        is_osd = self.rng.random() < 0.7
        if is_osd:
            return self.draw_osd(names)
        return self.draw_host(names)

    def draw_drained(self, names: Dict[str, str]) -> str:
        added = [line.rpartition(" ")[2] for line in self.heals if " drain rm " in line]
        return self.rng.choice(added or ["0"])

    def draw_undo(self, names: Dict[str, str]) -> str:
        line = "try equilibrium " + self.rng.choice(
            ("undo", "undo --since 2h", "undo --since 1d", "cancel"))
        if self.rng.random() < 0.3:
            return f"{line} --dry-run; {line}"
        return line

    def draw_or_again(self, names: Dict[str, str]) -> str:
        if self.rng.random() < 0.5:
            return ""
        return "; " + self.draw_undo(names)


#: With `drain and stop` the disk is replaced while the drain is listed.
_OPERATIONS = random_events.kinds("""
3 drain add: try equilibrium drain add {name} ~ try equilibrium drain rm {name}
2 drain rm: try equilibrium drain rm {drained}; try equilibrium drain ls
2 drain while off: try equilibrium off; try equilibrium drain add {name}
  ~ try equilibrium drain rm {name}
1 drain and stop: try equilibrium drain add {osd}; sim osd down {osd}; try equilibrium drain ls;
  sim osd up {osd} ~ try equilibrium drain rm {osd}; sim osd up {osd}; sim osd in {osd}
1 off and on: try equilibrium off; try equilibrium drain ls; try equilibrium on
1 undo: {undo}
2 undo while off: try equilibrium off; {undo}
2 undo and drain: try equilibrium off; {undo}; try equilibrium drain add {name}{or_again}
  ~ try equilibrium drain rm {name}
2 execute and drain: try equilibrium off; try equilibrium optimize plan{n};
  try equilibrium execute plan{n}; try equilibrium drain add {name}
  ~ try equilibrium drain rm {name}
1 option while undoing: try equilibrium off; {undo}; {option}active true
1 active: {option}active [true|false]
2 freeze: try equilibrium freeze
1 freeze after expansion: sim flag set norebalance; sim host add more{n} 2 512G{under};
  try equilibrium freeze; sim flag unset norebalance ~ sim flag unset norebalance
""")
#: Of two events one is an operation.
KINDS = (*random_events.KINDS, *_OPERATIONS, *_OPERATIONS)


def scenario(seed: int) -> Scenario:
    """The stream of a seed, with its healing, as a scenario."""
    # off, so that no undo is under way any more when automatic balancing is to begin again
    return random_events.stream_of("operation", seed, KINDS, "try equilibrium off",
                                   cluster=clusters.WITH_EMPTY_PGS, made=Operations)


def test_operation_stream(operation_seed: int, tmp_path: Path) -> None:
    play(scenario(operation_seed), tmp_path)
