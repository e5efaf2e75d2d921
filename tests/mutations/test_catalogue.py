"""The catalogue of mutations fits the code as it is; the mutations themselves are run by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from .catalogue import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.name for m in MUTATIONS])
def test_what_a_mutation_replaces_stands_there_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text()
    assert text.count(mutation.old) == 1
    compile(text.replace(mutation.old, mutation.new), mutation.file, "exec")


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
