"""Makes the cluster of the screens, asks for them, and compares them with what is recorded."""
from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

import pytest

from mgr_stub.console.session import Session
from mgr_stub.demo import DEMO_STATE
from mgr_stub.state.state_file import read_state
from tests.support.remembered_plans import remembered

from equilibrium_mgr.version import VERSION

from .screens import STATES, WITH_FAILURES, Screen

GOLDEN = Path(__file__).parent / "golden"
POOL = "vm-images-production"   # 20 characters
_HOST = "ceph-node-0"           # and one digit: 12 characters
_KEYS = "-- keys of the JSON --"


def session_in(state: str, folder: Path, patch: pytest.MonkeyPatch) -> Session:
    """The demo cluster with long names, plan p made, in the state."""
    service = importlib.import_module("equilibrium_mgr.plan_service.plan_service")
    patch.setattr(service, "make_plan", remembered(service.make_plan))
    text = re.sub(r'"host(\d)', rf'"{_HOST}\1', json.dumps(read_state(DEMO_STATE)))
    file = folder / "state.json"
    file.write_text(text.replace('"vms"', f'"{POOL}"'))
    session = Session.from_state(str(file), release=18)
    for line in ["sim run 1s", "equilibrium status", "sim run 1s", "equilibrium optimize p"]:
        _run(session, line)
    if state == "planning":
        _hold_jobs(session)
    for line in STATES[state]:
        _run(session, line.format(host=_HOST))
    if state not in WITH_FAILURES:
        _hold_jobs(session)
    return session


def _hold_jobs(session: Session) -> None:
    session.host.jobs.run_pending = lambda: 0   # type: ignore[method-assign]


def _run(session: Session, line: str) -> None:
    rc, _, err = session.command(line)
    assert rc == 0, (line, rc, err)


def text_of(session: Session, screen: Screen) -> str:
    """The answer in plain, and the paths of the keys of the one in JSON."""
    line = f"equilibrium {screen.line.format(pool=POOL, host=_HOST)}"
    rc, out, err = session.command(line)
    text = plain_text(out) + (f"rc {rc}: {err}\n" if rc or err else "")
    if not screen.has_json:
        return text
    _, answer, _ = session.command(line + " --format json")
    paths = sorted(set(_paths(json.loads(answer)))) if answer else []
    return "\n".join([text.rstrip("\n"), _KEYS, *paths]) + "\n"


def plain_text(out: str) -> str:
    """A page without its style; editors take the space of an empty line away."""
    begin = max(0, out.find("<main>"))
    return out[begin:].replace(VERSION, "VERSION").replace("\n \n", "\n\n")


def plain_lines(text: str) -> List[str]:
    """The lines of a recorded screen without the keys."""
    return text.partition(f"{_KEYS}\n")[0].split("\n")


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """'pools[].name' for every key; PGs and OSDs as keys stand for each other."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "PG" if re.fullmatch(r"\d+\.[0-9a-f]+", key) else key
            yield f"{path}.{name}" if path else name
            yield from _paths(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]")


def differences(found: Dict[str, str], state: str) -> List[str]:
    """Names of the screens of a state that are not as recorded."""
    return [name for name, text in found.items() if recorded(state, name) != text]


def recorded(state: str, name: str) -> str:
    """A screen as it is recorded; nothing for one that is not."""
    file = GOLDEN / state / f"{name}.txt"
    return file.read_text() if file.is_file() else ""


def record(found: Dict[str, str], state: str) -> None:
    """Writes the screens of a state in place of those recorded."""
    folder = GOLDEN / state
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.txt"):
        file.unlink()
    for name, text in found.items():
        (folder / f"{name}.txt").write_text(text)


def recorded_names(state: str) -> Set[str]:
    """Names of the screens that are recorded in a state."""
    return {file.stem for file in (GOLDEN / state).glob("*.txt")}
