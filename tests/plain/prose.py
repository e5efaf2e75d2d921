"""How often docstrings, comments and pages use constructions that have to be read twice."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import Iterator, List, Tuple

from .code import parsed

#: Each hides who does what, or puts a word of ours in the place of a plain one.
_ODD = (
    r"of what|of which|by which|to which|from which|on which|for which|that which|has it"
    r"|have it|but for|anew|beyond|may have|is to be|are to be|is had|leads to|where nothing"
    r"|where that|what is|what was|what has|what it|what they|what moves|whatever|of those"
    r"|as one|of such|true of|true where|false where|false of|none where|is told|are told|tells"
    r"|has \w+ed? be|meanwhile|by itself")
_ODD_WORDS = re.compile(r"\b(" + _ODD + r")\b", re.IGNORECASE)
#: Code, tables, links and names in a page are not prose.
_NO_PROSE = re.compile(
    r"```.*?```|^(?:    |\|)[^\n]*$|`[^`\n]*`|https?:\S+|\[[^\]]*\]\([^)]*\)",
    re.DOTALL | re.MULTILINE)
_DOCUMENTED = (ast.FunctionDef, ast.ClassDef, ast.Module)


def odd_per_thousand(folder: Path, *suffixes: str) -> Tuple[float, List[str]]:
    """Returns odd constructions per 1,000 words of a file, or of all files of a folder with these
    suffixes, and each place as "file: text"."""
    words = 0
    places: List[str] = []
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    for path in paths:
        if path.suffix not in suffixes:
            continue
        texts = _of_page(path) if path.suffix == ".md" else _of_code(path)
        for text in texts:
            words += len(text.split())
            places += [f"{path.name}: {_around(text, found)}"
                       for found in _ODD_WORDS.finditer(text)]
    return 1000.0 * len(places) / max(1, words), places


def _around(text: str, found: re.Match[str]) -> str:
    return text[max(0, found.start() - 30):found.end() + 30]


def _of_page(path: Path) -> Iterator[str]:
    text = _NO_PROSE.sub(" X ", path.read_text(encoding="utf-8"))
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*] ", text):
        yield " ".join(paragraph.split())


def _of_code(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(parsed(path)):
        text = ast.get_docstring(node) if isinstance(node, _DOCUMENTED) else None
        if text:
            yield " ".join(text.split())
    yield from _comments(source)


def _comments(source: str) -> Iterator[str]:
    """Yields each comment, with those of consecutive lines as one."""
    lines: List[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] != last + 1:
            yield " ".join(lines)
            lines = []
        lines.append(token.string.lstrip("#: "))
        last = token.start[0]
    if lines:
        yield " ".join(lines)
