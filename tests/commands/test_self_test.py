"""`self_test` fails where the mgr's answers are not what is read of them, and changes nothing."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from tests.support.few import few

ASKED = ["pg_progress", "pg_stats", "pg_status", "pool_stats", "osd_stats", "df", "osd_map_tree",
         "osd_map_crush", "health"]


def odd_rows(answer: Dict[str, Any]) -> Dict[str, Any]:
    return {**dict.fromkeys(answer, [{}]), "json": None}


#: Of an answer, given as a dict.
CHANGES: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "none": lambda answer: None, "empty": lambda answer: {}, "odd rows": odd_rows}


def garbled(session: Session, monkeypatch: pytest.MonkeyPatch, name: str,
            change: Callable[[Dict[str, Any]], Any]) -> List[str]:
    """Has one answer of the mgr changed; the names that are asked for from now on."""
    asked, get = [], session.module.get

    def changed(wanted: str) -> Any:
        asked.append(wanted)
        return change(dict(get(wanted))) if wanted == name else get(wanted)
    monkeypatch.setattr(session.module, "get", changed)
    return asked


@pytest.mark.parametrize("release", few([16, 18, 20], 1))
def test_it_says_what_it_has_read_and_changes_nothing(
        release: int, open_session: Callable[..., Session],
        monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(release)
    session.command("sim flag set noout")
    asked, epoch = garbled(session, monkeypatch, "", dict), session.cluster.map.epoch
    keys, reading = dict(session.simulation.store.keys), session.module.gateway.last_reading
    assert session.module.self_test() == (
        f"read 24 OSDs (hdd, ssd) and 273 PGs of 6 pools at epoch {epoch}, "
        "flags: noout")
    assert (session.simulation.store.keys, session.cluster.map.epoch) == (keys, epoch)
    assert session.module.gateway.last_reading is reading, "the loop's own gateway was used"
    assert set(asked) == set(ASKED)
    assert asked.count("pg_stats") == 1   # it holds up the mgr


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ASKED)
def test_an_answer_without_what_is_read_is_named(
        name: str, change: str, open_session: Callable[..., Session],
        monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session()
    garbled(session, monkeypatch, name, CHANGES[change])
    with pytest.raises(RuntimeError, match=f"get\\('{name}'\\) of the mgr has no '"):
        session.module.self_test()


def test_what_a_new_mgr_does_not_know_yet_is_no_failure(
        open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session()
    garbled(session, monkeypatch, "pg_progress", lambda answer: {**answer, "pg_ready": False})
    assert session.module.self_test().startswith("no snapshot yet: ")


def test_what_cannot_be_read_of_options_and_commands_is_named(
        open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session()
    session.command("config set mgr mgr/equilibrium/pool_ids none")
    monkeypatch.setattr(type(session.module), "_cmd_lost", None, raising=False)
    with pytest.raises(RuntimeError, match="no command leads to _cmd_lost; pool_ids is 'none'"):
        session.module.self_test()
