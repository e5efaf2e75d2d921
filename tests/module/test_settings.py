"""Options: their declaration as Ceph wants it, and what is made of odd values."""
from __future__ import annotations

from typing import Any, Dict

import pytest
from tests.support.tables import rows

from equilibrium_mgr.control.cluster_guards import is_open
from equilibrium_mgr.settings import OPTIONS, UNREADABLE_TIME, Settings, read_settings

TYPES = {"str", "int", "uint", "float", "bool", "size", "secs"}


def settings(**values: Any) -> Settings:
    return read_settings(values.get)


def test_defaults_where_nothing_is_set() -> None:
    found = settings()
    assert not found.active
    assert found.sleep_interval == 60.0
    assert found.pool_ids is None
    assert found.device_classes is None
    assert found.max_misplaced_ratio == 0.0
    assert found.max_moves_per_round >= 1
    assert found.max_plan_seconds > 0
    assert found.fill_limit == 0.0
    assert found.aim == "space"
    assert (found.begin_time, found.end_time) == (0, 24 * 60)
    assert found.begin_weekday == found.end_weekday


@pytest.mark.parametrize("text, expected", [
    ("1,2", {1, 2}), (" 3 , 4,", {3, 4}), ("", None), (" ", None), (",", frozenset()),
    ("rbd", frozenset()), ("*", frozenset()), ("2;3", frozenset()), ("1,x,-2", {1})])
def test_pool_ids(text: str, expected: Any) -> None:
    assert settings(pool_ids=text).pool_ids == expected


@pytest.mark.parametrize("text, expected", [
    ("hdd", {"hdd"}), ("hdd, ssd", {"hdd", "ssd"}), (" ", None), ("none", {"none"}),
    (",", frozenset())])
def test_device_classes(text: str, expected: Any) -> None:
    assert settings(device_classes=text).device_classes == expected


def test_given_values() -> None:
    found = settings(active=True, sleep_interval=5, max_misplaced_ratio=0.1,
                     max_moves_per_round=7, max_plan_seconds=9, fill_limit=0.8, aim="even")
    assert found[:9] == (True, 5.0, None, None, 0.1, 7, 9.0, 0.8, "even")
    given = dict(max_backfills_per_osd=2, max_transit_ratio=0.2, pg_cooldown=60.0,
                 start_delay=5.0, max_wait=7200.0, max_upmap_items=0.5,
                 relieve_while_degraded=False, min_gain=0.01, begin_weekday=1, end_weekday=6)
    found = settings(begin_time="2200", end_time="0630", **given)
    assert {name: getattr(found, name) for name in given} == given
    assert (found.begin_time, found.end_time) == (22 * 60, 6 * 60 + 30)


@pytest.mark.parametrize("name, value, expected", [
    ("max_transit_ratio", 7, 0.1), ("max_wait", 1, 3600.0)])
def test_values_out_of_range(name: str, value: float, expected: float) -> None:
    found = settings(**{name: value})
    assert getattr(found, name) == expected
    (told,) = found.replaced
    assert (told.option, told.value) == (name, str(value))


@pytest.mark.parametrize("name, value, said", [
    ("max_misplaced_ratio", float("nan"), "default, 0.0"), ("begin_time", "25:00", "no automatic"),
    ("end_time", "2401", "no automatic"), ("begin_time", "2560", "HHMM"),
    ("pool_ids", "*", "no pool"), ("pool_ids", "2;3", "no pool"), ("pool_ids", "2,x", "only 2"),
    ("device_classes", ",", "nothing"), ("aim", "best", "default, space"),
    ("active", "perhaps", "default, False")])
def test_what_is_replaced_is_told(name: str, value: Any, said: str) -> None:
    (found,) = settings(**{name: value}).replaced
    assert (found.option, found.value) == (name, str(value))
    assert said in found.reason


#: Values that Ceph takes for some type, none of them sensible.
_ODD = [
    float("nan"), float("inf"), -float("inf"), -1, 1e300, "x", "", None, [], {}, "25:00", "*"]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o["name"])
@pytest.mark.parametrize("value", _ODD, ids=repr)
def test_no_odd_value_lifts_a_limit(option: Dict[str, Any], value: Any) -> None:
    """Each limit is as tight as by default, and each choice as narrow or narrower."""
    found, usual = settings(**{option["name"]: value}), settings()
    for name in ("max_backfills_per_osd", "max_transit_ratio", "max_misplaced_ratio",
                 "max_moves_per_round", "max_upmap_items", "fill_limit", "pg_cooldown",
                 "start_delay", "max_wait", "sleep_interval", "min_gain"):
        assert getattr(found, name) == getattr(usual, name), name
    blank = value is None or not str(value).strip()
    for name in ("pool_ids", "device_classes"):
        assert getattr(found, name) is None or not blank
        assert getattr(found, name) is not None or blank or name != option["name"]
    if option["name"] in ("begin_time", "end_time") and value is not None:
        assert getattr(found, option["name"]) == UNREADABLE_TIME


@pytest.mark.parametrize("text, minute", [
    ("0000", 0), ("0930", 570), (" 2359 ", 1439), ("2400", 1440), ("", None), (930, None),
    *[(text, None) for text in "930 2500 1260 2401 noon 12:00 \u0661\u0662\u0660\u0660".split()]])
def test_times_of_the_day(text: Any, minute: Any) -> None:
    found = settings(begin_time=text, end_time=text)
    expected = UNREADABLE_TIME if minute is None else minute
    assert (found.begin_time, found.end_time) == (expected, expected)
    if minute is None:
        assert not any(is_open(found._replace(end_time=end), hour * 3600.0)
                       for end in (UNREADABLE_TIME, 0, 600, 24 * 60) for hour in range(24))


def declared(name: str) -> Dict[str, Any]:
    found, = [option for option in OPTIONS if option["name"] == name]
    return found


@pytest.mark.parametrize("name", ["begin_time", "begin_weekday"])
def test_the_window_s_semantics_are_told(name: str) -> None:
    said = declared(name)["long_desc"]
    assert "before end_" in said
    assert "crosses midnight" in said


def test_values_that_would_spin_or_stall_are_lifted() -> None:
    found = settings(sleep_interval=0, max_moves_per_round=0)
    assert found.sleep_interval >= 1.0
    assert found.max_moves_per_round >= 1


@pytest.mark.parametrize("text, aim", [(7, "space"), ("", "space"), *rows("""
space         space
even          even
least-motion  least-motion
evenly        space
EVEN          space
""")])
def test_aims(text: Any, aim: str) -> None:
    assert settings(aim=text).aim == aim


def test_the_monitor_is_told_which_aims_there_are() -> None:
    option = declared("aim")
    assert option["enum_allowed"] == ["space", "even", "least-motion"]
    assert all(aim in option["long_desc"] for aim in option["enum_allowed"])


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o["name"])
def test_declaration(option: Dict[str, Any]) -> None:
    assert option["type"] in TYPES
    assert option["runtime"] is True
    assert option["desc"]
    assert option["long_desc"]
    assert option["name"] in Settings._fields
    assert option["see_also"]
    assert set(option["see_also"]) <= {
        *Settings._fields, "target_max_misplaced_ratio", "osd_max_backfills", "osd_mclock_profile"}
    if option["type"] in ("uint", "secs", "float"):
        assert option["min"] <= option["default"] <= option["max"]


def test_a_pool_id_of_thousands_of_digits_is_no_pool() -> None:
    assert read_settings({"pool_ids": "9" * 5000}.get).pool_ids == frozenset()
