"""Commands and options as a page of Ceph's own documentation, doc/mgr/equilibrium.rst.

`python3 -m tests.readme.rst > equilibrium.rst`
"""

from __future__ import annotations

import re
import textwrap
from typing import Iterator, List

from .blocks import HANDBOOK

_HEAD = """.. mgr_module:: equilibrium

The *equilibrium* module fills the devices of a cluster equally, by their size. It moves placement
group shards, by upmap, from the fullest OSDs to emptier ones. It is enabled with:

.. prompt:: bash #

   ceph mgr module enable equilibrium
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_heading("Equilibrium Module", "="), _HEAD,
                      *_of_page("commands"), *_of_page("options")])


def _of_page(name: str) -> Iterator[str]:
    """A page of the handbook, without its first lines, which speak of the handbook."""
    text = (HANDBOOK / f"{name}.md").read_text(encoding="utf-8")
    common, entries = text.split("\n## For all of them\n\n")[1].split("\n## One by one\n")
    yield _heading(name.capitalize(), "-")
    # points that lead to another page say nothing here
    yield _inline(re.sub(r"^- (?:[^\n]|\n  )*\]\((?:[^\n]|\n  )*\n", "", common, flags=re.M))
    for title, body in re.findall(r"^### (\w[^\n]*)\n\n(.*?)(?=^### |\Z)", entries, re.M | re.S):
        yield from _command(body) if name == "commands" else _option(title, body)


def _command(body: str) -> Iterator[str]:
    syntax, told = re.findall(r"```text\n(.*?)\n```\n\n(.*)", body, re.S)[0]
    yield f".. prompt:: bash #\n\n   {syntax}\n\n{_filled(told)}\n"


def _option(name: str, body: str) -> Iterator[str]:
    paragraphs = [" ".join(part.split()) for part in body.strip().split("\n\n")]
    what, kind, default, more = re.findall(
        r"(.*) Type (\w+), default (`.*?`|empty)([^;]*);", paragraphs[0])[0]
    fields = [f":type: {kind}", f":default: {_inline(default)}"]
    if more:
        fields.append(f":range: {more[2:]}")
    told: List[str] = ["\n".join(fields), *map(_filled, [what, *paragraphs[1:]])]
    yield f".. confval:: {name}\n\n" + textwrap.indent("\n\n".join(told), "   ") + "\n"


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _filled(text: str) -> str:
    return textwrap.fill(_inline(text), 90, break_long_words=False, break_on_hyphens=False)


def _inline(text: str) -> str:
    text = re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text)
    return re.sub(r"`([^`]+)`", r"``\1``", text)


if __name__ == "__main__":
    print(page(), end="")
