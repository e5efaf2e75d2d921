"""The values of the options that hold for this mgr: its own, or those of all mgrs.

`mgr/equilibrium/x/metrics_port` is set for mgr.x alone. A mgr tells only which value holds for it,
not whether it is its own.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Optional, Sequence

from .removed_options import RemovedOptions


class OptionValues:
    """`common_value` and `effective_value` are the mgr's `get_module_option` and
    `get_localized_module_option`, `options_set` and the threads are as in RemovedOptions;
    `local_names` are the options that mgr.`mgr_id` may have a value of its own for."""

    def __init__(self, common_value: Callable[[str], Any], effective_value: Callable[[str], Any],
                 mgr_id: str, options_set: Callable[[], Optional[FrozenSet[str]]],
                 options: Sequence[Dict[str, Any]], local_names: Sequence[str]) -> None:
        self._common_value = common_value
        self._effective_value = effective_value
        self._own_names = {name: f"{mgr_id}/{name}" for name in local_names}
        self._common_names = {own: name for name, own in self._own_names.items()}
        own = [dict(option, name=self._own_names[option["name"]])
               for option in options if option["name"] in self._own_names]
        self._values = RemovedOptions(self._mgr_value, options_set, [*options, *own])

    def value(self, name: str) -> Any:
        """The value of an option; None where it is at its default, or was removed since."""
        own = self._values.value(self._own_names[name]) if name in self._own_names else None
        return self._values.value(name) if own is None else own

    def request_check(self) -> None:
        """Has the next `check_if_due` ask the monitor which options were removed."""
        self._values.request_check()

    def check_if_due(self) -> bool:
        """Asks the monitor where that was requested; True where a value in effect has changed."""
        return self._values.check_if_due()

    def _mgr_value(self, name: str) -> Any:
        """The mgr's value of NAME or x/NAME; of the latter None where it is that of all mgrs."""
        common = self._common_names.get(name)
        if common is None:
            return self._common_value(name)
        value = self._effective_value(common)
        return None if value == self._common_value(common) else value
