"""Options that `ceph config rm` took away, of which a running mgr never hears.

Seen on Ceph 16.2.15 and 20.2.4: the monitor tells an mgr the options that are set, and the mgr goes
on with what it was once told of one that is not among them. It calls `config_notify`, though: that
is when the monitor is asked.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Optional, Sequence


class RemovedOptions:
    """What holds of the options now. `mgr_value` is the mgr's `get_module_option`.

    `ask` tells which options are set; None where that cannot be learned now. Any thread may read;
    `refresh` belongs to the serve thread.
    """

    def __init__(self, mgr_value: Callable[[str], Any],
                 ask: Callable[[], Optional[FrozenSet[str]]],
                 options: Sequence[Dict[str, Any]]) -> None:
        self._mgr_value = mgr_value
        self._options_set = ask
        self._defaults = {option["name"]: option["default"] for option in options}
        self._removed: Dict[str, Any] = {}   # name → the value of before; replaced, never edited
        self._is_check_due = False

    def value(self, name: str) -> Any:
        """None for an option that is at its default, or was removed and has not been set since."""
        value, removed = self._mgr_value(name), self._removed
        # by its text: nan is not equal to itself
        return None if name in removed and str(removed[name]) == str(value) else value

    def request_check(self) -> None:
        """Some option may have been removed."""
        self._is_check_due = True

    def check_if_due(self) -> bool:
        """Asks the monitor if there is cause to; True where that has changed what holds."""
        if not self._is_check_due:
            return False
        self._is_check_due = False
        # read before the monitor is asked: what is set meanwhile is not taken for removed
        held = {name: self._mgr_value(name) for name in self._defaults}
        changed = {name: value for name, value in held.items()
                   if value is not None and value != self._defaults[name]}
        names = self._options_set() if changed else frozenset()
        if names is None:
            self._is_check_due = True
            return False
        before = self._removed
        self._removed = {name: value for name, value in changed.items() if name not in names}
        return before != self._removed
