"""Calls of the mgr that fail: monitors that do not answer, a store that raises, odd figures.

Whatever fails, a command waits for nobody and answers at once. Its answer is one sentence and a
negative errno, or is right. What was answered with an error has changed nothing.
"""
from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List

import pytest

from mgr_stub.console.session import Session
from mgr_stub.mgr.mgr import Mgr
from tests.support.few import few

from .asking import ask, by, count_commands, optimize, run

#: A line of each command that reads.
READING = (
    "status; status --brief; eval; eval p; eval vms; df; osds; moves; show p; dump p; ls; "
    "pool ls; explain; explain osd.3; explain 2.1; history; metrics; report; drain ls; "
    "dump-state; freeze --dry-run; undo --dry-run; cancel --dry-run").split("; ")
#: Lines that change something, in an order in which each can.
CHANGING = (
    "pool add vms; execute p; rm p; drain add 3; drain rm 3; on; freeze; off; undo; cancel; "
    "reset").split("; ")
#: Lines that lack a name, or a value.
NAMING = (
    "eval; df; show; dump; osds; moves; explain; explain 2.1; execute; rm; optimize p; optimize; "
    "optimize p --to; pool add; pool rm; drain add; drain rm; undo; undo --since; cancel; "
    "eval --fail; eval --add; eval --remove; eval --resize; eval --pg-num; status --format; "
    "osds --sort; optimize p --aim; optimize p --max-bytes; optimize p --device-class").split("; ")


def _answer(session: Session, line: str) -> str:
    """What a command says, which takes no time and is no traceback."""
    began = session.clock.now
    rc, out, err = session.dispatch(["equilibrium", *line.split()])
    assert session.clock.now == began, f"'{line}' waits {session.clock.now - began:.0f} s"
    assert rc <= 0, (line, rc)
    if rc == 0:
        assert out, line
        assert not err, (line, err)
        return out
    assert not out, (line, out)
    assert err.strip(), line
    assert "\n" not in err, (line, err)
    assert "Traceback" not in err, (line, err)
    return err


def test_no_command_waits_for_an_answer_of_a_monitor(session: Session, mocker: Any) -> None:
    optimize(session)

    def silent(mgr: Mgr, result: Any, svc_type: str, command: Dict[str, Any]) -> bool:
        result.ev.before_wait = lambda timeout: mgr._wait(result, timeout)
        return True
    mocker.patch.object(Mgr, "_answer_query", silent)
    for number, line in enumerate(READING + CHANGING):
        # an epoch of which none is known
        run(session, f"sim osd primary-affinity 0 0.{number:02}")
        _answer(session, line)


def _rows(key: str, change: Callable[[Dict[str, Any]], Dict[str, Any]]) -> Callable[[Any], Any]:
    """Changes each third row of an answer of the mgr."""
    def spoil(answer: Any) -> Any:
        rows = answer[key]
        return {**answer, key: [
            change(row) if number % 3 == 1 else row for number, row in enumerate(rows)]}
    return spoil


def _negative(row: Dict[str, Any]) -> Dict[str, Any]:
    return {**row, "stat_sum": dict.fromkeys(row["stat_sum"], -1)}


#: What the mgr is asked for, and what it answers instead.
ODD: Dict[str, List[Callable[[Any], Any]]] = {
    "osd_stats": [
        _rows("osd_stats", lambda row: {**row, "statfs": None}),
        _rows("osd_stats", lambda row: {**row, "statfs": {"total": -5, "available": 7}}),
        _rows("osd_stats", lambda row: {"osd": row["osd"]})],
    "health": [lambda _, text=text: {"json": text} for text in (   # type: ignore[misc]
        "", "null", "{", "[]", '{"checks": null}', '{"checks": {"OSD_FULL": null}}',
        '{"checks": {"OSD_FULL": {"summary": {"count": "two"}}}}')],
    "pool_stats": [_rows("pool_stats", _negative),
                   _rows("pool_stats", lambda row: {"poolid": row["poolid"]})],
    "df": [_rows("pools", lambda row: {**row, "stats": {}})]}


def _hold_answer(session: Session, line: str) -> None:
    """Neither the round before fails, nor the command."""
    run(session, "sim run 20s")
    assert not session.module._failure, (line, session.module._failure)
    said = _answer(session, line)
    assert "failed to answer" not in said, (line, said)


@pytest.mark.parametrize("name", ODD)
def test_an_odd_figure_fails_no_round_and_no_command(session: Session, mocker: Any,
                                                     name: str) -> None:
    get, spoil = Mgr.get, [lambda answer: answer]
    mocker.patch.object(Mgr, "get", lambda mgr, asked: spoil[0](copy.deepcopy(
        get(mgr, asked))) if asked == name else get(mgr, asked))
    run(session, "config set mgr mgr/equilibrium/max_misplaced_ratio 0.01", "equilibrium on",
        "sim run 3m")
    copies = session.module.balancer.status.view.snapshot.object_copies
    for odd in ODD[name]:
        spoil[0] = odd
        for line in READING:
            _hold_answer(session, line)
        assert abs(session.module.balancer.status.view.snapshot.object_copies - copies) < (
            0.01 * copies)
        unknown = [row["id"] for row in ask(session, "osds")["osds"]
                   if "no statistics" in row["status"]]
        assert bool(unknown) == (name == "osd_stats")


@pytest.mark.parametrize("name", few(["osd_map_tree", "osd_stats", "pg_status", "df",
                                      "pool_stats", "pg_progress", "pg_stats", "osd_map_crush",
                                      "health"], 4))
def test_what_the_mgr_does_not_have_is_said_in_one_sentence(session: Session, mocker: Any,
                                                            name: str) -> None:
    run(session, "equilibrium on", "sim run 3m")
    get = Mgr.get
    mocker.patch.object(Mgr, "get", lambda mgr, asked: (
        None if asked == name else get(mgr, asked)))
    for line in READING + CHANGING:
        _hold_answer(session, line)


def _known(session: Session) -> List[Any]:
    """What commands have asked for: drained OSDs, the plan that is executed, kept plans."""
    drained = list(by("osd", ask(session, "drain ls")["osds"]))
    plans = list(by("plan", ask(session, "ls")["plans"]))
    return [drained, session.module.balancer.plan_name, plans]


def _fails(session: Session, mocker: Any, name: str, is_failing: Callable[[], bool]) -> None:
    """A call of the store raises while `is_failing`."""
    base = next(base for base in type(session.module).__mro__ if name in vars(base))
    call = getattr(base, name)

    def flaky(module: Any, *arguments: Any) -> Any:
        if is_failing():
            raise RuntimeError(f"{name}: -110")
        return call(module, *arguments)
    mocker.patch.object(base, name, flaky)


@pytest.mark.parametrize("line", ["drain add 3", "drain rm 5", "execute p", "freeze", "undo"])
def test_what_the_store_did_not_take_is_not_done(session: Session, mocker: Any, line: str) -> None:
    run(session, "config set mgr mgr/equilibrium/max_moves_per_round 4", "sim backfill rate 20M",
        "equilibrium drain add 5", "sim run 3m", "sim osd crush-reweight 16 3", "sim run 1m")
    optimize(session)
    failing, before = [True], _known(session)
    _fails(session, mocker, "set_store", lambda: failing[0])
    sent = count_commands(session)
    rc, _, err = session.dispatch(["equilibrium", *line.split()])
    assert rc < 0, (rc, err)
    assert "\n" not in err, (rc, err)
    assert _known(session) == before, (rc, err)
    run(session, "sim run 5m")
    assert not [prefix for prefix in sent if "upmap" in prefix]
    failing[0] = False
    run(session, "sim run 10m")
    assert _known(session) == before
    assert not session.module._failure
    run(session, "sim mgr fail", "sim run 1m")
    assert _known(session) == before


def test_a_plan_that_was_removed_stays_so(session: Session, mocker: Any) -> None:
    optimize(session)
    failing = [True]
    _fails(session, mocker, "set_store", lambda: failing[0])
    run(session, "equilibrium rm p", "sim run 3m")
    failing[0] = False
    run(session, "sim run 20m", "sim mgr fail", "sim run 1m")
    assert _known(session) == [[], None, []]


@pytest.mark.parametrize("name, most", [("get_store", 8), ("get_store_prefix", 3)])
def test_a_read_that_fails_at_the_takeover_forgets_nothing(session: Session, mocker: Any,
                                                           name: str, most: int) -> None:
    optimize(session)
    run(session, "sim backfill rate 1M", "equilibrium drain add 5", "equilibrium execute p",
        "sim run 3m")
    before, left = _known(session), [0]

    def is_failing() -> bool:
        left[0] -= 1
        return left[0] == 0
    _fails(session, mocker, name, is_failing)
    for number in range(1, most):
        left[0] = number
        run(session, "sim mgr fail", "sim run 3m")
        assert left[0] <= 0, number
        assert _known(session) == before, number


def test_names_and_empty_lines_reach_no_terminal_as_they_are(
        open_session: Callable[..., Session], demo_state: Dict[str, Any]) -> None:
    """Ceph drops empty lines of an answer, and takes any character in the name of a pool."""
    by("pool_name", demo_state["osd_dump"]["pools"])["vms"]["pool_name"] = "v\x1b[2J\x9b\rms"
    session = open_session(18, demo_state)
    optimize(session)
    endless = "\x1bx" * 32_000
    lines = [line.split() for line in READING + CHANGING]
    lines += [[*line.split(), endless] for line in NAMING]
    for words in lines:
        _, out, err = session.dispatch(["equilibrium", *words])
        odd = [one for one in out + err if not (one.isprintable() or one == "\n")]
        line = words[:3]
        assert not odd, (line, odd)
        assert "\n\n" not in out, line
        assert len(err) < 4000, line
        assert len(out) < 10 ** 6, line
