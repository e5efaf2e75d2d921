"""HTML and SVG made of nested calls; text is escaped wherever it stands."""
from __future__ import annotations

import html
from typing import Iterable, List, Optional, Sequence

from ...runtime.time_slice import piecewise

_ROWS_AT_ONCE = 50   # before it gives way again
#: Names of more characters are broken over several lines.
_LONG = 30
#: HTML elements that have no end tag.
_VOID = frozenset(("meta", "br"))
#: Marks of columns in `table`.
LEFT, RIGHT = "", "n"


class Html(str):
    """Markup. Any other string is text, and is escaped where it becomes part of an element."""


def joined(parts: Iterable[str]) -> Html:
    """The parts one after the other, text among them escaped."""
    return Html("".join([part if isinstance(part, Html) else _escaped(part) for part in parts]))


def element(name: str, /, *children: str, **attributes: object) -> Html:
    """An element with its children. In attributes `class_` stands for class and `_` for a dash;
    those that are None are left out."""
    start = name + "".join([
        f' {_attribute(key)}="{_escaped(str(value))}"'
        for key, value in attributes.items() if value is not None])
    if name in _VOID:
        return Html(f"<{start}>")
    return Html(f"<{start}>{joined(children)}</{name}>")


def shape(name: str, /, **attributes: object) -> Html:
    """An SVG element without children."""
    return element(name, **attributes)


def table(label: str, header: Sequence[str], kinds: Sequence[str],
          rows: Iterable[Sequence[str]]) -> Html:
    """A table that scrolls sideways where it is too wide. `kinds`: LEFT or RIGHT, or another class
    of the cells, for each column; the first cell of a row is its head."""
    head = element("thead", element("tr", *[
        element("th", title, scope="col", class_=kind or None)
        for title, kind in zip(header, kinds)]))
    body: List[str] = []
    for row in piecewise(rows, _ROWS_AT_ONCE):
        cells = [element("td" if column else "th", cell, scope=None if column else "row",
                         class_=_class_of(cell, kind))
                 for column, (cell, kind) in enumerate(zip(row, kinds))]
        body.append(element("tr", *cells))
    return scrolling(label, element("table", head, element("tbody", *body)))


def _class_of(cell: str, kind: str) -> Optional[str]:
    return kind or ("long" if len(cell) > _LONG else None)


def scrolling(label: str, content: Html) -> Html:
    """A region that scrolls sideways on a narrow screen, by keyboard too."""
    return element("div", content, class_="scroll", role="region", aria_label=label, tabindex="0")


def section(title: str, *children: str, is_short: bool = False) -> Html:
    """A part of the page under its heading. Short ones stay on one sheet of paper."""
    return element("section", element("h2", title), *children, class_="keep" if is_short else None)


def paragraph(*children: str, class_: str = "") -> Html:
    """A paragraph of text."""
    return element("p", *children, class_=class_ or None)


def folded(summary: str, *children: str) -> Html:
    """Content that the reader opens."""
    return element("details", element("summary", summary), *children)


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _escaped(text: str) -> str:
    if not text.replace("\n", "").isprintable():
        # names in a map may hold anything; what is no text would make the page invalid
        text = "".join(c if c.isprintable() or c in "\n\u00a0" else "\ufffd" for c in text)
    return html.escape(text)
