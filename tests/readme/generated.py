"""Commands and options as pages list them, from the help and the option table of the code."""
from __future__ import annotations

import re
import textwrap
from typing import Any, Dict, Iterator

from mgr_stub.console.session import Session
from mgr_stub.mgr.handlers import Handler


def commands(session: Session) -> Iterator[str]:
    """A section for each command: syntax, help, and the capability that it needs."""
    for name, handler in session.host.handlers.items():
        cap = "r" if handler.perm == "r" else "rw"
        told = _with_options_quoted(f"{handler.description}. Needs `mgr 'allow {cap}'`.")
        yield (f"### {name.split(' ', 1)[1]}\n\n```text\nceph {name}{_syntax(handler)}\n```\n\n"
               f"{_filled(told)}\n")


def _syntax(handler: Handler) -> str:
    words = []
    for argument in handler.arguments:
        option = f"--{argument.name.replace('_', '-')}"
        value = re.search(f"{option} ([A-Z|a-z:=-]+)", handler.description)
        if argument.name == "format":
            continue
        if argument.kind is bool:
            words.append(f"[{option}]")
        elif value is not None:
            words.append(f"[{option} {value[1]}]")
        else:
            shown = f"<{argument.name}>{'...' if argument.many else ''}"
            words.append(shown if argument.required else f"[{shown}]")
    return "".join(f" {word}" for word in words)


def _with_options_quoted(text: str) -> str:
    value = r"=-KEY| [A-Z][A-Zx:=|]*| json\b| [a-z-]+\|[a-z|-]+"
    return re.sub(rf"(--[a-z][\w-]*(?:{value})?)", r"`\1`", text)


def options(session: Session) -> Iterator[str]:
    """A section for each option: what it is, type, default and range, and what is like it."""
    own = [option["name"] for option in session.module.MODULE_OPTIONS]
    for option in session.module.MODULE_OPTIONS:
        others = [f"[{name}](#{name})" if name in own else f"`{name}`"
                  for name in option["see_also"]]
        told = (f"{_sentence(option['desc'])} {_kind(option)}", option["long_desc"],
                f"See also: {', '.join(others)}.")
        yield f"### {option['name']}\n\n" + "\n\n".join(map(_filled, told)) + "\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _kind(option: Dict[str, Any]) -> str:
    default = str(option["default"])
    told = f"Type {option['type']}, default " + (
        f"`{default.lower() if option['type'] == 'bool' else default}`" if default else "empty")
    if "min" in option:
        told += f", from {option['min']:,.10g} to {option['max']:,.10g}"
    return f"{told}; {'holds at once' if option['runtime'] else 'holds after a restart'}."
