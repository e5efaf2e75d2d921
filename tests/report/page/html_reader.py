"""Reads an HTML page strictly: tags must be balanced; tables, text and attributes are kept."""
from __future__ import annotations

from html.parser import HTMLParser
from typing import Dict, List, Optional, Tuple

_VOID = {"meta"}

Attributes = Dict[str, str]


class Page(HTMLParser):
    """A parsed page. Raises AssertionError for tags that are not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: List[Tuple[str, Attributes]] = []
        self.tables: List[List[List[str]]] = []   # rows of cells, the head first
        self.text = ""
        self._open: List[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], self._open

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open, (tag, self._open)
        assert self._open[-1] == tag, (tag, self._open)
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if "td" in self._open or "th" in self._open:
            self.tables[-1][-1][-1] += data

    def table(self, *head: str) -> List[Dict[str, str]]:
        """The rows of all tables that begin with these columns, as column → cell."""
        return [dict(zip(table[0], row)) for table in self.tables
                if tuple(table[0][:len(head)]) == head for row in table[1:]]
