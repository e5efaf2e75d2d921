"""Typed option values, parsed and checked as by Ceph's md_config_t."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Union

from ..clock import parse_span
from ..errors import invalid

Value = Union[bool, int, float, str]

_IEC = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}


def parse_value(type_name: str, text: str) -> Value:
    """The typed value of an option's text; StubError with a sentence if it does not parse.

    size gives bytes, secs whole seconds; int, uint and float are plain numbers.
    """
    parser = _PARSERS.get(type_name)
    if parser is None:
        raise invalid(f"unknown option type '{type_name}'")
    value: Value = parser(text.strip() if type_name != "str" else text)
    return value


def check_value(option: Mapping[str, Any], text: str) -> Value:
    """As `parse_value`; also checks the option's min, max and enum_allowed."""
    type_name = str(option.get("type", "str"))
    value = parse_value(type_name, text)
    allowed = option.get("enum_allowed")
    if allowed and value not in allowed:
        raise invalid(f"'{value}' is not one of the permitted values: {', '.join(allowed)}")
    low, high = _bound(option, "min", type_name), _bound(option, "max", type_name)
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
    return parse_value(type_name, str(bound)) if isinstance(bound, str) else bound


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
    "str": str, "int": _parse_int, "uint": _parse_uint, "float": _parse_float, "bool": _parse_bool, "size": _parse_size,
    "secs": _parse_secs,
}
