"""Nothing is sent once `off` has answered, nor by a successor; with real threads."""
from __future__ import annotations

import threading
import time


from tests.support.fakes import Harness, KeyValueStore
from tests.support.rounds import kept, small_plan, uneven

#: Longer than any wait here can be where nothing is wrong.
_SECONDS = 10.0


def test_off_before_the_first_round_of_a_new_mgr() -> None:
    harness = Harness(uneven(), max_moves_per_round=3)
    harness.balancer.execute("p", kept(harness, plan=small_plan(6)))
    harness.round()
    harness.gateway.arrive()
    next_mgr = Harness(harness.gateway.cluster, kv=KeyValueStore(harness.kv.values),
                       **harness.options)
    assert next_mgr.balancer.switch_off() == "p"
    assert "execution" not in next_mgr.kv.values and "episode" not in next_mgr.kv.values
    next_mgr.round(60)
    assert next_mgr.gateway.sent == [] and next_mgr.balancer.execution is None


def test_off_waits_for_no_answer_of_a_monitor_to_upmaps() -> None:
    harness = Harness(uneven())
    harness.balancer.execute("p", kept(harness, plan=small_plan(3)))
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
    assert time.monotonic() - began < 1.0 and harness.balancer.status.state == "off"
    go_on.set()
    serve.join(_SECONDS)
    assert not serve.is_alive() and harness.balancer.status.state == "off"
