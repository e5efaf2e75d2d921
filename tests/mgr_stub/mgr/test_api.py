"""The `mgr_module` API: command lines, options, other modules, in both styles."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any, Callable

import pytest

from mgr_stub.mgr import install
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import run
from tests.support.releases import RELEASES
from tests.support.tables import rows


@pytest.fixture(params=RELEASES)
def session(request: Any, make_session: Callable[..., Any]) -> Any:
    return make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]), release=request.param)


@pytest.fixture
def module(session: Any) -> Any:
    return session.module


def test_styles() -> None:
    old = install.install(18)
    assert sys.modules["mgr_module"] is old
    assert hasattr(old, "CLIReadCommand") and not hasattr(old, "CLICommandBase")
    sys.modules["equilibrium_mgr"] = old              # stands for a package that imported it
    assert install.install(16) is old
    assert "equilibrium_mgr" in sys.modules
    new = install.install(20)
    assert "equilibrium_mgr" not in sys.modules       # must be imported again
    for name in ("CLICommand", "CLIReadCommand", "CLIWriteCommand", "Command"):
        assert not hasattr(new, name)
    assert not hasattr(new.MgrModule, "MODULE_OPTIONS")
    with pytest.raises(ValueError):
        install.install(17)


@pytest.mark.parametrize("line, answer", rows("""
echo a                                ["a", 7, "plain"]
echo a 3                              ["a", 3, "plain"]
echo a --number 3 --format json       ["a", 3, "json"]
echo --number=3 --format=xml a        ["a", 3, "xml"]
echo 'two words' -f json-pretty       ["two words", 7, "json-pretty"]
echo a --number -3                    ["a", -3, "plain"]
opt p                                 ["p", null, null, null, "plain"]
opt p a b --max-moves 3               ["p", ["a", "b"], 3, null, "plain"]
opt p --device-class ssd              ["p", null, null, "ssd", "plain"]
opt p --max_moves -3                  ["p", null, -3, null, "plain"]
noformat --format json                [0.5, null, false]
noformat 0.25 blue --sure             [0.25, "blue", true]
noformat --sure false --share 1       [1.0, null, false]
"""))
def test_arguments(session: Any, line: str, answer: str) -> None:
    rc, out, err = session.command(f"ceph equilibrium {line}")
    assert (rc, err) == (0, "")
    assert json.loads(out) == json.loads(answer)


@pytest.mark.parametrize("line, text", [("", "no valid command found"), *rows("""
equilibrium opt                       missing required parameter plan(<string>)
equilibrium echo a 3 4                unused arguments: ['4']
equilibrium echo a x                  unused arguments: ['x']
equilibrium echo a --number x         x is not valid for number(<int>)
equilibrium echo a --nonsense 3       unused arguments: ['--nonsense']
equilibrium echo a --number           --number needs a value
equilibrium noformat --color green    green is not valid for color(<red|blue>)
equilibrium nonsense                  no valid command found: equilibrium nonsense
nonsense                              no valid command found: nonsense
equilibrium echo 'a                   cannot be split into words
""")])
def test_bad_command_lines(session: Any, line: str, text: str) -> None:
    rc, out, err = session.command(line)
    assert (rc, out) == (-22, "")
    assert text in err and "\n" not in err


def test_handler_that_raises(session: Any) -> None:
    rc, out, err = session.command("equilibrium crash")
    assert (rc, out) == (-22, "")
    assert err.startswith("Traceback") and "KeyError: 'gone'" in err


def test_without_a_return_annotation_the_last_argument_is_optional(session: Any) -> None:
    rc, _, err = session.command("equilibrium unannotated a")
    assert rc == -22 and "missing 1 required positional argument" in err
    assert session.command("equilibrium unannotated")[2].startswith("Invalid command: missing")


def test_default_values_are_typed(module: Any) -> None:
    names = "active sleep_interval limit ratio count shift text"
    assert [module.get_module_option(name) for name in names.split()] == [
        False, 60, 1024, 0.5, 3, -1, "x"]


@pytest.mark.parametrize("name, text, value", rows("""
active            true       true
active            0          false
sleep_interval    2h         7200
limit             1T         1099511627776
limit             4KiB       4096
ratio             1          1.0
count             9          9
shift             -5         -5
text              ''         ""
aim               space      "space"
"""))
def test_options_are_typed(session: Any, module: Any, name: str, text: str, value: str) -> None:
    assert session.command(f"config set mgr mgr/equilibrium/{name} {text}") == (0, "", "")
    got, wanted = module.get_module_option(name), json.loads(value)
    assert got == wanted and type(got) is type(wanted)


def test_running_mgr_keeps_removed_options(session: Any, module: Any) -> None:
    """Seen on 16.2.15 and 20.2.4: it is notified, but has the old value until a failover."""
    run(session, "config set mgr mgr/equilibrium/count 9")
    before = module.notified
    run(session, "config rm mgr mgr/equilibrium/count")
    assert module.get_module_option("count") == 9
    assert module.notified == before + 1
    assert run(session, "config get mgr mgr/equilibrium/count",
               "config set mgr mgr/equilibrium/shift 1")[0] == "3"
    assert module.get_module_option("count") == 9   # another option has no effect
    session.host.failover()
    assert session.module.get_module_option("count") == 3


@pytest.mark.parametrize("name, text", rows("""
sleep_interval    0
sleep_interval    2 fortnights
limit             much
ratio             1.01
ratio             nan-nan
count             -1
shift             -6
shift             1.5
active            maybe
aim               odd
"""))
def test_invalid_option_values(session: Any, module: Any, name: str, text: str) -> None:
    before = module.get_module_option(name)
    rc, _, err = session.command(f"config set mgr mgr/equilibrium/{name} '{text}'")
    assert rc == -22 and err.startswith("error parsing value: ")
    if session.mgr.release >= 18:
        with pytest.raises(ValueError):
            module.set_module_option(name, text)
    else:
        module.set_module_option(name, text)  # 16 keeps the old value silently
    assert module.get_module_option(name) == before


def test_config_notify_comes_after_the_call(session: Any, module: Any) -> None:
    module.set_module_option("active", True)
    assert module.notified == 0
    run(session, "osd dump")
    assert module.notified == 1
    run(session, "config set mgr mgr/equilibrium/active false")
    assert module.notified == 2


def is_on(session: Any) -> Any:
    """Whether the built-in balancer is on; None if that is not set, when it is."""
    return session.module.get_module_option_ex("balancer", "active")


def test_built_in_balancer(session: Any) -> None:
    assert is_on(session) is False
    run(session, "balancer on")
    assert is_on(session) is True
    run(session, "config rm mgr mgr/balancer/active")
    session.host.failover()
    assert is_on(session) is None
    assert '"active": true' in run(session, "balancer status")[0]
    module = session.module
    module.set_module_option_ex("balancer", "active", "false")
    assert is_on(session) is False
    assert module.get_module_option_ex("balancer", "sleep_interval", 61) == 61
    assert session.command("balancer eval")[0] == -22


def test_the_balancer_is_switched_off_by_remote(session: Any, module: Any) -> None:
    run(session, "balancer on")
    old, new = ("handle_command", "", {"prefix": "balancer off"}), ("off",)
    known, unknown = (new, old) if session.mgr.release >= 18 else (old, new)
    with pytest.raises(NameError):
        module.remote("balancer", *unknown)
    assert is_on(session) is True
    assert module.remote("balancer", *known)[0] == 0
    assert is_on(session) is False


def test_remote(session: Any, module: Any) -> None:
    assert module.remote("progress", "update", "id", "message", 0.5) is None
    with pytest.raises(ImportError):
        module.remote("nonsense", "off")
    with pytest.raises(NameError):
        module.remote("progress", "nonsense")
    if session.mgr.release >= 20:
        with pytest.raises((AttributeError, pickle.PicklingError)):
            module.remote("progress", "update", lambda: None)


def test_health_checks(session: Any, module: Any) -> None:
    module.set_health_checks(
        {"EQ": {"severity": "warning", "summary": "something", "detail": ["a", "b"]}})
    assert run(session, "health") == ["HEALTH_WARN\nEQ: something\n    a\n    b"]
    with pytest.raises(TypeError):
        module.set_health_checks({"EQ": {"severity": "warning", "detail": "a"}})
    module.set_health_checks({})
    assert session.command("health") == (0, "HEALTH_OK", "")
