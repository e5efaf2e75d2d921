"""The configuration database: Ceph's own options and those of mgr modules.

Typed option values, parsed and checked as by Ceph's md_config_t.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ..clock import parse_span
from ..errors import StubError, invalid


Value = Union[bool, int, float, str]

_IEC = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}


def parse_value(type_name: str, text: str) -> Value:
    """Returns the typed value of an option's text; StubError with a sentence if it does not parse.

    size gives bytes, secs whole seconds; int, uint and float are plain numbers.
    """
    parser = _PARSERS.get(type_name)
    if parser is None:
        raise invalid(f"unknown option type '{type_name}'")
    if type_name != "str":
        text = text.strip()
    value: Value = parser(text)
    return value


def check_value(option: Mapping[str, Any], text: str) -> Value:
    """Returns the same as `parse_value`; also checks the option's min, max and enum_allowed."""
    type_name = str(option.get("type", "str"))
    value = parse_value(type_name, text)
    allowed = option.get("enum_allowed")
    if allowed and value not in allowed:
        raise invalid(f"'{value}' is not one of the permitted values: {', '.join(allowed)}")
    low = _bound(option, "min", type_name)
    high = _bound(option, "max", type_name)
    if not isinstance(value, str):
        if low is not None and value < low:
            raise invalid(f"Value '{value}' is below minimum {low}")
        if high is not None and value > high:
            raise invalid(f"Value '{value}' exceeds maximum {high}")
    return value


def _bound(option: Mapping[str, Any], name: str, type_name: str) -> Any:
    bound = option.get(name)
    if bound is None or bound == "":
        return None
    if isinstance(bound, str):
        return parse_value(type_name, str(bound))
    return bound


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise invalid(f"Expected option value to be integer, got '{text}'")
    return int(text)


def _parse_uint(text: str) -> int:
    value = _parse_int(text)
    if value < 0:
        raise invalid(f"strict_si_cast: value should not be negative, got '{text}'")
    return value


def _parse_float(text: str) -> float:
    try:
        return float(f"{float(text):f}")   # six decimals are kept, as seen on 20.2.4
    except ValueError:
        raise invalid(f"Expected option value to be a number, got '{text}'") from None


def _parse_bool(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return bool(int(text))
    raise invalid(f"Expected option value to be a boolean, got '{text}'")


def _parse_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([kmgtpe]?)(i?b?)", text.lower())
    if not match:
        raise invalid(f"Expected option value to be a size such as 4M or 1T, got '{text}'")
    return int(match.group(1)) * _IEC[match.group(2)]


def _parse_secs(text: str) -> int:
    if "." in text:
        raise invalid(f"Expected option value to be a time span such as 60 or 2h, got '{text}'")
    return int(parse_span(text))


_PARSERS: Dict[str, Any] = {
    "str": str, "int": _parse_int, "uint": _parse_uint, "float": _parse_float, "bool": _parse_bool,
    "size": _parse_size, "secs": _parse_secs,
}


#: Ceph's own options that the simulation knows: {name: (type, default)}.
CORE_OPTIONS: Dict[str, Tuple[str, str]] = {
    "target_max_misplaced_ratio": ("float", "0.05"),
    "mgr_stats_period": ("int", "5"),
    "mgr_tick_period": ("secs", "2"),
    "debug_mgr": ("str", "1/5"),
    "log_file": ("str", ""),
    "osd_max_backfills": ("uint", "1"),
    "osd_mclock_profile": ("str", "balanced"),
    "osd_recovery_max_active": ("uint", "0"),
    "osd_max_pg_log_entries": ("uint", "10000"),
    "mon_osd_full_ratio": ("float", "0.95"),
    "mon_osd_backfillfull_ratio": ("float", "0.9"),
    "mon_osd_nearfull_ratio": ("float", "0.85"),
    "mon_osd_down_out_interval": ("secs", "600"),
    "mon_osd_auto_mark_auto_out_in": ("bool", "true"),
    "mon_max_pg_per_osd": ("uint", "250"),
    "osd_max_pg_per_osd_hard_ratio": ("float", "3"),
    "mon_target_pg_per_osd": ("uint", "100"),
    "osd_pool_default_size": ("uint", "3"),
}

_CORE_LIMITS: Dict[str, Dict[str, Any]] = {
    "target_max_misplaced_ratio": {"min": 0.0},
    "osd_max_backfills": {"min": 1},
}

#: Options of the built-in balancer that other modules use.
BALANCER_OPTIONS: List[Dict[str, Any]] = [
    {"name": "active", "type": "bool", "default": True},
    {"name": "sleep_interval", "type": "secs", "default": 60},
    {"name": "mode", "type": "str", "default": "upmap"},
    {"name": "upmap_max_deviation", "type": "int", "default": 5, "min": 1},
    {"name": "upmap_max_optimizations", "type": "uint", "default": 10},
    {"name": "pool_ids", "type": "str", "default": ""},
]


class Config:
    """Values as text by `who/name` (`mgr/mgr/MODULE/OPTION` for modules), typed when read."""

    def __init__(self, texts: Dict[str, str]) -> None:
        self._texts = texts
        self._modules: Dict[str, Dict[str, Mapping[str, Any]]] = {}
        #: Counts the changes of Ceph's own options.
        self.version = 0
        #: Called with (module, option, text) when `ceph config rm` removes a module's option.
        self.on_removal: Callable[[str, str, str], None] = lambda module, name, text: None
        #: Called with (module, option) when one is set.
        self.on_setting: Callable[[str, str], None] = lambda module, name: None
        self.declare("balancer", BALANCER_OPTIONS)

    def declare(self, module: str, options: List[Dict[str, Any]]) -> None:
        """Makes a module's options known to the monitor."""
        self._modules[module] = {option["name"]: option for option in options}

    # -- module options -----------------------------------------------------------------------

    def module_option(self, module: str, name: str) -> Any:
        """Returns the typed value of a module's option; None while it is not set."""
        text = self._texts.get(_module_key(module, name))
        if text is None:   # most are not set
            return None
        return self.typed(module, name, text)

    def typed(self, module: str, name: str, text: Optional[str]) -> Any:
        """Returns the text of a module's option as a typed value; None for None."""
        if text is None or module not in self._modules:
            return None
        option = self._modules[module].get(_declared_name(name), {})
        return parse_value(str(option.get("type", "str")), text)

    def set_module_option(self, module: str, name: str, text: str) -> None:
        """Checks and stores a value; StubError with Ceph's sentence if it is not valid."""
        option = self._modules.get(module, {}).get(_declared_name(name))
        if option is None:
            raise invalid(f"unrecognized config option 'mgr/{module}/{name}'")
        try:
            check_value(option, text)
        except StubError as error:
            raise invalid(f"error parsing value: {error.message}") from None
        self._texts[_module_key(module, name)] = text
        self.on_setting(module, name)

    def remove_module_option(self, module: str, name: str) -> None:
        self._texts.pop(_module_key(module, name), None)

    # -- Ceph's own options -------------------------------------------------------------------

    def core(self, who: str, name: str) -> Value:
        """Returns the effective typed value of one of Ceph's options for `mgr`, `osd`, `osd.3`, ...

        KeyError for an option that does not exist, as in `get_ceph_option`.
        """
        type_name, default = CORE_OPTIONS[name]
        section = who.partition(".")[0]
        for holder in (who, section, "global"):
            if f"{holder}/{name}" in self._texts:
                return parse_value(type_name, self._texts[f"{holder}/{name}"])
        return parse_value(type_name, default)

    # -- the `ceph config` commands -----------------------------------------------------------

    def set(self, who: str, name: str, text: str) -> None:
        """Runs `ceph config set WHO NAME VALUE`."""
        if name.startswith("mgr/"):
            module, _, option = name[len("mgr/"):].partition("/")
            self.set_module_option(module, option, text)
            return
        if name not in CORE_OPTIONS:
            raise invalid(f"unrecognized config option '{name}'")
        try:
            check_value({"type": CORE_OPTIONS[name][0], **_CORE_LIMITS.get(name, {})}, text)
        except StubError as error:
            raise invalid(f"error parsing value: {error.message}") from None
        self._texts[f"{who}/{name}"] = text
        self.version += 1

    def get(self, who: str, name: str) -> str:
        """Returns `ceph config get WHO NAME`: the value as text."""
        if name.startswith("mgr/"):
            module, _, option_name = name[len("mgr/"):].partition("/")
            option = self._modules.get(module, {}).get(_declared_name(option_name))
            if option is None:
                raise StubError(2, f"unrecognized key '{name}'")
            value = self.module_option(module, option_name)
            if value is None:
                value = option.get("default", "")
            return _shown(value)
        if name not in CORE_OPTIONS:
            raise StubError(2, f"unrecognized key '{name}'")
        return _shown(self.core(who, name))

    def of_daemon(self, who: str) -> Dict[str, Dict[str, Any]]:
        """Returns all values set for a daemon, in the form of `ceph config get WHO --format json`.
        """
        found: Dict[str, Dict[str, Any]] = {}
        for section in ("global", who.partition(".")[0], who):
            for key, text in self._texts.items():
                holder, _, name = key.partition("/")
                if holder == section:
                    found[name] = {"value": text, "section": section, "mask": {},
                                   "can_update_at_runtime": True}
        return found

    def remove(self, who: str, name: str) -> None:
        """Runs `ceph config rm WHO NAME`."""
        if name.startswith("mgr/"):
            module, _, option = name[len("mgr/"):].partition("/")
            text = self._texts.get(_module_key(module, option))
            self.remove_module_option(module, option)
            if text is not None:
                self.on_removal(module, option, text)
        else:
            self._texts.pop(f"{who}/{name}", None)
            self.version += 1


def _declared_name(name: str) -> str:
    """Returns the option's name in a name such as `x/server_port`, which is set for mgr.x alone."""
    return name.partition("/")[2] or name


def _module_key(module: str, name: str) -> str:
    return f"mgr/mgr/{module}/{name}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
