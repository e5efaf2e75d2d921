"""Every command in every format: return codes, types, units."""

from __future__ import annotations

import json
from typing import Any, Dict, List


from mgr_stub.console.session import Session

from .asking import ask, by, optimize, refused, run

#: Reading commands; a plan `p` is ready. The keys of their JSON stand in tests/screens/golden.
READS = ("status", "eval", "eval vms", "eval --fail 1", "eval --worst-failure", "eval p",
         "eval p --aims", "show p", "dump p", "ls", "history", "pool ls", "explain",
         "explain osd.3", "explain vms", "explain 2.1f", "dump-state", "dump-state --anonymous")
#: Writing commands, in an order in which each can be carried out after a plan `p` is ready.
WRITES = ["optimize q", "pool add vms backup", "pool rm vms", "execute p", "off", "on",
          "off", "rm q", "reset"]


def ratio(value: Any) -> bool:
    return isinstance(value, float) and 0.0 <= value <= 1.0


def raw_bytes(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0


def test_reads_in_every_format(any_session: Session) -> None:
    optimize(any_session)
    for line in READS:
        answers = {}
        for name in ("plain", "json", "json-pretty"):
            rc, out, err = any_session.command(f"equilibrium {line} --format {name}")
            assert (rc, err) == (0, ""), line
            answers[name] = out
        compact = json.loads(answers["json"])
        assert json.loads(answers["json-pretty"]) == compact, line
        assert "\n" not in answers["json"].rstrip("\n"), line
        assert answers["json-pretty"].count("\n") > 2, line
        assert answers["plain"].strip(), line
        assert any_session.command("equilibrium " + line)[1] == answers["plain"]


def test_writes_in_json(any_session: Session) -> None:
    """Their plain answers stand in tests/screens/golden."""
    optimize(any_session)
    for line in WRITES:
        assert isinstance(ask(any_session, line), dict), line


def test_other_formats(session: Session) -> None:
    optimize(session)
    plans = ask(session, "ls")
    for line in (*READS, *WRITES):
        rc, text = refused(session, f"equilibrium {line} --format xml")
        assert rc == -22 and "format" in text, line
    assert ask(session, "ls") == plans
    assert not ask(session, "status")["active"]


def test_status_types(any_session: Session) -> None:
    optimize(any_session)
    run(any_session, "equilibrium execute p")
    status = ask(any_session, "status")
    assert isinstance(status["state"], str) and isinstance(status["reason"], str)
    assert status["active"] is False and status["builtin_balancer_active"] is False
    assert isinstance(status["osdmap_epoch"], int)
    assert seconds(status["snapshot_age_seconds"]) and seconds(status["next_run_seconds"])
    assert ratio(status["misplaced_ratio"])
    assert ratio(status["limits"]["max_misplaced_ratio"])
    assert all(raw_bytes(number) for number in status["moving"].values())
    execution = status["execution"]
    assert execution["plan"] == "p"
    assert all(raw_bytes(execution[key]) for key in (
        "planned_moves", "sent_moves", "done_moves", "dropped_moves"))
    assert status["planning"] == [] and status["rejected"] == []
    for row in status["classes"]:
        assert all(ratio(row[key]) for key in (
            "utilization", "max_utilization", "min_utilization", "stddev", "soon_max_utilization",
            "planned_max_utilization", "bound_utilization"))
        assert raw_bytes(row["size_bytes"]) and raw_bytes(row["used_bytes"])
    run(any_session, "sim run 10m")
    progress = ask(any_session, "status")["progress"]
    assert set(progress) == {
        "bytes_total", "bytes_done", "bytes_per_second", "eta_seconds", "eta_osd",
        "eta_least_seconds", "eta_most_seconds", "eta_unknown_reason"}
    assert raw_bytes(progress["bytes_total"]) and seconds(progress["eta_seconds"])


def check_pools(pools: List[Dict[str, Any]]) -> None:
    for figures in pools:
        assert all(raw_bytes(figures[key]) for key in (
            "id", "pg_num", "stored", "free_bytes", "limiting_osd", "max_avail",
            "best_free_bytes"))
        assert ratio(figures["percent_used"]) and isinstance(figures["name"], str)


def check_rows(classes: List[Dict[str, Any]], *prefixes: str) -> None:
    assert [row["device_class"] for row in classes] == ["hdd", "ssd"]
    for row in classes:
        for prefix in prefixes:
            assert all(ratio(row[prefix + key]) for key in (
                "max_utilization", "min_utilization", "stddev"))
            assert raw_bytes(row[prefix + "fullest_osd"])
        assert ratio(row["utilization"]) and ratio(row["bound_utilization"])
        assert row["min_utilization"] <= row["utilization"] <= row["max_utilization"]
        assert sum(step["osds"] for step in row["histogram"]) == row["osds"]
        assert raw_bytes(row["size_bytes"]) and raw_bytes(row["used_bytes"])


def test_eval_types(any_session: Session) -> None:
    plan = optimize(any_session)
    now = ask(any_session, "eval")
    check_rows(now["classes"], "", "soon_")
    check_pools(now["pools"])
    assert len(now["pools"]) == 6
    vms = by("name", now["pools"])["vms"]
    assert ask(any_session, "eval vms")["pools"] == [vms]
    effect = ask(any_session, "eval p")
    check_rows(effect["classes"], "", "soon_", "planned_")
    check_pools(effect["pools"])
    for row, figures in zip(effect["classes"], now["classes"]):
        same = [key for key in row if not key.startswith("planned_") and key != "histogram"]
        assert {key: row[key] for key in same} == {key: figures[key] for key in same}
        assert all(figures["soon_" + key] == figures[key] for key in (
            "max_utilization", "fullest_osd"))   # nothing is in flight
    for pool in effect["pools"]:
        assert raw_bytes(pool.pop("planned_free_bytes")) and raw_bytes(
            pool.pop("planned_limiting_osd"))
    assert effect["pools"] == now["pools"] and effect["room"] == now["room"]
    for figures in (effect["room"], effect["planned_room"]):
        assert raw_bytes(figures["bytes"]) and raw_bytes(figures["limiting_osd"])
    assert effect["moves"] == len(plan["moves"])
    assert effect["bytes"] == sum(move["bytes"] for move in plan["moves"])
