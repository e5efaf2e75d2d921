"""The serve loop's controller, round by round, on a fake gateway."""
from __future__ import annotations

from typing import Any, List

import pytest
from builders import GIB, change_of, plan_of
from fakes import Desk, KeyValueStore
from rounds import kept, small_plan, uneven

from equilibrium_mgr import planning
from equilibrium_mgr.executor.walk import Walk


def test_off_sends_nothing() -> None:
    desk = Desk(uneven())
    assert desk.round() == "off" and desk.balancer.view is None      # nobody has asked
    desk.balancer.refresh_view()
    assert desk.round() == "off" and desk.balancer.view is not None
    assert desk.gateway.batches == [] and desk.jobs.waiting == []


def test_not_ready_is_waiting() -> None:
    desk = Desk(uneven(), active=True)
    desk.gateway.not_ready = "the mgr has no osd_stats yet"
    assert desk.round() == "waiting"
    assert desk.balancer.reason == "the mgr has no osd_stats yet"


def test_automatic_from_planning_to_balanced() -> None:
    desk = Desk(uneven(), active=True)
    assert desk.round() == "planning" and desk.gateway.sent == []
    assert desk.jobs.run() == 1 and desk.wakes > 0
    assert desk.round() == "moving"
    assert len(desk.gateway.sent) == 8 == len(set(desk.gateway.sent))
    assert desk.round(60) == "moving" and len(desk.gateway.sent) == 8
    desk.gateway.arrive()
    states = [desk.round(60)]
    for _ in range(3):
        desk.jobs.run()
        states.append(desk.round(60))
    assert states[-1] == "balanced" and len(desk.gateway.sent) == 8
    desk.jobs.run()
    assert desk.round(60) == "balanced" and desk.jobs.waiting == []
    assert sorted(len([u for u in desk.gateway.cluster.up.values() if u == [o]])
                  for o in range(3)) == [4, 4, 4]


def test_balanced_cluster_that_changes_is_planned_again() -> None:
    desk = Desk(uneven(), active=True)
    for _ in range(6):
        desk.round(60)
        desk.jobs.run()
        desk.gateway.arrive()
    assert desk.round() == "balanced"
    desk.gateway.cluster.osd(1, used=60 * GIB)
    assert desk.round(60) == "planning"


def test_throttled_by_the_misplaced_limit() -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27  # 32 of 120 copies, a margin left: three PGs of ten
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "moving" and len(desk.gateway.sent) == 3
    assert desk.round(60) == "throttled" and "misplaced" in desk.balancer.reason
    assert len(desk.gateway.sent) == 3
    desk.gateway.arrive()
    assert desk.round(60) == "moving" and len(desk.gateway.sent) == 4


def test_ledger_holds_the_budget_where_ceph_has_not_noticed() -> None:
    """Right after the upmap acting still equals up and nothing is misplaced by pg_status."""
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27
    desk.balancer.execute("p", kept(desk))
    desk.round()
    desk.gateway.cluster.acting.clear()
    assert desk.round(1) == "throttled" and len(desk.gateway.sent) == 3
    assert desk.balancer.view is not None
    assert desk.balancer.view.misplaced_ratio == 0.25


def test_ledger_counts_what_pgs_hold_now() -> None:
    """The plan is old: it saw one object per PG where there are ten by now."""
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27
    old = plan_of([change_of("1.%x" % ps, [0], [1], objects=1) for ps in range(6)])
    desk.balancer.execute("p", kept(desk, plan=old))
    desk.round()
    desk.gateway.cluster.acting.clear()           # Ceph has not noticed yet
    assert desk.round(1) == "throttled" and len(desk.gateway.sent) == 3


def test_report_between_the_look_and_our_upmaps_is_no_arrival() -> None:
    """Somebody else's change makes epoch 101, ours land in 102; PGs have reported at 101."""
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27
    desk.balancer.execute("p", kept(desk))
    cluster = desk.gateway.cluster

    def foreign_epoch() -> None:
        cluster.epoch = 101
        for pgid, record in cluster.records.items():
            cluster.records[pgid] = record._replace(reported_epoch=101)
    desk.gateway.before_send_check = foreign_epoch
    desk.round()
    assert cluster.epoch == 102
    desk.gateway.before_send_check = lambda: None
    cluster.acting.clear()                        # our PGs have not peered yet
    assert desk.round(1) == "throttled" and len(desk.gateway.sent) == 3


def test_single_move_above_the_limit_is_told() -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.01
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "moving" and desk.gateway.sent == ["1.0"]
    assert "1.0" in desk.balancer.reason and "limit" in desk.balancer.reason


def test_misplaced_copies_of_others_count() -> None:
    desk = Desk(uneven())
    desk.gateway.ratio = 0.27
    desk.gateway.cluster.pg_status = {"misplaced_objects": 29, "misplaced_total": 120}
    desk.balancer.execute("p", kept(desk))
    assert desk.round() == "throttled" and desk.gateway.sent == []


def test_own_limit_goes_before_the_mgr_s() -> None:
    desk = Desk(uneven(), max_misplaced_ratio=0.1)
    desk.balancer.execute("p", kept(desk))
    desk.round()
    assert len(desk.gateway.sent) == 1


@pytest.mark.parametrize("builtin_was_active, states", [
    (True, ["waiting", "waiting", "planning"]), (False, ["planning", "planning", "planning"])])
def test_nothing_is_sent_until_the_builtin_balancer_has_noticed(
        builtin_was_active: bool, states: List[str]) -> None:
    desk = Desk(uneven(), active=True)
    desk.balancer.switch_on(builtin_was_active)
    assert [desk.round(0), desk.round(59), desk.round(2)] == states
    assert desk.gateway.sent == []


def test_foreign_upmaps_prolong_the_wait() -> None:
    desk = Desk(uneven(), active=True)
    desk.round()
    desk.balancer.switch_on(True)
    assert desk.round(50) == "waiting"
    desk.gateway.set_items("1.0", [0], [(0, 2)])
    assert desk.round(5) == "waiting"
    assert desk.round(50) == "waiting"            # 105 s after `on`: only a look tells, and it did
    assert desk.round(50) == "waiting" and desk.round(11) == "planning"


@pytest.mark.parametrize("trouble, words", [
    ("connected", "no connection"), ("builtin", "ceph balancer off"), ("flag", "norebalance"),
    ("client", "set-require-min-compat-client luminous")])
def test_blocked(trouble: str, words: str) -> None:
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))
    desk.gateway.connected = trouble != "connected"
    desk.gateway.builtin = trouble == "builtin"
    if trouble == "flag":
        desk.gateway.cluster.extra["flags"] = "norebalance"
    if trouble == "client":
        desk.gateway.cluster.extra["require_min_compat_client"] = "jewel"
    assert desk.round() == "blocked" and words in desk.balancer.reason
    assert desk.gateway.sent == []


def test_degraded_pool_blocks() -> None:
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))
    desk.gateway.cluster.pg_status = {"pgs_by_pool_state": [
        {"pool_id": 1, "pg_state_counts": [{"state_name": "active+degraded", "count": 2}]}]}
    assert desk.round() == "blocked"
    assert desk.balancer.reason == "pool 'pool1' has 2 PGs degraded"


def test_execute_goes_through_and_ends() -> None:
    desk = Desk(uneven(), max_moves_per_round=2)
    assert desk.balancer.execute("p", kept(desk))
    for _ in range(8):
        desk.round(60)
        desk.gateway.arrive()
    assert desk.gateway.sent == ["1.0", "1.1", "1.2", "1.3"]
    assert [len(batch) for batch in desk.gateway.batches] == [2, 2]
    assert desk.balancer.walk is None and desk.balancer.state == "off"
    last = desk.balancer.last_walk or {}
    assert (last["outcome"], last["sent_moves"], last["dropped_moves"]) == ("through", 4, 0)
    assert "execution" not in desk.kv.values


def test_second_plan_is_refused_while_one_is_executed() -> None:
    desk = Desk(uneven())
    assert desk.balancer.execute("p", kept(desk))
    assert not desk.balancer.execute("q", kept(desk, "q"))


def test_what_the_monitor_drops_is_reported_and_not_sent_again() -> None:
    desk = Desk(uneven())
    desk.gateway.drops, desk.gateway.refuses = {"1.1"}, {"1.2"}
    desk.balancer.execute("p", kept(desk))
    for _ in range(4):
        desk.round(60)
        desk.gateway.arrive()
    assert sorted(desk.gateway.sent) == ["1.0", "1.1", "1.2", "1.3"]
    assert {pgid: item.reason for pgid, item in desk.balancer.rejected.items()} == {
        "1.1": "the monitor dropped its upmap items",
        "1.2": "the monitor refused it: no such pg"}
    assert (desk.balancer.last_walk or {})["dropped_moves"] == 2


def test_rejected_pgs_are_left_out_until_crush_changes() -> None:
    desk = Desk(uneven(), active=True)
    desk.gateway.drops = {"1.0"}
    for _ in range(8):
        desk.round(60)
        desk.jobs.run()
        desk.gateway.arrive()
    assert desk.gateway.sent.count("1.0") == 1 and "1.0" in desk.balancer.rejected
    desk.gateway.cluster.extra["crush_version"] = 99
    desk.round(60)
    assert desk.balancer.rejected == {}


def test_silent_monitor_does_not_hang_the_plan() -> None:
    desk = Desk(uneven())
    desk.gateway.ignores = {"1.0"}
    desk.balancer.execute("p", kept(desk, plan=small_plan(1)))
    for _ in range(6):
        desk.round(60)
    assert desk.gateway.sent == ["1.0"] * 3 and desk.balancer.walk is None


def test_pool_deleted_before_its_moves() -> None:
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))
    cluster = desk.gateway.cluster
    cluster.pools.clear()
    cluster.up.clear()
    for _ in range(3):
        desk.round(60)
    last = desk.balancer.last_walk or {}
    assert last["outcome"] == "given up: its pool or PG is gone" and desk.gateway.sent == []
    assert last["dropped"][0] == {"pgid": "1.0", "reason": "its pool or PG is gone"}


def test_full_target_does_not_hold_up_the_rest_for_ever() -> None:
    desk = Desk(uneven())
    desk.gateway.cluster.osd(1, used=84 * GIB)
    changes = [change_of("1.0", [0], [1]), change_of("1.1", [0], [2])]
    desk.balancer.execute("p", kept(desk, plan=plan_of(changes)))
    for _ in range(6):
        desk.round(60)
        desk.gateway.arrive()
    assert desk.gateway.sent == ["1.1"] and desk.balancer.walk is None
    assert (desk.balancer.last_walk or {})["dropped"] == [
        {"pgid": "1.0", "reason": "osd.1 would pass its fill limit of 0.880 meanwhile"}]


def test_switch_off_stops() -> None:
    desk = Desk(uneven(), max_moves_per_round=1)
    desk.balancer.execute("p", kept(desk))
    desk.round()
    assert desk.balancer.switch_off() == "p"
    for _ in range(3):
        desk.round(60)
        desk.gateway.arrive()
    assert desk.gateway.sent == ["1.0"] and desk.balancer.state == "off"
    assert "execution" not in desk.kv.values
    assert "ceph equilibrium off" in (desk.balancer.last_walk or {})["outcome"]


def test_switch_off_drops_a_plan_that_waits_to_be_sent() -> None:
    desk = Desk(uneven(), active=True)
    desk.round()
    desk.jobs.run()
    desk.options["active"] = False
    assert desk.balancer.switch_off() is None
    assert desk.round() == "off" and desk.gateway.sent == []


def test_option_alone_switches_automatic_moves_off() -> None:
    desk = Desk(uneven(), active=True, max_moves_per_round=1)
    desk.round()
    desk.jobs.run()
    desk.round()
    desk.options["active"] = False
    assert desk.round(60) == "off" and len(desk.gateway.sent) == 1


def test_switch_off_within_a_round_leaves_nothing_to_resume() -> None:
    """`off` comes from the commands' thread at any moment of the loop's round."""
    desk = Desk(uneven())
    desk.balancer.execute("p", kept(desk))

    def command_from_another_thread() -> None:
        desk.balancer.switch_off()
    desk.gateway.before_send_check = command_from_another_thread
    desk.round()
    assert desk.gateway.sent == []
    after_failover = Desk(uneven(), kv=KeyValueStore(desk.kv.values))
    after_failover.round()
    assert after_failover.gateway.sent == []


def test_switch_off_just_before_an_automatic_batch_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The round has its plan in hand already when `off` comes."""
    desk = Desk(uneven(), active=True)
    desk.round()
    desk.jobs.run()

    def begin_meanwhile(*args: Any) -> Walk:
        desk.options["active"] = False
        desk.balancer.switch_off()
        return Walk(*args)
    monkeypatch.setattr("equilibrium_mgr.executor.balancer.Walk", begin_meanwhile)
    desk.round()
    assert desk.gateway.sent == []
    assert desk.round() == "off" and desk.gateway.sent == []


def test_planner_that_fails_does_not_end_the_loop(mocker: Any) -> None:
    desk = Desk(uneven(), active=True)
    broken = mocker.patch.object(planning, "make_plan", side_effect=RuntimeError("no"))
    desk.round()
    desk.jobs.run()
    assert desk.planning.in_the_making() == {} and desk.balancer.rejected == {}
    mocker.stop(broken)
    assert desk.round(60) == "planning" and desk.jobs.run() == 1
    assert desk.round(60) == "moving"


@pytest.mark.parametrize("cooldown", [0, 3600])
def test_what_turns_out_to_be_done_without_an_answer_cools_down(cooldown: int) -> None:
    desk = Desk(uneven(), pg_cooldown=cooldown)
    desk.gateway.ignores = {"1.0"}
    desk.balancer.execute("p", kept(desk, plan=small_plan(1)))
    desk.round()
    change, = desk.gateway.batches[0]
    desk.gateway.ignores = set()
    desk.gateway.set_items("1.0", change.raw, change.items)   # the monitor was only late
    desk.round(60)
    desk.gateway.arrive()
    desk.round(60)
    assert desk.gateway.sent == ["1.0"] and desk.balancer.walk is None
    other, = {0, 1, 2} - set(change.raw) - set(change.up_after)
    again = change_of("1.0", change.raw, (other,), before=change.up_after)
    desk.balancer.execute("q", kept(desk, "q", plan_of([again])))
    desk.round(60)
    assert desk.gateway.sent == (["1.0"] if cooldown else ["1.0", "1.0"])
