"""The answer of a command: data for programs, text for operators, one sentence for errors."""
from __future__ import annotations

import errno
import json
import logging
from typing import Any, Callable, NamedTuple, Tuple

from ..gateway.gateway import NotReady

FORMATS = ("plain", "json", "json-pretty")

CommandResult = Tuple[int, str, str]


class CommandAnswer(NamedTuple):
    """The answer of a command that succeeded; `data` is JSON-ready."""

    data: Any
    plain: str
    note: str = ""    # for stderr, although the command succeeded


class CommandError(Exception):
    """Raised where a command cannot be carried out, with an errno and one sentence."""

    def __init__(self, errno_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = -abs(errno_code)
        self.sentence = sentence


def run_command(command: Callable[[], CommandAnswer], output_format: str,
                log: logging.Logger) -> CommandResult:
    """Runs a command; returns (0 or a negative errno, output, one sentence for stderr)."""
    if output_format not in FORMATS:
        return (-errno.EINVAL, "", f"format '{output_format}' is not supported; use one of"
                f" {', '.join(FORMATS)}")
    try:
        answer = command()
        text = answer.plain if output_format == "plain" else json.dumps(
            answer.data, sort_keys=True, indent=4 if output_format == "json-pretty" else None)
        return 0, text + "\n" if text else "", answer.note
    except CommandError as error:
        return error.errno, "", " ".join(error.sentence.split())
    except NotReady as not_ready:
        return -errno.EAGAIN, "", " ".join(f"{not_ready}; try again".split())
    except Exception as error:
        log.exception("a command failed")
        found = " ".join(f"{type(error).__name__}: {error}".split())
        return (-errno.EINVAL, "",
                f"equilibrium failed to answer ({found}); the mgr log has more")
