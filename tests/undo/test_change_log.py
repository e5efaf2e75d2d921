"""The log of changed upmap items: kept in parts, bounded, and read again by a successor."""
from __future__ import annotations

import logging
from typing import Any, List

import pytest

from equilibrium_mgr.plan.model import BALANCE, UNDO
from equilibrium_mgr.runtime.kv_store import MAX_VALUE_BYTES, BufferedKvStore
from equilibrium_mgr.undo import change_log
from equilibrium_mgr.undo.change_log import ChangeLog, ChangeRow
from tests.support.fakes import Harness, KeyValueStore
from tests.support.rounds import kept, small_plan, successor, uneven

LOG = logging.getLogger("test")


def row(number: int, plan: str = "p", size: int = 3) -> ChangeRow:
    osds = tuple(range(number, number + size))
    after = tuple((osd, osd + 1000) for osd in osds)
    kind = BALANCE if plan == "p" else UNDO
    return ChangeRow(1000.0 + number, plan, kind, 1000.0, number, f"1.{number:x}", osds, (), after,
                     3)


def log_on(kv: KeyValueStore) -> ChangeLog:
    found = ChangeLog(BufferedKvStore(kv, LOG))
    found.restore()
    return found


def settled(log: ChangeLog, batch: List[ChangeRow], items: Any, epoch: int = 0) -> None:
    log.end_batch({one.pgid for one in batch}, items, epoch)


def written(kv: KeyValueStore, batches: List[List[ChangeRow]]) -> ChangeLog:
    store = BufferedKvStore(kv, LOG)
    log = ChangeLog(store)
    for batch in batches:
        log.append(batch, 1000.0)
        store.flush()
        settled(log, batch, {one.pgid: one.after for one in batch})
        store.flush()
    return log


def test_the_oldest_rows_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "MOST_ROWS", 1000)
    kv = KeyValueStore()
    rows = [row(number) for number in range(2600)]
    written(kv, [rows[start:start + 130] for start in range(0, 2600, 130)])
    found = log_on(kv).rows()
    assert 700 <= len(found) <= 1000
    assert found == rows[-len(found):]
    assert len([key for key in kv.values if key.startswith("changes/")]) <= 5


def test_no_value_passes_the_limit_of_the_store() -> None:
    kv = KeyValueStore()
    written(kv, [[row(37 * number, size=20) for number in range(1000)]])
    assert max(len(value) for value in kv.values.values()) < MAX_VALUE_BYTES
    assert len(log_on(kv).rows()) == 1000


@pytest.mark.parametrize("value", ["", "{", '{"version": 1, "packed": "!"}',
                                   '{"version": 1, "packed": 3}',
                                   '{"version": 1, "packed": "eJyrrgUAAXUA+Q=="}'])
def test_a_damaged_part_leaves_the_others(value: str) -> None:
    kv = KeyValueStore()
    rows = [row(number, "p" if number % 7 else "q") for number in range(600)]
    written(kv, [rows])
    kv.values["changes/2"] = value
    assert log_on(kv).rows() == rows[:250] + rows[500:]


def test_what_the_monitor_kept_in_part_stands_as_it_is() -> None:
    log, sent = log_on(KeyValueStore()), [row(1), row(2), row(3)]
    log.append(sent, 1000.0)
    assert log.is_sending(1030.0)
    assert not log.is_sending(1061.0)
    settled(log, sent, {"1.1": sent[0].after[:1], "1.3": sent[2].after})
    assert not log.is_sending(1030.0)
    assert [one.after for one in log.rows()] == [sent[0].after[:1], sent[1].after, sent[2].after]


def test_what_the_monitor_took_away_whole_stands_as_it_is() -> None:
    """It drops all pairs of a PG where they would break its rule, those of before too."""
    log, had = log_on(KeyValueStore()), ((1, 7),)
    sent = row(1)._replace(before=had, after=(*had, (2, 8)))
    log.append([sent], 1000.0)
    settled(log, [sent], {}, 42)
    assert [one.after for one in log.rows()] == [()]
    assert log.epoch == 42
    log.append([sent._replace(before=())], 1000.0)
    settled(log, [sent], {}, 41)
    assert log.rows()[1].after == sent.after
    assert log.epoch == 42


def test_a_batch_is_known_before_it_is_sent() -> None:
    """Whenever the mgr dies, nothing is in the map that its successor does not know of."""
    harness = Harness(uneven())
    kept(harness)
    at_sending: List[int] = []

    def look() -> None:
        at_sending.append(len(successor(harness).balancer.changes().rows()))
        assert harness.balancer.changes().is_sending(harness.now)
    harness.gateway.before_hand_over = look
    assert harness.balancer.execute("p", small_plan())
    harness.round()
    assert at_sending == [4]
    assert not harness.balancer.changes().is_sending(harness.now)
    rows = successor(harness).balancer.changes().rows()
    assert [one.pgid for one in rows] == ["1.0", "1.1", "1.2", "1.3"]
    assert {(one.plan, one.kind, one.before, one.after, one.raw) for one in rows} == {
        ("p", BALANCE, (), ((0, 1),), (0,))}


def test_a_mgr_that_dies_in_its_first_batch_has_told_which_episode_it_was_of() -> None:
    harness = Harness(uneven(), max_moves_per_round=2)
    plan = kept(harness, plan=small_plan())
    begun: List[float] = []

    def die() -> None:
        if not begun:
            later = successor(harness)
            later.now += 30
            begun.append(0.0)
            later.round(60)
            later.round(60)
            begun.extend(row.begun_at for row in later.balancer.changes().rows())
    harness.gateway.before_hand_over = die
    assert harness.balancer.execute("p", plan)
    harness.round()
    assert len(begun) > 3
    assert len(set(begun[1:])) == 1


def test_what_was_not_sent_after_all_is_taken_out() -> None:
    kv = KeyValueStore()
    store = BufferedKvStore(kv, LOG)
    log, earlier = ChangeLog(store), [row(number) for number in range(240)]
    log.append(earlier, 1000.0)
    log.end_batch({one.pgid for one in earlier}, {})
    batch = [row(number) for number in range(300, 600)]
    log.append(batch, 2000.0)
    store.flush()
    assert log_on(kv).rows() == [*earlier, *batch]
    log.end_batch({"1.12c"}, {})   # 300
    store.flush()
    assert log.rows() == log_on(kv).rows() == [*earlier, batch[0]]
    log.append([row(700)], 3000.0)
    log.end_batch((), {})
    assert log.rows() == [*earlier, batch[0]]
