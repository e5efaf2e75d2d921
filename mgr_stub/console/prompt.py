"""`--console`: a prompt with history and completion for the commands of one session."""

from __future__ import annotations

import cmd
import errno
import sys
from textwrap import shorten
from typing import Callable, List, Optional

from ..errors import Answer, StubError, invalid
from ..mgr.handlers import find_handler
from . import mon_commands, sim_commands
from .session import Session

try:
    import readline
except ImportError:   # no history and no completion then
    readline = None   # type: ignore[assignment]

_HELP = """\
A simulated mgr and monitor: nothing reaches a real cluster. 'ceph' in front of a line may be left
out. Plans are made of the state that was loaded; 'sim run 2h' lets time pass.
help WORDS                        of a command: its arguments
sim help                          what can happen to the cluster
exit                              as does the end of input
"""


class Prompt(cmd.Cmd):
    """Reads lines of stdin, a terminal or not, and hands the answers to `show`."""

    def __init__(self, session: Session, show: Callable[[int, str, str], int]) -> None:
        super().__init__()
        self._session = session
        self._show = show
        self._is_terminal = sys.stdin.isatty()
        self._runs = False   # a command
        self.prompt = ""
        if self._is_terminal:
            self.prompt = "equilibrium> "
        #: Exit code of the first command that failed; 0 at a terminal, because people have seen it.
        self.code = 0
        if readline is not None:
            readline.set_completer_delims(" \t")

    def run(self) -> int:
        """Runs commands until `exit` or the end of input; returns `code`."""
        if self._is_terminal:
            self.intro = "'help' lists the commands, the tab key completes them, 'exit' ends"
        while True:
            try:
                self.cmdloop()
                return self.code
            except KeyboardInterrupt:
                if self._runs:   # the interrupted command is half done
                    return self._show(-errno.EINTR, "", "interrupted in a command: begin anew")
                print("^C")
                self.intro = None

    def onecmd(self, line: str) -> bool:
        words = line.split()
        if words in (["exit"], ["quit"], ["EOF"]):
            if words == ["EOF"] and self._is_terminal:
                print()
            return True
        self._runs = True
        code = 0
        if words[:1] == ["help"]:
            code = self._show(*self._help(words[1:]))
        elif words:
            code = self._show(*self._session.command(line))
        self._runs = False
        if not self._is_terminal:
            self.code = self.code or code
        return False

    def _names(self) -> List[str]:
        return ["help", "exit", *self._session.host.handlers, *mon_commands.NAMES,
                *(f"sim {name}" for name in sim_commands.NAMES)]

    def _help(self, words: List[str]) -> Answer:
        handlers = self._session.host.handlers
        if words == ["sim"]:
            return 0, sim_commands.HELP, ""
        if not words:
            lines = list(mon_commands.NAMES)
            for name, known in handlers.items():
                lines.append(f"{name:33} {shorten(known.description, 66, placeholder=' ...')}")
            return 0, _HELP + "\n".join(sorted(lines)), ""
        handler = find_handler(handlers, words[words[0] == "ceph":])
        if handler is None:
            error: StubError = invalid(f"no help on '{' '.join(words)}'; 'help' lists commands")
            return error.code, "", error.message
        lines = [f"{handler.prefix}: {handler.description}"]
        for argument in handler.arguments:
            dashes = "--"
            if argument.required:
                dashes = ""
            lines.append(f"    {dashes}{argument.describe()}")
        return 0, "\n".join(lines), ""

    # -- completion ---------------------------------------------------------------------------

    def complete(self, text: str, state: int) -> Optional[str]:   # type: ignore[override]
        """Returns the candidate that readline asks for, one after the other."""
        if state == 0:
            self._found = self.candidates(readline.get_line_buffer()[:readline.get_begidx()], text)
        if state < len(self._found):
            return f"{self._found[state]} "
        return None

    def candidates(self, before: str, text: str) -> List[str]:
        """Returns the words that may follow the words `before`, and begin with `text`."""
        words = before.split()
        words = words[words[:1] == ["ceph"] or words[:1] == ["help"]:]
        known = [name.split() for name in self._names()]
        found = {name[len(words)] for name in known
                 if len(name) > len(words) and name[:len(words)] == words}
        handler = find_handler(self._session.host.handlers, words)
        if handler is not None:
            found.update(f"--{one.name.replace('_', '-')}" for one in handler.arguments)
        return sorted(word for word in found if word.startswith(text))
