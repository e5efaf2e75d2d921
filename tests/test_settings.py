"""Options: their declaration as Ceph wants it, and what is made of odd values."""
from __future__ import annotations

from typing import Any, Dict

import pytest

from equilibrium_mgr.settings import OPTIONS, Settings, read_settings

TYPES = {"str", "int", "uint", "float", "bool", "size", "secs"}


def settings(**values: Any) -> Settings:
    return read_settings(values.get)


def test_defaults_where_nothing_is_set() -> None:
    found = settings()
    assert not found.active and found.sleep_interval == 60.0
    assert found.pool_ids is None and found.device_classes is None
    assert found.max_misplaced_ratio == 0.0 and found.max_moves_per_round >= 1
    assert found.max_plan_seconds > 0 and found.fill_limit == 0.0 and found.aim == "space"


@pytest.mark.parametrize("text, expected", [
    ("1,2", {1, 2}), (" 3 , 4,", {3, 4}), ("", None), (",", None), ("rbd", frozenset()),
    ("1,x,-2", {1})])
def test_pool_ids(text: str, expected: Any) -> None:
    assert settings(pool_ids=text).pool_ids == expected


@pytest.mark.parametrize("text, expected", [
    ("hdd", {"hdd"}), ("hdd, ssd", {"hdd", "ssd"}), (" ", None), ("none", {"none"})])
def test_device_classes(text: str, expected: Any) -> None:
    assert settings(device_classes=text).device_classes == expected


def test_given_values() -> None:
    found = settings(active=True, sleep_interval=5, max_misplaced_ratio=0.1,
                     max_moves_per_round=7, max_plan_seconds=9, fill_limit=0.8, aim="even")
    assert found == Settings(True, 5.0, None, None, 0.1, 7, 9.0, 0.8, "even")


def test_values_that_would_spin_or_stall_are_lifted() -> None:
    found = settings(sleep_interval=0, max_moves_per_round=0)
    assert found.sleep_interval >= 1.0 and found.max_moves_per_round >= 1


@pytest.mark.parametrize("text, aim", [
    ("space", "space"), ("even", "even"), ("least-motion", "least-motion"), ("evenly", "space"),
    ("", "space"), ("EVEN", "space"), (7, "space")])
def test_aims(text: Any, aim: str) -> None:
    assert settings(aim=text).aim == aim


def test_the_monitor_is_told_which_aims_there_are() -> None:
    option = next(option for option in OPTIONS if option["name"] == "aim")
    assert option["enum_allowed"] == ["space", "even", "least-motion"]
    assert all(aim in option["long_desc"] for aim in option["enum_allowed"])


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o["name"])
def test_declaration(option: Dict[str, Any]) -> None:
    assert option["type"] in TYPES and option["runtime"] is True
    assert option["desc"] and option["long_desc"]
    assert option["name"] in Settings._fields
    if option["type"] in ("uint", "secs", "float"):
        assert option["min"] <= option["default"] <= option["max"]
