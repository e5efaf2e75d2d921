"""Scenario files: a cluster, what happens to it and when, and what is expected of it.

    # What the scenario is about, in a sentence.
    cluster small seed=3              a cluster of tests/scenarios/clusters.py
    option max_misplaced_ratio 0.05   options of the module, set before it is switched on
    at 0 equilibrium on               any command line of the simulation at a moment of virtual time
    at 2h sim osd out 3
    at 3h try equilibrium execute p   what may be refused
    run 3d                            how long it goes on
    must ends stuck                   what a line of the outcome has to match, from its beginning
    must status: .*predicted          the same of what `status` says at the end
    pending T2                        a rule of truth, or A1, that the module breaks here today
    release 16                        Ceph's, 18 unless told otherwise
    full                              takes long, or another shows the same: only with `--full`
    ---
    hdd: highest 0.870 -> 0.652 …     the outcome, line by line (tests/scenarios/drive.py)

With `--rewrite-scenarios` pytest writes the outcome it sees below the dashes (`--full` for all
files): the diff is the review. A file without dashes records nothing: it is there for a rule that
must hold, whatever the figures are.
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from mgr_stub.clock import parse_span

FOLDER = Path(__file__).resolve().parent / "files"
_KEYS = ("cluster", "option", "at", "run", "must", "pending", "release", "full")
_DASHES = "---"
#: Ahead of a command that may be refused.
TRY = "try"


class Event(NamedTuple):
    """A command line at a moment, in virtual seconds from the start."""

    at: float
    line: str


class Scenario(NamedTuple):
    """One file, read."""

    name: str
    description: str
    cluster: str
    seed: int
    options: Tuple[Tuple[str, str], ...]
    events: Tuple[Event, ...]
    seconds: float
    expected: Tuple[str, ...]
    musts: Tuple[str, ...] = ()   # regular expressions
    is_recorded: bool = True      # are there expectations at all?
    pending: Tuple[str, ...] = ()   # rules of truth
    release: int = 18
    is_full: bool = False   # only in a full run

    def missed(self, lines: Sequence[str]) -> List[str]:
        """What has to be in an outcome and is not."""
        return [must for must in self.musts if not any(re.match(must, line) for line in lines)]


def read(path: Path) -> Scenario:
    """Reads a scenario file. Raises ValueError for a line that it does not know."""
    head, dashes, tail = path.read_text().partition(_DASHES + "\n")
    description: List[str] = []
    words_of: Dict[str, List[str]] = {key: [] for key in _KEYS}
    for line in head.splitlines():
        if line.startswith("#"):
            description.append(line[1:].strip())
        elif line.strip():
            key, _, rest = line.partition(" ")
            if key not in words_of:
                raise ValueError(f"{path.name}: what does '{line}' mean?")
            words_of[key].append(rest.strip())
    cluster, _, seed = words_of["cluster"][0].partition(" seed=")
    return Scenario(
        name=path.stem, description=" ".join(description), cluster=cluster, seed=int(seed or 1),
        options=tuple(_pair(option) for option in words_of["option"]),
        events=tuple(sorted((_event(text) for text in words_of["at"]), key=lambda e: e.at)),
        seconds=parse_span(words_of["run"][0]),
        expected=tuple(line for line in tail.splitlines() if line.strip()),
        musts=tuple(words_of["must"]), is_recorded=bool(dashes),
        pending=tuple(words_of["pending"]),
        release=int((words_of["release"] or ["18"])[0]), is_full=bool(words_of["full"]))


def text_of(scenario: Scenario) -> str:
    """The scenario as a file without an outcome."""
    lines = ["# " + scenario.description,
             f"cluster {scenario.cluster} seed={scenario.seed}"]
    lines += [f"option {name} {value}" for name, value in scenario.options]
    lines += [f"at {f'{int(event.at)}s' if event.at else '0'} {event.line}"
              for event in scenario.events]
    return "\n".join(lines + [f"run {int(scenario.seconds)}s", _DASHES, ""])


def rewrite(path: Path, outcome: List[str]) -> None:
    """Writes what was seen in place of what was expected."""
    head, _, _ = path.read_text().partition(_DASHES + "\n")
    path.write_text(head + _DASHES + "\n" + "".join(line + "\n" for line in outcome))


def all_files() -> List[Path]:
    return sorted(FOLDER.glob("*.txt"))


def _pair(text: str) -> Tuple[str, str]:
    name, _, value = text.partition(" ")
    return name, value.strip()


def _event(text: str) -> Event:
    moment, _, line = text.partition(" ")
    return Event(0.0 if moment == "0" else parse_span(moment), line.strip())
