"""Nothing is sent once `off` has answered, nor by a successor; with real threads."""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, List, Optional

import pytest

from tests.support.fakes import Harness, KeyValueStore
from tests.support.rounds import executing, kept, small_plan, uneven

#: Longer than any wait here can be where nothing is wrong.
_SECONDS = 10.0


class OffAt:
    """Has `off` said by another thread at a moment of the serve thread's round, which waits for the
    answer; where `off` has to wait for that very moment to pass, it goes on."""

    def __init__(self, harness: Harness) -> None:
        self._desk = harness
        self._serve = threading.current_thread()
        self._thread: Optional[threading.Thread] = None
        self.answered = threading.Event()
        self.sent_at_answer: List[str] = []
        self.store_at_answer: Dict[str, str] = {}

    def moment(self, *_: Any) -> None:
        if threading.current_thread() is not self._serve or self._thread is not None:
            return
        self._thread = threading.Thread(target=self._off, daemon=True)
        self._thread.start()
        self.answered.wait(0.2)

    def _off(self) -> None:
        self._desk.options["active"] = False
        self._desk.balancer.switch_off()
        self.sent_at_answer = list(self._desk.gateway.sent)
        self.store_at_answer = dict(self._desk.kv.values)
        self.answered.set()

    def check(self) -> None:
        """After the round in which it happened."""
        assert self._thread is not None, "that moment never came"
        assert self.answered.wait(_SECONDS)
        harness = self._desk
        for _ in range(3):
            harness.plan(60)
        assert harness.sent == self.sent_at_answer
        assert harness.state == "off"
        next_mgr = Harness(harness.cluster, kv=KeyValueStore(self.store_at_answer),
                        **harness.options)
        next_mgr.now = harness.now
        for _ in range(3):
            next_mgr.plan(60)
        assert next_mgr.sent == []
        assert next_mgr.execution is None
        assert next_mgr.balancer.status.episode is None


def hook_store(key: str) -> Callable[[Harness, OffAt], None]:
    def hook(harness: Harness, off: OffAt) -> None:
        harness.kv.before_write = lambda written: off.moment() if written == key else None
    return hook


def hook_gateway(name: str) -> Callable[[Harness, OffAt], None]:
    def hook(harness: Harness, off: OffAt) -> None:
        gateway: Any = harness.gateway
        original = getattr(gateway, name)

        def call(*arguments: Any, **named: Any) -> Any:
            off.moment()
            return original(*arguments, **named)
        setattr(gateway, name, call)
    return hook


_MOMENTS: Dict[str, Callable[[Harness, OffAt], None]] = {
    **{"write " + key: hook_store(key) for key in ("changes/1", "execution", "episode")},
    **{name: hook_gateway(name) for name in (
        "summary", "snapshot", "have_mon_connection", "target_max_misplaced_ratio", "submit_upmaps",
        "collect_replies")}}


@pytest.mark.parametrize("name", ["p", ""])
@pytest.mark.parametrize("moment", _MOMENTS)
def test_off_at_a_moment_of_the_round_that_sends(moment: str, name: str) -> None:
    if (moment, name) == ("write execution", ""):
        pytest.skip("automatic balancing writes none")
    harness = Harness(uneven(), active=not name, max_moves_per_round=3)
    if name:
        harness.balancer.execute(name, kept(harness, plan=small_plan(6)))
    else:
        harness.plan()
    off = OffAt(harness)
    _MOMENTS[moment](harness, off)
    harness.round(3600 if moment == "write execution" else 60)   # once an hour it is written anew
    off.check()


def test_off_before_the_first_round_of_a_new_mgr() -> None:
    harness = executing(Harness(uneven(), max_moves_per_round=3), small_plan(6))
    harness.round()
    harness.arrive()
    next_mgr = Harness(harness.cluster, kv=KeyValueStore(harness.kv.values),
                       **harness.options)
    assert next_mgr.balancer.switch_off() == "p"
    assert "execution" not in next_mgr.kv.values
    assert "episode" not in next_mgr.kv.values
    next_mgr.round(60)
    assert next_mgr.sent == []
    assert next_mgr.execution is None


def test_off_waits_for_no_answer_of_a_monitor_to_upmaps() -> None:
    harness = executing(Harness(uneven()), small_plan(3))
    waiting, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        waiting.set()
        assert go_on.wait(_SECONDS)
    harness.gateway.before_answers = slow
    serve = threading.Thread(target=harness.round, daemon=True)
    serve.start()
    assert waiting.wait(_SECONDS)
    began = time.monotonic()
    assert harness.balancer.switch_off() == "p"
    assert time.monotonic() - began < 1.0
    assert harness.state == "off"
    go_on.set()
    serve.join(_SECONDS)
    assert not serve.is_alive()
    assert harness.state == "off"
