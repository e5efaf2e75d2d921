"""The page holds together, fetches nothing, and tells the same as other commands."""

from __future__ import annotations

import errno
from typing import Callable, Dict

from tests.report.page.html_reader import Page

from equilibrium_mgr.report.answer import Table
from equilibrium_mgr.report.cluster.cluster_tables import class_table, pool_table
from equilibrium_mgr.runtime.formatting import format_bytes, format_duration, format_percent
from mgr_stub.console.session import Session

from ..asking import ask, optimize, refused, run, upmap_items

SVG = 'xmlns="http://www.w3.org/2000/svg"'   # a name; nothing is fetched


def page(session: Session, arguments: str = "") -> Page:
    """The parsed page; what every page has to be is checked."""
    html = run(session, f"equilibrium report {arguments}".strip())
    found = Page(html)
    assert html.startswith("<!DOCTYPE html>\n<html lang=\"en\">")
    names = [name for name, _ in found.tags]
    assert names.count("title") == names.count("h1") == 1
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(names)
    for name, attributes in found.tags:
        assert not {"src", "href", "srcset", "action", "data"} & set(attributes), name
        assert not any(key.startswith("on") for key in attributes), attributes
        assert name != "th" or attributes.get("scope") in ("col", "row")
        if name == "svg":
            assert attributes["role"] == "img" and attributes["aria-label"]
    assert not any(word in html.replace(SVG, "") for word in (
        "http:", "https:", "url(", "@import", "javascript:"))
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [
        attributes for name, attributes in found.tags if name == "meta"]
    return found


def check(found: Page, shown: Table) -> None:
    """The page has the table as text screens have it."""
    titles = [title.rstrip("<") for title in shown[0].split("|")]
    assert found.table(*titles) == [dict(zip(titles, row)) for row in shown[1]] != []


def test_figures_of_a_plan_are_those_of_eval(session: Session) -> None:
    run(session, "config set mgr mgr/equilibrium/max_backfills_per_osd 2")
    optimize(session)
    found, known = page(session, "p"), ask(session, "eval p")
    check(found, class_table(known["classes"]))
    check(found, pool_table(known["pools"]))
    now, then = known["room"], known["planned_room"]
    assert (f"{format_bytes(now['bytes'])} (osd.{now['limiting_osd']}) now,"
            f" {format_bytes(then['bytes'])} (osd.{then['limiting_osd']}) with p"
            ) in found.text
    verdict, = ask(session, "report p")["verdict"]
    expected = f"about {format_duration(known['expected_seconds'])} ({known['expected_from']})"
    assert verdict.startswith(
        f"Plan p moves {known['moves']} shards, {format_bytes(known['bytes'])}, in {expected}: then"
        f" the pools have room for {format_bytes(then['bytes'])} more data instead of"
        f" {format_bytes(now['bytes'])}, and the fullest OSD of class ")
    for row in known["classes"]:
        highest, later, bound = (format_percent(row[key]) for key in (
            "max_utilization", "planned_max_utilization", "bound_utilization"))
        assert (f"of class {row['device_class']} goes from {highest}% to {later}%"
                f" (the rules allow {bound}%)") in verdict
    assert verdict in found.text and found.text.count(expected) == 1
    assert "up to 2 shards to an OSD" in found.text and "at any time" in found.text
    status = ask(session, "status")
    limit = format_percent(status["limits"]["max_misplaced_ratio"])
    assert f"no move is sent that makes it more than {limit}%" in found.text
    assert [(row["OPTION"], row["VALUE"], row["DEFAULT"]) for row in found.table("OPTION")] == [
        (one["name"], one["value"], one["default"]) for one in status["options"]]


def test_the_moves_are_those_of_the_plan(session: Session) -> None:
    plan = optimize(session)
    found = page(session, "p")
    rows = found.table("PG", "SHARDS", "COMMAND")
    assert [row["COMMAND"] for row in rows] == ask(session, "show p")["commands"]
    sizes: Dict[str, int] = {}
    for move in plan["moves"]:
        sizes[move["pgid"]] = sizes.get(move["pgid"], 0) + move["bytes"]
        shards, = [row["SHARDS"] for row in rows if row["PG"] == move["pgid"]]
        assert f"osd.{move['from']} to osd.{move['to']}" in shards.split(", ")
    assert {row["PG"]: row["SIZE"] for row in rows} == {
        pgid: format_bytes(size) for pgid, size in sizes.items()}


def test_the_rollback_restores_what_each_pg_had(session: Session) -> None:
    run(session, "equilibrium optimize first --max-moves 20", "equilibrium execute first",
        "sim run idle")
    before = upmap_items(session)
    assert before
    changed = optimize(session, "p")["upmap_items"]
    assert set(changed) & set(before), "a PG that has items already"
    rollback = ask(session, "report p")["rollback"]
    assert f"{len(rollback)} commands that do so without equilibrium" in page(session, "p").text
    for line in run(session, "equilibrium show p").splitlines():
        if line.startswith("ceph osd "):
            run(session, line)
    assert upmap_items(session) != before
    run(session, *rollback)
    assert upmap_items(session) == before


def test_a_plan_that_is_carried_out(session: Session) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run 5m", "equilibrium eval", "sim run 5s")
    text, known = page(session, "p").text, ask(session, "eval p")
    assert "The plan is being carried out" in text and "outdated" not in text
    assert f" {known['applicable_changes']} of its " in text


def test_what_has_been_sent_moves_though_nothing_of_the_plan_is_left(session: Session) -> None:
    optimize(session, "p --max-moves 5")
    run(session, "sim backfill rate 20M", "equilibrium execute p", "sim run 2m",
        "equilibrium eval", "sim run 5s")
    assert ask(session, "status")["moving"]["shards"] > 0
    assert ask(session, "eval p")["applicable_changes"] == 0
    assert "Plan p has nothing left to be moved: the fullest OSD" in page(session, "p").text
    run(session, "equilibrium rm p", "equilibrium freeze", "sim run 10s")
    text = page(session, "freeze-1").text
    assert "Plan freeze-1 moves no data" in text and "cut short" not in text


def test_refusals(open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    assert refused(session, "equilibrium report nosuch")[1] == "no plan is named 'nosuch'"
    assert refused(session, "equilibrium report")[0] == -errno.EAGAIN   # nothing was seen yet
    run(session, "sim run 1m")
    answer = ask(session, "report")
    assert answer["plan"] is None and answer["html"].startswith("<!DOCTYPE html>")
    assert answer["picture"].startswith('<svg xmlns="http://www.w3.org/2000/svg"')
