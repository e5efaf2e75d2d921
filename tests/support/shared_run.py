"""Two pytest processes that share one run: one begins with the first test, the other with the last.

Both collect the same tests. Each claims what it runs by making a file in a common folder, and ends
where the other has been, so that no durations have to be recorded to divide the work.
"""
from __future__ import annotations

import hashlib
import os
from itertools import groupby
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Tuple

import pytest

#: Tests that have to be in one process: the last of them judge what the others have collected.
_TOGETHER = "tests/properties/"


class SharedRun:
    """The plugin of one of the two processes."""

    def __init__(self, folder: str, is_backwards: bool) -> None:
        self._folder = Path(folder)
        self._is_backwards = is_backwards

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: List[pytest.Item]) -> None:
        # the only unit that takes long begins first, so that nobody waits for it in the end
        items.sort(key=lambda item: not item.nodeid.startswith(_TOGETHER))
        self._compare([item.nodeid for item in items])

    def _compare(self, nodeids: Sequence[str]) -> None:
        """Raises UsageError where the other process has collected other tests.

        A claim is a number: it has to name the same test in both.
        """
        own = hashlib.sha256("\n".join(nodeids).encode()).hexdigest()
        written = self._folder / f"collected-{os.getpid()}"
        written.write_text(own)
        try:
            os.link(written, self._folder / "collected")
        except FileExistsError:
            if (self._folder / "collected").read_text() != own:
                raise pytest.UsageError("the two processes collect different tests") from None

    def pytest_runtestloop(self, session: pytest.Session) -> Any:
        if session.config.option.collectonly or session.testsfailed:
            return None   # pytest's own loop lists, or ends with the errors of the collection
        for item, following in _pairs(self._claimed(session.items)):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Leaves the closing line for tests/run."""
        parts, _ = terminalreporter.build_summary_stats_line()
        closing = self._folder / ("second" if self._is_backwards else "first")
        closing.write_text(", ".join(text for text, _ in parts) + "\n")

    def _claimed(self, items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
        units = list(enumerate(_units(items)))
        for number, unit in reversed(units) if self._is_backwards else units:
            try:
                (self._folder / str(number)).touch(exist_ok=False)
            except FileExistsError:   # from here on the other process has been
                return
            yield from unit


def _units(items: Sequence[pytest.Item]) -> List[List[pytest.Item]]:
    """What one process runs as a whole, in order."""
    return [list(unit) for _, unit in groupby(items, _unit_of)]


def _unit_of(item: pytest.Item) -> str:
    return _TOGETHER if item.nodeid.startswith(_TOGETHER) else item.nodeid


def _pairs(items: Iterator[pytest.Item]) -> Iterator[Tuple[pytest.Item, Any]]:
    """Each item with the one after it, None after the last."""
    for item in items:
        for following in items:
            yield item, following
            item = following
        yield item, None
