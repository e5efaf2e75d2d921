"""How a command answers: data for machines, text for people, one sentence for errors."""
from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple, Tuple

FORMATS = ("plain", "json", "json-pretty")

CommandResult = Tuple[int, str, str]


class CommandAnswer(NamedTuple):
    """What a command has to say; `data` must be JSON-ready."""

    data: Any
    plain: str
    note: str = ""    # goes to stderr beside a success


class CommandError(Exception):
    """A command that cannot be carried out: a negative errno and one sentence."""

    def __init__(self, errno_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = -abs(errno_code)
        self.sentence = sentence


def render(answer: CommandAnswer, output_format: str) -> str:
    if output_format == "json":
        return json.dumps(answer.data, sort_keys=True) + "\n"
    if output_format == "json-pretty":
        return json.dumps(answer.data, sort_keys=True, indent=4) + "\n"
    return answer.plain + "\n" if answer.plain else ""


def run_command(command: Callable[[], CommandAnswer], output_format: str,
              unexpected: Callable[[], None], bad_format_errno: int) -> CommandResult:
    """Runs a command's body. `unexpected` logs an exception that nobody foresaw."""
    if output_format not in FORMATS:
        return (-bad_format_errno, "", "format '%s' is not supported; use one of %s"
                % (output_format, ", ".join(FORMATS)))
    try:
        answer = command()
        return 0, render(answer, output_format), answer.note
    except CommandError as refusal:
        return refusal.errno, "", " ".join(refusal.sentence.split())
    except Exception as error:
        unexpected()
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return (-bad_format_errno, "",
                f"equilibrium failed to answer ({said}); the mgr log has more")
