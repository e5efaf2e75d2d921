"""The gateway sends upmap commands and waits for the replies of the monitor."""
from __future__ import annotations

from typing import Any, List

from tests.gateway.fake_mgr import open_gateway, send, small
from tests.support.clusters.unit_cluster import change_of

from equilibrium_mgr.plan.model import PgChange


def changes(count: int) -> List[PgChange]:
    return [change_of(f"1.{ps:x}", [ps, 4], [9, 4]) for ps in range(count)]


def test_all_commands_are_sent_before_the_first_wait() -> None:
    gateway, mgr, _ = open_gateway(small())
    answers = send(gateway, changes(4), 30.0)
    assert mgr.events == ["send 1.0", "send 1.1", "send 1.2", "send 1.3"] + ["wait"] * 4
    assert [change for change, _, _ in answers] == changes(4)


def test_commands_in_the_monitor_s_words() -> None:
    gateway, mgr, _ = open_gateway(small())
    moved = change_of("1.a", [0, 1, 2], [3, 1, 4])
    back = change_of("1.b", [0, 1], [0, 1], before=[5, 1])
    send(gateway, [moved, back], 30.0)
    assert mgr.sent == [
        {"prefix": "osd pg-upmap-items", "format": "json", "pgid": "1.a", "id": [0, 3, 2, 4]},
        {"prefix": "osd rm-pg-upmap-items", "format": "json", "pgid": "1.b"}]


def test_what_moved_since_the_look_is_not_sent() -> None:
    cluster = small()
    gateway, mgr, _ = open_gateway(cluster)
    snapshot = gateway.snapshot()
    mgr.calls.clear()
    assert gateway.without_remapped(changes(3), snapshot) == changes(3) and not mgr.calls
    cluster.epoch += 1
    cluster.pg("1.1", "3 0")            # by somebody else
    assert [c.pgid for c in gateway.without_remapped(changes(3), snapshot)] == ["1.0", "1.2"]
    assert mgr.calls == {"pg_to_up_acting_osds": 3}


def test_another_primary_is_no_move() -> None:
    cluster = small()
    gateway, _, _ = open_gateway(cluster)
    snapshot = gateway.snapshot()
    cluster.epoch += 1
    cluster.pg("1.1", snapshot.pgs["1.1"].up[::-1])
    assert gateway.without_remapped(changes(3), snapshot) == changes(3)


def test_answers_are_handed_on() -> None:
    gateway, mgr, _ = open_gateway(small())

    def refuse(result: Any) -> None:
        result.r, result.outb, result.outs = -2, "", "pg 1.0 does not exist"
    mgr.answer = refuse
    answer, = send(gateway, changes(1), 30.0)
    assert answer[1:] == (-2, "pg 1.0 does not exist")


def test_wait_is_bounded_for_the_whole_batch() -> None:
    gateway, mgr, clock = open_gateway(small())
    waits: List[float] = []

    def silent(result: Any) -> None:
        def time_passes(seconds: float) -> None:
            waits.append(seconds)
            clock.now += seconds
        result.ev.done, result.ev.on_timeout = False, time_passes
    mgr.answer = silent
    answers = send(gateway, changes(5), 30.0)
    assert [code for _, code, _ in answers] == [None] * 5
    assert sum(waits) == 30.0 and min(waits) >= 0.0
    assert clock.now == 1030.0
