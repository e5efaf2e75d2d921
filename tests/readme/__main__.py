"""Prints again what pages show of the program: `python3 -m tests.readme`."""

from __future__ import annotations

from .blocks import PAGES, rendered

if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
