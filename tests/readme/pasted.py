"""Blocks of commands on pages, run as they are pasted: by `sh`, on a simulated cluster.

`ceph` and `sleep` are scripts that speak to the session: time passes virtually.
"""
from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Callable, Iterator, List, Tuple

from mgr_stub.console.session import Session
from mgr_stub.errors import Answer

_CLIENT = f"""#!{sys.executable}
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(os.environ["CEPH_STUB"])
server.sendall((json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n").encode())
code, out, err = json.loads(server.makefile().readline())
print(out, end="")
print(err, file=sys.stderr)
sys.exit(-code)
"""
#: Commands of Ceph that the simulation has under another name, or that change nothing there.
_NAMES: Tuple[Tuple[str, str], ...] = (
    (r"osd crush reweight osd\.(\d+) (\S+)", r"sim osd crush-reweight \1 \2"),
    (r"osd (out|in) (.*)", r"sim osd \1 \2"), (r"(mgr module|-s).*", "health"))


def blocks(text: str) -> Iterator[str]:
    """Blocks with commands of Ceph: indented, between empty lines."""
    for block in re.findall(r"(?:^|\n)\n((?: {4}[^\n]*\n)+)(?=\n)", re.sub(
            r"^```\w*\n.*?^```\n", "", text, flags=re.MULTILINE | re.DOTALL).replace(
                "\n\n", "\n\n\n")):
        block = textwrap.dedent(block)
        if re.search(r"^\s*(ceph|again) ", block, re.MULTILINE) and not block.startswith("#"):
            yield block


class Shell:
    """Runs what is pasted. `refuse`: called with each command before it is carried out; True where
    it is refused. `done`: the commands that were carried out."""

    def __init__(self, session: Session, folder: Path,
                 refuse: Callable[[str], bool] = lambda line: False) -> None:
        self._session = session
        self.folder = folder
        self.refuse = refuse
        self.done: List[str] = []
        self._functions = ""   # of the blocks that were pasted before
        for name in ("ceph", "sleep"):
            (folder / name).write_text(_CLIENT)
            (folder / name).chmod(0o755)

    def paste(self, text: str) -> int:
        """Runs a block; the exit code of its last line."""
        text = self._functions + text
        for found in re.findall(r"^again\(\) .*\n.*\n", text, re.MULTILINE)[:1]:
            self._functions = found
        path = str(self.folder / "socket")
        if os.path.exists(path):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            server.settimeout(0.02)
            shell = subprocess.Popen(
                ["sh", "-c", text], cwd=self.folder, env={
                    **os.environ, "CEPH_STUB": path,
                    "PATH": f"{self.folder}:{os.environ['PATH']}"},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while shell.poll() is None:
                try:
                    client = server.accept()[0]
                except socket.timeout:
                    continue
                with client:
                    client.setblocking(True)
                    words: List[str] = json.loads(client.makefile().readline())
                    client.sendall((json.dumps(self._answer(words)) + "\n").encode())
            return shell.returncode

    def _answer(self, words: List[str]) -> Answer:
        if words[0] == "sleep":
            self._session.host.run_for(float(words[1]))
            return 0, "", ""
        self._session.host.run_for(0.5)   # nobody types faster
        line = shlex.join(words[1:])
        if self.refuse(line):
            return -16, "", "Error EBUSY: refused"
        own = line
        for pattern, name in _NAMES:
            own = re.sub(f"^{pattern}$", name, own)
        answer = self._session.command(own)
        if answer[0] == 0:
            self.done.append(line)
        return answer
