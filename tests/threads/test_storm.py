"""Random commands of an operator in one thread, while rounds run in another and plans in a third.

Arguments are right and wrong; nothing raises, spins, or is sent after `off` (`--storms N`).
"""
from __future__ import annotations

import random
import sys
from typing import Callable, Iterator

import pytest

from .running import Running

_STEPS = 60
_COMMANDS_A_STEP = 4
_LONGEST_STEP_SECONDS = 120.0
#: Real seconds after which Python hands the interpreter on; its default is 5 ms.
_SWITCH_SECONDS = 1e-5
_NAMES = ("p", "q", "r", "p", "../x", "", "a" * 70)
_WORDS = """
status
status --format json
status --format xml
eval
eval {plan}
eval rbd
eval --format json
optimize {plan}
optimize {plan} --replace
optimize {plan} rbd fs --replace
optimize {plan} nothing
optimize {plan} --max-moves 3
optimize {plan} --max-moves -1
optimize {plan} --max-bytes 100G --replace
optimize {plan} --max-bytes lots
optimize {plan} --device-class hdd
optimize {plan} --device-class tape
optimize {plan} --aim even --replace
optimize {plan} --aim odd
show {plan}
show {plan} --format json
execute {plan}
execute {plan}
ls
rm {plan}
reset
dump {plan}
on
on
on
off
off
pool ls
pool add rbd
pool add nothing
pool rm rbd
pool rm fs
explain
explain osd.1
explain 1.0
explain fs
explain what
history
dump-state
dump-state --anonymous
nonsense
drain add 0
drain add osd.1 h2
drain add nothing
drain rm 0
drain rm 0 1 h2
drain ls
drain ls --format json
undo
undo {plan}
undo --since 1h
undo --dry-run
cancel
cancel {plan}
cancel --dry-run
freeze
freeze --dry-run
metrics
""".splitlines()   # the first is empty
_OTHERS = """\
config set mgr mgr/equilibrium/sleep_interval 10
config set mgr mgr/equilibrium/sleep_interval 60
config set mgr mgr/equilibrium/max_misplaced_ratio 0.05
config set mgr mgr/equilibrium/max_misplaced_ratio 1
config set mgr mgr/equilibrium/min_gain 0
config set mgr mgr/equilibrium/aim even
config set mgr mgr/equilibrium/aim space
config set mgr mgr/equilibrium/device_classes ssd
config set mgr mgr/equilibrium/device_classes ''
config set mgr mgr/equilibrium/active true
config set mgr mgr/equilibrium/active false
osd set norebalance
osd unset norebalance
balancer on
balancer off
osd set noout
""".splitlines()


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    yield
    sys.setswitchinterval(before)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "storm_seed" in metafunc.fixturenames:
        metafunc.parametrize("storm_seed", range(metafunc.config.getoption("--storms")))


def line(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(_OTHERS)
    return "equilibrium " + rng.choice(_WORDS).format(plan=rng.choice(_NAMES))


def test_storm(storm_seed: int, run_mgr: Callable[..., Running], quick_switches: None) -> None:
    rng = random.Random(f"storm {storm_seed}")
    running = run_mgr()
    for _ in range(_STEPS):
        lines = [line(rng) for _ in range(rng.randint(1, _COMMANDS_A_STEP))]
        answers = [running.post(line) for line in lines]
        running.run(rng.uniform(0.0, _LONGEST_STEP_SECONDS))
        for answer in answers:
            answer.result(30.0)
        if rng.random() < 0.1:
            running.command(rng.choice(("sim mgr fail takeover=3s", "sim failover")))
        assert not running.broken(), f"{lines}"
    running.session.close()
    assert running.session.host.shutdown_seconds < 1.0


def test_failover_drops_waiting_jobs(run_mgr: Callable[..., Running]) -> None:
    running = run_mgr()
    jobs = running.session.module.jobs
    jobs.submit("waits until the mgr ends", lambda: jobs.wait(1e9))
    jobs.submit("never begins", lambda: None)
    running.command("sim failover")
    assert not running.session.host.busy()
