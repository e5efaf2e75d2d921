"""The states of PGs have one home: a new one is a row of its table."""
import ast
from pathlib import Path

import equilibrium_mgr
from equilibrium_mgr.snapshot import pg_states

#: These words are also names of options, of OSD states and of reason codes.
_OTHER_WORDS = {"active", "degraded", "down", "repair", "unknown"}


def test_no_other_file_names_a_pg_state():
    root = Path(equilibrium_mgr.__file__).parent
    names = {*pg_states.STATES, *pg_states.ACTIVITIES, *pg_states.WHOLE} - _OTHER_WORDS
    found = [f"{path.relative_to(root)}:{node.lineno}: {node.value}"
             for path in sorted(root.rglob("*.py")) if path.name != "pg_states.py"
             for node in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(node, ast.Constant) and node.value in names]
    assert not found


def test_a_state_that_stops_for_ever_is_shown_before_one_that_moves():
    shown = pg_states.SHOWN.index
    assert shown("backfill_toofull") < shown("backfilling") < shown("backfill_wait")
    assert not pg_states.COPIED & pg_states.STUCK
