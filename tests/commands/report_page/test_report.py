"""The page holds together, fetches nothing, and tells the same as other commands."""

from __future__ import annotations

import errno
from typing import Callable

from tests.report.page.html_reader import Page

from mgr_stub.console.session import Session

from ..asking import ask, optimize, refused, refuses, run, upmap_items

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
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
    assert not any(word in html.replace(SVG, "") for word in (
        "http:", "https:", "url(", "@import", "javascript:"))
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [
        attributes for name, attributes in found.tags if name == "meta"]
    return found


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


def test_refusals(open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    assert refused(session, "equilibrium report nosuch")[1] == "no plan is named 'nosuch'"
    refuses(session, "report", errno.EAGAIN)   # nothing was seen yet
    run(session, "sim run 1m")
    answer = ask(session, "report")
    assert answer["plan"] is None
    assert answer["html"].startswith("<!DOCTYPE html>")
    assert answer["picture"].startswith('<svg xmlns="http://www.w3.org/2000/svg"')
