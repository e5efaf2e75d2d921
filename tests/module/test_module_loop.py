"""The serve loop never dies: it logs, raises a health check, backs off and goes on."""
from __future__ import annotations

from typing import Any, Dict, List

import pytest
from tests.support.fakes import InlineJobs, KeyValueStore

from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.module import Module


class Store(KeyValueStore):
    """Under the names that the stand-in's MgrModule asks for."""

    get, with_prefix = KeyValueStore.get_store, KeyValueStore.get_store_prefix


class Host:
    """What the stand-in's MgrModule asks of the mgr behind it."""

    version, release_name, mgr_id, mon_connected = "ceph version 18.2.7", "reef", "x", True

    def __init__(self) -> None:
        self.health: List[Dict[str, Any]] = []
        self.store = Store()

    def set_health_checks(self, checks: Dict[str, Any]) -> None:
        self.health.append(checks)


class QuietModule(Module):
    """A module with options and a store of its own."""

    def __init__(self, host: Host, **settings: Any) -> None:
        self.given = settings
        self.now = 100.0
        super().__init__("equilibrium", None, host, clock=lambda: self.now, jobs=InlineJobs())

    def get_module_option(self, key: str, default: Any = None) -> Any:
        return self.given.get(key, default)

    get_localized_module_option = get_module_option


@pytest.fixture(name="host")
def make_host() -> Host:
    return Host()


def failing(module: Module, mocker: Any, error: Exception) -> Any:
    return mocker.patch.object(module.balancer, "round", side_effect=error)


@pytest.mark.parametrize("error", [KeyError("epoch"), RuntimeError("no"), SystemError("null")])
def test_exception_becomes_a_health_check(host: Host, mocker: Any, error: Exception) -> None:
    module = QuietModule(host)
    log = mocker.patch.object(module, "_logger")
    failing(module, mocker, error)
    delay = module.step()
    assert delay > 0
    assert log.exception.called
    assert host.health[-1] == {}, "once is no reason for a warning"
    module.step()
    check = host.health[-1]["MGR_EQUILIBRIUM_ERROR"]
    assert type(error).__name__ in check["detail"][0]


def test_back_off_grows_and_is_bounded(host: Host, mocker: Any) -> None:
    module = QuietModule(host)
    failing(module, mocker, RuntimeError("no"))
    delays = [module.step() for _ in range(12)]
    assert delays == sorted(delays)
    assert delays[0] < delays[1]
    assert delays[-1] == delays[-2] <= 3600


def test_recovery_clears_the_health_check_and_the_back_off(host: Host, mocker: Any) -> None:
    module = QuietModule(host)
    broken = failing(module, mocker, RuntimeError("no"))
    first = module.step()
    module.step()
    broken.side_effect = None
    broken.return_value = 42.0
    assert module.step() == 42.0
    assert "MGR_EQUILIBRIUM_ERROR" in host.health[-1]
    assert module.step() == 42.0
    assert host.health[-1] == {}
    broken.side_effect = RuntimeError("no")
    assert module.step() == first


def test_health_is_told_only_when_it_changes(host: Host, mocker: Any) -> None:
    module = QuietModule(host)
    mocker.patch.object(module.balancer, "round", return_value=1.0)
    for _ in range(3):
        module.step()
    assert len(host.health) <= 1


def test_failing_health_report_does_not_end_the_loop(host: Host, mocker: Any) -> None:
    module = QuietModule(host)
    mocker.patch.object(module, "set_health_checks", side_effect=RuntimeError("no"))
    failing(module, mocker, RuntimeError("no"))
    assert module.step() > 0


def test_serve_ends_at_shutdown(host: Host, mocker: Any) -> None:
    module = QuietModule(host)
    rounds: List[int] = []

    def one_round() -> float:
        rounds.append(1)
        if len(rounds) == 3:
            module.shutdown()
        return 0.0
    mocker.patch.object(module.balancer, "round", side_effect=one_round)
    module.serve()
    assert len(rounds) == 3


def test_changed_option_wakes_the_loop(host: Host) -> None:
    module = QuietModule(host)
    module.wakeup.clear()
    module.config_notify()
    assert module.wakeup.is_set()


def test_modules_share_no_state(host: Host) -> None:
    first, second = QuietModule(host), QuietModule(Host())
    first.balancer.dispatcher.rejected["1.0"] = Rejection("dropped", "m", 0.0)
    assert second.balancer.dispatcher.rejected == {}
    assert first.plan_store is not second.plan_store
    assert first.wakeup is not second.wakeup
