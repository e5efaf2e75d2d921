"""The states of PGs have one home: a new one is a row of its table."""
import ast
from pathlib import Path

from equilibrium_mgr.snapshot import pg_states

#: These words are also names of options, of OSD states and of reason codes.
_OTHER_WORDS = {"active", "degraded", "down", "repair", "unknown"}


def test_no_other_file_names_a_pg_state() -> None:
    names = {*pg_states.STATES, *pg_states.ACTIVITIES, *pg_states.WHOLE} - _OTHER_WORDS
    home = Path(pg_states.__file__)
    for path in home.parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and path != home:
                assert node.value not in names, (path, node.lineno)


def test_a_state_that_stops_for_ever_is_shown_before_one_that_moves() -> None:
    shown = pg_states.SHOWN.index
    assert shown("backfill_toofull") < shown("backfilling") < shown("backfill_wait")
    assert not pg_states.COPIED & pg_states.STUCK
