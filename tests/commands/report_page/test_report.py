"""The page holds together, fetches nothing, and tells the same as other commands."""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict, List

import pytest
from tests.report.page.html_reader import Page

from equilibrium_mgr.runtime.formatting import format_bytes
from mgr_stub.console.session import Session

from ..asking import ask, optimize, refused, run, upmap_items

HOSTILE = '<script>alert(1)</script>'


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
    assert not any(word in html for word in ("http:", "https:", "url(", "@import", "javascript:"))
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [
        attributes for name, attributes in found.tags if name == "meta"]
    return found


def test_pages_of_all_releases(any_session: Session) -> None:
    state = page(any_session)
    assert "automatic balancing is off" in state.text.lower()
    assert "Nothing has been moved by equilibrium yet" in state.text
    optimize(any_session)
    plan = page(any_session, "p")
    release = any_session.cluster.release
    assert f"ceph version {release}." in plan.text and "equilibrium 0." in plan.text
    assert "e9b1a2f0-0000-4000-8000-00000000d390" in plan.text   # the fsid of the demo
    assert "UTC, osdmap epoch 42" in plan.text


def test_figures_are_those_of_other_commands(session: Session) -> None:
    optimize(session)
    found, figures = page(session, "p"), ask(session, "df p")
    plain = run(session, "equilibrium df p")
    rows = {row["POOL"]: row for row in found.table("POOL", "ID")}
    assert set(rows) == {pool["name"] for pool in figures["pools"]}
    for line in plain.splitlines():
        if line.split("  ")[0].strip() in rows:
            cells = rows[line.split("  ")[0].strip()]
            assert " ".join(line.split()) == " ".join(" ".join(cells.values()).split())
    room, planned = figures["room"], figures["planned_room"]
    assert (f"{format_bytes(room['bytes'])} now (osd.{room['limiting_osd']} is full first),"
            f" {format_bytes(planned['bytes'])} with p") in found.text
    osds = {f"osd.{osd['id']}": osd for osd in ask(session, "osds")["osds"]}
    assert osds
    for row in found.table("OSD", "CLASS"):
        assert row["%USE"] == f"{100 * osds[row['OSD']]['utilization']:.2f}"
        assert row["HOST"] == osds[row["OSD"]]["host"]
    assert {row["OSD"] for row in found.table("OSD", "CLASS")} == set(osds)


def test_moves_add_up(session: Session) -> None:
    plan = optimize(session)
    found = page(session, "p")
    assert f"{len(plan['moves'])} shards" in found.text
    matrix = found.table("FROM \\ TO")
    assert matrix[-1]["FROM \\ TO"] == "SUM"
    largest = found.table("PG", "POOL", "FROM")
    assert len(largest) == min(20, len(plan["moves"]))
    biggest = max(plan["moves"], key=lambda move: int(move["bytes"]))
    assert largest[0]["FROM"] == f"osd.{biggest['from']}" or largest[0]["SIZE"] in found.text


def commands_in(found: Page) -> List[str]:
    return [line for line in found.preformatted.splitlines() if line.startswith("ceph osd ")]


def test_the_rollback_restores_what_each_pg_had(session: Session) -> None:
    run(session, "equilibrium optimize first --max-moves 20", "equilibrium execute first",
        "sim run idle")
    before = upmap_items(session)
    assert before
    changed = optimize(session, "p")["upmap_items"]
    assert set(changed) & set(before), "a PG that has items already"
    rollback = ask(session, "report p")["rollback"]
    assert commands_in(page(session, "p")) == rollback
    for line in run(session, "equilibrium show p").splitlines():
        if line.startswith("ceph osd "):
            run(session, line)
    assert upmap_items(session) != before
    run(session, *rollback)
    assert upmap_items(session) == before


def test_the_rollback_of_a_plan_that_was_carried_out(session: Session) -> None:
    up = {pgid: list(osds) for pgid, osds in session.cluster.map.up.items()}
    optimize(session, "p --max-moves 10")
    run(session, "equilibrium execute p", "sim run 10m")
    rollback = ask(session, "report p")["rollback"]
    run(session, "equilibrium off", *rollback)
    assert {pgid: list(osds) for pgid, osds in session.cluster.map.up.items()} == up
    assert upmap_items(session) == {}


def test_an_outdated_plan_says_so(session: Session) -> None:
    optimize(session)
    assert "outdated" not in page(session, "p").text
    run(session, "sim osd out 3", "sim run 2m")
    found = page(session, "p")
    assert "The plan is outdated: it was made at osdmap epoch 42" in found.text
    assert ask(session, "report p")["outdated"] is True


def test_a_plan_that_is_carried_out(session: Session) -> None:
    optimize(session)
    run(session, "equilibrium execute p", "sim run 5m")
    text = page(session, "p").text
    assert "The plan is being carried out" in text and "outdated" not in text
    assert "under way" in page(session).text


def test_a_plan_without_moves(session: Session) -> None:
    run(session, "equilibrium on", "sim run idle", "equilibrium off", "sim run 3h")
    plan = optimize(session, "p --aim least-motion")
    found = page(session, "p")
    if not plan["moves"]:
        assert "Plan p moves nothing: the fullest OSD of class" in found.text
        assert not found.table("FROM \\ TO") and ask(session, "report p")["rollback"] == []
    assert found.table("STARTED (UTC)")


@pytest.fixture
def hostile_state(demo_state: Dict[str, Any]) -> Dict[str, Any]:
    """The demo with names that are markup."""
    for pool in demo_state["osd_dump"]["pools"]:
        if pool["pool"] == 2:
            pool["pool_name"] = HOSTILE
    for pool in demo_state["df_dump"]["pools"]:
        if pool["id"] == 2:
            pool["name"] = HOSTILE
    hosts = [bucket for bucket in demo_state["crush_dump"]["buckets"]
             if bucket["type_name"] == "host" and "~" not in bucket["name"]]
    old = hosts[0]["name"]
    for bucket in demo_state["crush_dump"]["buckets"]:
        bucket["name"] = bucket["name"].replace(old, "a&b\"'<c>") if (
            bucket["name"].split("~")[0] == old) else bucket["name"]
    return demo_state


def test_names_are_escaped(open_session: Callable[..., Session],
                           hostile_state: Dict[str, Any]) -> None:
    session = open_session(18, hostile_state)
    run(session, "sim run 1s")
    session.command("equilibrium status")
    optimize(session)
    found = page(session, "p")
    assert HOSTILE in {row["POOL"] for row in found.table("POOL", "ID")}
    assert "a&b\"'<c>" in {row["HOST"] for row in found.table("OSD", "CLASS")}
    assert HOSTILE not in run(session, "equilibrium report p")


def test_refusals(open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    assert refused(session, "equilibrium report nosuch")[1] == "no plan is named 'nosuch'"
    assert refused(session, "equilibrium report")[0] == -errno.EAGAIN   # nothing was seen yet
    run(session, "sim run 1m")
    answer = ask(session, "report")
    assert answer["plan"] is None and answer["html"].startswith("<!DOCTYPE html>")
    assert answer["picture"].startswith('<svg xmlns="http://www.w3.org/2000/svg"')
