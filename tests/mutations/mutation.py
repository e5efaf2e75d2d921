"""What a mutation is: it removes one rule of safety. What it replaces stands exactly once.

A rule that is enforced in two independent places is removed from both, and is called `…-anywhere`:
one of the places alone keeps what is sent right.

The files of `rules/` list all mutations, by what the rules that they remove are about. Each gives
its name, the rule in a few words, what is likely to notice (see `runs`), and changes as a diff.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple


class Edit(NamedTuple):
    """One place."""

    file: str
    old: str
    new: str


class Mutation(NamedTuple):
    """One rule removed."""

    name: str
    rule: str     # of safety, in a few words
    likely: str   # arguments of pytest for the first runs, see `runs`
    edits: Tuple[Edit, ...]


def read_mutations(folder: Path) -> List[Mutation]:
    """Returns the mutations that the files of a folder describe."""
    found: List[Mutation] = []
    for path in sorted(folder.glob("*.txt")):
        _title, *texts = path.read_text().split("\n\nmutation ")
        found += map(_mutation, texts)
    return found


def _mutation(text: str) -> Mutation:
    head, *places = text.split("\nin ")
    parts = re.fullmatch(r"(\S+)\nrule (.+)\nnoticed by (.+)", head)
    assert parts, head
    name, rule, likely = parts.groups()
    return Mutation(name, rule, likely, tuple(map(_edit, places)))


def _edit(place: str) -> Edit:
    file, *lines = place.splitlines()
    return Edit(file, _side(lines, "-"), _side(lines, "+"))


def _side(lines: Sequence[str], sign: str) -> str:
    """Returns one side of a diff: the lines of its sign and those that both sides have."""
    return "".join(line[1:] + "\n" for line in lines if line.startswith((sign, " ")))


def runs(mutation: Mutation) -> List[List[str]]:
    """Returns the arguments of pytest for each run that is likely to notice."""
    return [[_told(word) for word in run.split()] for run in mutation.likely.split("; ")]


def _told(word: str) -> str:
    """`scenario:` and its name, a path below tests/, or an argument of pytest's."""
    if word.startswith(_SCENARIO):
        return _FILE % word[len(_SCENARIO):]
    is_path = "/" in word and not word.startswith("-")
    return "tests/" + word if is_path else word


_SCENARIO = "scenario:"
_FILE = "tests/scenarios/test_scenarios.py::test_scenario[%s]"
MUTATIONS = read_mutations(Path(__file__).parent / "rules")
