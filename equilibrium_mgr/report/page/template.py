"""The frame of the page, and the few pieces of HTML that it is made of.

A `str` is text and becomes `Markup` by being escaped; nothing else makes markup of it.
"""
from __future__ import annotations

import html
from string import Template
from typing import Dict, List, NewType, Sequence

from ...runtime.formatting import plural

Markup = NewType("Markup", str)

#: Of a table that is short but where names are extremely long.
SHORT_BYTES = 20_000

_PAGE = Template("""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
*{box-sizing:border-box}
body{margin:0 auto;max-width:960px;padding:12px;background:#fff;color:#1a1a1a;
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;
overflow-wrap:anywhere;-webkit-text-size-adjust:100%;print-color-adjust:exact}
h1{font-size:1.5em;margin:0 0 .3em}
h2{font-size:1.2em;margin:1.6em 0 .4em;border-bottom:1px solid #999;break-after:avoid}
p{margin:.4em 0;max-width:75ch}
.verdict{font-size:1.15em;border-left:5px solid #08519c;padding:.3em .8em}
.warning{border-left:5px solid #e08214;padding:.3em .8em;font-weight:bold}
.note{color:#444;font-size:.9em}
svg{display:block;width:100%;max-width:560px;height:auto;break-inside:avoid}
.scroll{overflow-x:auto;margin:.4em 0}
table{border-collapse:collapse;font-size:.9em;font-variant-numeric:tabular-nums}
th,td{padding:2px 8px;text-align:left;vertical-align:top;border-bottom:1px solid #ccc}
th,.n{overflow-wrap:normal}
thead th,thead .n{border-bottom:2px solid #666;vertical-align:bottom;white-space:normal}
tbody th{font-weight:normal;overflow-wrap:anywhere;min-width:6em}
.n{text-align:right;white-space:nowrap}
tr{break-inside:avoid}
summary{cursor:pointer;padding:.3em 0;font-weight:bold}
dt{font-weight:bold;margin-top:.4em}
dd{margin:0 0 0 1em}
@media (min-width:700px){dl{display:grid;grid-template-columns:18em 1fr;gap:.3em 1em}
dt,dd{margin:0}}
@page{size:A4;margin:13mm}
@media print{body{max-width:none;padding:0;font-size:9.5pt}.scroll{overflow:visible}
svg{max-width:120mm}table{font-size:8pt}th,td{padding:1px 4px}}
</style></head>
<body><main>
<h1>$title</h1>
$body
</main></body></html>""")


def page(title: str, parts: Sequence[Markup]) -> str:
    """The whole page."""
    return _PAGE.substitute(title=escaped(title), body="\n".join(parts))


def escaped(text: str) -> Markup:
    """The text as it stands in an element or an attribute. Names in a map may hold anything: what
    is not printable would make the page invalid."""
    if not text.isprintable():
        text = "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in text)
    return Markup(html.escape(text))


def paragraph(text: str, kind: str = "") -> Markup:
    """A paragraph. `kind`: verdict, warning, note or nothing."""
    return Markup(f'<p class="{kind}">{escaped(text)}</p>' if kind
                  else f"<p>{escaped(text)}</p>")


def section(title: str, *parts: Markup) -> Markup:
    """A part of the page under its heading."""
    return Markup(f"<section><h2>{escaped(title)}</h2>\n" + "\n".join(parts) + "</section>")


def folded(summary: str, *parts: Markup) -> Markup:
    """What the reader opens."""
    return Markup(f"<details><summary>{escaped(summary)}</summary>\n" + "\n".join(parts)
                  + "</details>")


def definitions(rows: Dict[str, str]) -> Markup:
    """Terms, and what is to be said of each."""
    return Markup("<dl>" + "".join([f"<dt>{escaped(term)}</dt><dd>{escaped(text)}</dd>"
                                    for term, text in rows.items()]) + "</dl>")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1,
          elsewhere: str = "", most_bytes: int = SHORT_BYTES) -> Markup:
    """A table that scrolls sideways where it is too wide. `texts`: columns from the left that are
    no numbers. Rows beyond `most_bytes` are counted only; `elsewhere`: the command that has all."""
    kinds = ["" if column < texts else ' class="n"' for column in range(len(head))]
    titles = "".join([f'<th scope="col"{kind}>{escaped(title)}</th>'
                      for kind, title in zip(kinds, head)])
    body: List[str] = []
    left = most_bytes
    for row in rows:
        cells = "".join([f"<td{kind}>{escaped(cell)}</td>"
                         for kind, cell in zip(kinds[1:], row[1:])])
        line = f'<tr><th scope="row">{escaped(row[0])}</th>{cells}</tr>'
        left -= len(line.encode())
        if left < 0:
            break
        body.append(line)
    more = len(rows) - len(body)
    rest = paragraph(f"{plural(more, 'more row')} left out"
                     + (f"; '{elsewhere}' has all of them." if elsewhere else "."), "note")
    return Markup('<div class="scroll" role="region" tabindex="0"><table><thead><tr>'
                  f"{titles}</tr></thead><tbody>\n" + "\n".join(body) + "</tbody></table></div>"
                  + (rest if more else ""))
