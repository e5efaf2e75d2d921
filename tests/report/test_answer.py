"""How commands answer: return code, output, one sentence."""
from __future__ import annotations

import errno
import json
import logging
from typing import Callable, List

import pytest

from equilibrium_mgr.report.answer import CommandAnswer, CommandError, CommandResult, run_command


def run(command: Callable[[], CommandAnswer], output_format: str = "plain") -> CommandResult:
    return run_command(command, output_format, logging.getLogger("test"))


def hello() -> CommandAnswer:
    return CommandAnswer({"b": [1], "a": None}, "hello")


def test_plain_and_json() -> None:
    assert run(hello) == (0, "hello\n", "")
    code, out, said = run(hello, "json")
    assert (code, said, json.loads(out)) == (0, "", {"a": None, "b": [1]})
    assert out.count("\n") == 1
    assert out.index('"a"') < out.index('"b"')
    pretty = run(hello, "json-pretty")[1]
    assert json.loads(pretty) == {"a": None, "b": [1]}
    assert pretty.count("\n") > 3


@pytest.mark.parametrize("output_format", ["xml", "", "JSON", "json "])
def test_unknown_format_runs_nothing(output_format: str) -> None:
    ran: List[int] = []

    def command() -> CommandAnswer:
        ran.append(1)
        return hello()
    code, out, said = run(command, output_format)
    assert code == -errno.EINVAL
    assert out == ""
    assert ran == []
    assert "json-pretty" in said
    assert "\n" not in said


@pytest.mark.parametrize("number", [errno.ENOENT, -errno.ENOENT])
def test_refusal_is_a_negative_errno_and_a_sentence(number: int) -> None:
    def refuse() -> CommandAnswer:
        raise CommandError(number, "no plan is named 'x'")
    assert run(refuse) == (-errno.ENOENT, "", "no plan is named 'x'")


@pytest.mark.parametrize("error", [KeyError("pools"), RuntimeError("bad\nthing"), ValueError(),
                                   ZeroDivisionError("division by zero")])
@pytest.mark.parametrize("output_format", ["plain", "json"])
def test_unexpected_exception_is_one_sentence(error: Exception, output_format: str,
                                              caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> CommandAnswer:
        raise error
    code, out, said = run(fail, output_format)
    assert code < 0
    assert out == ""
    assert [record.message for record in caplog.records] == ["a command failed"]
    assert type(error).__name__ in said
    assert "Traceback" not in said
    assert "\n" not in said
