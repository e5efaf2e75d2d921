"""Stories, one a file: command lines on a simulated cluster, and questions about it.

    releases 16 20                      the story runs on each; default: 18
    osds 10                             two on each host; default: 6
    pools rep ec                        of stub_states.py; default: rep
    pg 2.0 4 6 2 objects=201            a PG of pool 2 on these OSDs. A story without PGs has 12
                                        OSDs and the pools 1 and 2, filled by CRUSH
    entry 2.0 3 2 4 5                   the pairs of an upmap entry
    > osd pg-upmap-items 2.0 2 8        a line that succeeds; with `=> -22 WORDS` one that fails
    state 2.0: "active+clean"           a question, and its answer in JSON
    [20] items: {}                      for one release
    saved and read again                by a state file
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.console.session import Session
from mgr_stub.state.state_file import state_of
from tests.support.clusters import stub_states
from tests.support.clusters.crush_cluster import check_accounts, crush_state, states

READ_AGAIN = "saved and read again"
FILES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


def state(session: Session, pgid: str) -> str:
    return pg_reports.state_of(session.cluster, session.cluster.pgs[pgid])


def held(session: Session, pgid: str) -> Any:
    """The OSDs with a whole copy."""
    return session.cluster.pgs[pgid].held


def acting(session: Session, pgid: str) -> Any:
    return session.cluster.map.acting(pgid)


def up(session: Session, pgid: str) -> Any:
    return session.cluster.map.up[pgid]


def items(session: Session) -> Any:
    return session.cluster.map.upmap_items


def used(session: Session, osd: str) -> int:
    return session.cluster.usage[int(osd)].used


def copied(session: Session, pgid: str) -> Dict[int, int]:
    """OSD → bytes that it has of the shard that it gets."""
    transfers = session.cluster.pgs[pgid].transfers.values()
    return {one.target: int(one.copied) for one in transfers}


def to_copy(session: Session) -> int:
    return sum(int(pg.remaining_bytes()) for pg in session.simulation.backfill.moving())


def get(session: Session, name: str, *path: str) -> Any:
    """A value in the mgr's get(), by a path of keys and numbers."""
    found = session.mgr.get(name)
    for word in path:
        found = found.get(word) if isinstance(found, dict) else found[int(word)]
    return found


QUESTIONS: Dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (
        state, states, held, acting, up, items, used, copied, to_copy, get)}
POOLS = {pool[1]: pool for pool in (
    stub_states.REPLICATED, stub_states.BY_HOST, stub_states.ERASURE)}


class Story:
    """One file, for one release."""

    def __init__(self, path: Path, release: int) -> None:
        self.release = release
        lines = path.read_text(encoding="utf-8").splitlines()
        self.lines = [line.strip() for line in lines if line.strip() and line[0] != "#"]

    def of(self, word: str) -> List[List[str]]:
        """The words of the lines that begin so."""
        return [line.split()[1:] for line in self.lines if line.startswith(f"{word} ")]

    def cluster(self) -> Dict[str, Any]:
        pgs = [self._pg(*words) for words in self.of("pg")]
        if not pgs:
            return crush_state()
        [osds] = self.of("osds") or [["6"]]
        entries = []
        for pgid, *numbers in self.of("entry"):
            pairs = list(map(int, numbers))
            entries.append((pgid, zip(pairs[::2], pairs[1::2])))
        [names] = self.of("pools") or [["rep"]]
        return stub_states.state(
            pgs, osds=int(osds[0]), pools=[POOLS[name] for name in names], items=entries)

    @staticmethod
    def _pg(pgid: str, *words: str) -> Dict[str, Any]:
        fields: Dict[str, Any] = {}
        for word in words:
            name, has_value, value = word.partition("=")
            if has_value:
                fields[name] = int(value) if value.isdigit() else value
        return stub_states.pg(pgid, [int(word) for word in words if word.isdigit()], **fields)

    def tell(self, make_session: Callable[..., Session]) -> None:
        """At the end the OSDs hold the bytes of their PGs. A state file does not have the bytes of
        OSDs that are down."""
        session = make_session(self.cluster(), release=self.release)
        for line in self.lines:
            release, line = re.findall(r"(?:\[(\d+)\] )?(.*)", line)[0]
            if line == READ_AGAIN:
                saved = json.dumps(state_of(session.cluster))
                session = make_session(json.loads(saved), release=self.release)
            elif release in ("", str(self.release)):
                _step(session, line)
        if not self.of("pg") and READ_AGAIN not in self.lines:
            check_accounts(session)


def _step(session: Session, line: str) -> None:
    if line.startswith("> "):
        command, code, words = re.findall(r"> (.*?)(?: => (-?\d+) ?(.*))?$", line)[0]
        rc, out, err = session.command(command)
        assert rc == int(code or 0) and words in out + err, (line, rc, out, err)
    elif ": " in line:
        question, _, wanted = line.partition(": ")
        name, *words = question.split()
        found = json.loads(json.dumps(QUESTIONS[name](session, *words)))
        assert found == json.loads(wanted), line


def stories() -> Iterator[Any]:
    for path in FILES:
        [releases] = Story(path, 0).of("releases") or [["18"]]
        for release in releases:
            yield pytest.param(path, int(release), id=f"{path.stem}-{release}")


@pytest.mark.parametrize("path, release", list(stories()))
def test_story(make_session: Callable[..., Any], path: Path, release: int) -> None:
    Story(path, release).tell(make_session)
