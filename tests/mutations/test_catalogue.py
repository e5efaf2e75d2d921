"""The catalogue of mutations fits the code as it is; the mutations themselves are run by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

import pytest

from .mutation import MUTATIONS, Mutation, runs

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests/scenarios/files"
EACH = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)


@EACH
def test_what_a_mutation_replaces_stands_there_once(mutation: Mutation) -> None:
    texts: Dict[str, str] = {}
    for edit in mutation.edits:
        text = texts.get(edit.file, (ROOT / edit.file).read_text())
        assert text.count(edit.old) == 1
        texts[edit.file] = text.replace(edit.old, edit.new)
        compile(texts[edit.file], edit.file, "exec")


@EACH
def test_what_is_likely_to_notice_is_there(mutation: Mutation) -> None:
    for run in runs(mutation):
        for told in run:
            path, _, name = told.partition("::")
            assert "/" not in path or (ROOT / path).exists()
            if "test_scenario[" in name:
                scenario = name[len("test_scenario["):-1]
                assert (FILES / f"{scenario}.txt").exists()


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
