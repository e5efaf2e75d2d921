"""Answers and errors of commands in Ceph's form."""

from __future__ import annotations

import errno
from typing import Tuple

#: Answer of a command: return code (0 or a negative errno), stdout, stderr.
Answer = Tuple[int, str, str]


class StubError(Exception):
    """An error with Ceph's negative errno `code` (e.g. -22) and one sentence for the operator."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = -abs(code)
        self.message = message


def invalid(message: str) -> StubError:
    """Returns a StubError (EINVAL) with the sentence."""
    return StubError(errno.EINVAL, message)


def error_name(code: int) -> str:
    """Returns the name of a (negative or positive) errno in the `ceph` command's form, e.g.
    `ENOENT`.
    """
    return errno.errorcode.get(abs(code), str(abs(code)))
