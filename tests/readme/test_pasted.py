"""What the README shows to paste does what it says, whenever it is pasted; and where a command in
the middle is refused, the next one does no harm."""
from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, misplaced_ratio, run
from tests.metrics_endpoint.client import free_port

from .blocks import README, RELEASE
from .pasted import Shell, blocks

_MOVES = r"equilibrium (on|execute|undo(?! --dry-run))\b|osd unset "
_NOREBALANCE = "ceph osd set norebalance\n"
Act = Callable[[Session, Shell], object]


def block(words: str) -> str:
    """The one block that has these words."""
    [found] = [one for one in blocks(README.read_text(encoding="utf-8")) if words in one]
    return found


def is_set(session: Session, flag: str) -> bool:
    return flag in session.cluster.map.flags


def option(session: Session, name: str) -> str:
    return run(session, f"config get mgr mgr/equilibrium/{name}").strip()


def expanded(session: Session, shell: Shell) -> None:
    shell.paste(_NOREBALANCE)
    run(session, "sim host add new0 4 8T")
    shell.paste(block("again freeze --dry-run"))


def is_frozen(session: Session, shell: Shell) -> bool:
    assert shell.done[-1] == "equilibrium on" and not is_set(session, "norebalance")
    assert len(session.cluster.map.upmap_items) > 100
    return True


def goes_back(session: Session, shell: Shell) -> bool:
    before = Path(shell.folder / "upmaps.before").read_text()
    assert shell.paste("sh back.sh") == 0 and before == ""
    shell.paste("ceph osd dump | grep ^pg_upmap_items | sort > upmaps.after")
    return before == Path(shell.folder / "upmaps.after").read_text()


class Story(NamedTuple):
    """A block, by words of it."""

    words: str
    ends: Act   # true where it has ended as the README says
    begins: Act = lambda session, shell: None


def _balanced(session: Session, shell: Shell) -> object:
    return run(session, "equilibrium optimize p", "equilibrium execute p", "sim run 20m")


STORIES: Dict[str, Story] = {story.words: story for story in (
    Story("ceph equilibrium on        #", lambda session, shell: ask(session, "status")["active"]),
    Story("sleep 30 && ceph equilibrium status", lambda session, shell: shell.done[-1].endswith(
        "equilibrium status")),
    Story("> upmaps.before", lambda session, shell: (shell.folder / "upmaps.before").exists()),
    Story("again optimize try", lambda session, shell: (
        0 < len(ask(session, "dump try")["moves"]) <= 20 and not session.command_log
        and option(session, "max_backfills_per_osd") == "1")),
    Story("equilibrium execute try", lambda session, shell: ask(
        session, "status")["execution"]["plan"] == "try",
        lambda session, shell: shell.paste(block("again optimize try"))),
    Story(_NOREBALANCE, lambda session, shell: is_set(session, "norebalance")),
    Story("again freeze --dry-run", lambda session, shell: not session.cluster.map.upmap_items
          and shell.done[-1].endswith("--dry-run"), expanded),
    Story("again freeze && again freeze", is_frozen, expanded),
    Story("again undo --dry-run", lambda session, shell: shell.done[-1].endswith("--dry-run"),
          _balanced),
    Story("ceph equilibrium off\n", lambda session, shell: not ask(session, "status")["active"],
          _balanced),
    Story("set nobackfill", lambda session, shell: is_set(session, "nobackfill")),
    Story("comm -13", goes_back, lambda session, shell: (
        shell.paste(block("> upmaps.before")), _balanced(session, shell))),
    Story("begin_time 2200", lambda session, shell: option(session, "end_time") == "0600"),
    Story("metrics_port", lambda session, shell: "http" in run(session, "mgr services")),
    Story("dump-state --anonymous >", lambda session, shell: list(shell.folder.glob("*.xz")) or not
          shutil.which("xz"), lambda session, shell: run(session, "equilibrium status",
                                                         "sim run 1m")))}
#: Tried in a full run alone.
_LONG = ("comm -13", "again undo --dry-run", "again freeze && again freeze")
#: What has just happened as the block is pasted.
MOMENTS: Dict[str, List[str]] = {
    "new": [], "old": ["equilibrium status", "sim run 20m", "sim flag set noout", "sim run 20m"],
    "changed": ["equilibrium status", "sim run 5m", "sim host add more0 1 2T", "sim run 2s"],
    "failover": ["equilibrium status", "sim run 5m", "sim failover"]}


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session.from_state(None, release=RELEASE)
    run(opened, "config set mgr mgr/equilibrium/start_delay 0")
    yield opened
    opened.close()


@pytest.mark.parametrize("words, moment", [
    pytest.param(words, moment, marks=[] if moment == "old" and words not in _LONG
                 else [pytest.mark.full])
    for words in STORIES for moment in MOMENTS
    if moment == "old" or re.search(r"^again ", block(words), re.MULTILINE)])
def test_it_does_what_it_says(session: Session, tmp_path: Path, words: str, moment: str) -> None:
    shell, story = Shell(session, tmp_path), STORIES[words]
    story.begins(session, shell)
    run(session, *MOMENTS[moment])
    shell.paste(block(words).replace("9284", str(free_port())))
    assert story.ends(session, shell)
    does_no_harm(session)


def does_no_harm(session: Session) -> None:
    """Where the map was changed, data moves by steps or not at all."""
    if "new0" not in str(session.cluster.crush.buckets):
        return
    for _ in range(10):
        session.host.run_for(180.0)
        assert is_set(session, "norebalance") or misplaced_ratio(session) < 0.06


@pytest.mark.parametrize("words, number", [
    ("ceph equilibrium on        #", 0), ("again optimize try", 3),
    *(("again freeze && again freeze", number) for number in (1, 4))])
def test_what_is_refused_stops_what_follows(session: Session, tmp_path: Path, words: str,
                                            number: int) -> None:
    """The command of that number, by somebody else who is at work."""
    begun: List[str] = []

    def refuse(line: str) -> bool:
        begun.append(line)
        return len(begun) == number + 1
    shell = Shell(session, tmp_path)
    STORIES[words].begins(session, shell)
    shell.refuse, shell.done[:] = refuse, []
    shell.paste(block(words))
    assert len(begun) == number + 1   # the refused one is the last
    assert not re.search(_MOVES, "\n".join(shell.done[number:]))
    does_no_harm(session)


def test_every_block_has_a_story() -> None:
    for found in blocks(README.read_text(encoding="utf-8")):
        assert sum(words in found for words in STORIES) >= 1, found
