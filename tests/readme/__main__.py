"""Prints the README's blocks anew: `python3 -m tests.readme`."""

from __future__ import annotations

from .blocks import README, rendered

if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(rendered(text), encoding="utf-8")
