"""What pages show to paste does what it says, whenever it is pasted; and where a command in
the middle is refused, the next one does no harm."""
from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, misplaced_ratio, run
from tests.metrics_endpoint.client import free_port

from .blocks import PAGES, RELEASE
from .pasted import Shell, blocks

_MOVES = r"equilibrium (on|execute|undo(?! --dry-run))\b|osd unset "
_NOREBALANCE = "ceph osd set norebalance\n"
Act = Callable[[Session, Shell], object]


BLOCKS = [block for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]


def block(words: str) -> str:
    """The one block that has these words, on whatever pages."""
    [found] = {one for one in BLOCKS if words in one}
    return found


def is_set(session: Session, flag: str) -> bool:
    return flag in session.cluster.map.flags


def option(session: Session, name: str) -> str:
    return run(session, f"config get mgr mgr/equilibrium/{name}").strip()


# -- before a block is pasted ---------------------------------------------------------------------

def expanded(session: Session, shell: Shell) -> None:
    shell.paste(_NOREBALANCE)
    run(session, "sim host add new0 4 8T")
    shell.paste(block("again freeze --dry-run"))


def balanced(session: Session, shell: Shell) -> None:
    run(session, "equilibrium optimize p", "equilibrium execute p", "sim run 20m")


def tried(session: Session, shell: Shell) -> None:
    shell.paste(block("again optimize try"))


def kept_and_balanced(session: Session, shell: Shell) -> None:
    shell.paste(block("> upmaps.before"))
    balanced(session, shell)


def looked(session: Session, shell: Shell) -> None:
    run(session, "equilibrium status", "sim run 1m")


def nothing(session: Session, shell: Shell) -> None:
    """For most blocks."""


# -- the claims of pages, after a block -----------------------------------------------------------

def is_on(session: Session, shell: Shell) -> bool:
    return bool(ask(session, "status")["active"])


def is_off(session: Session, shell: Shell) -> bool:
    return not is_on(session, shell)


def has_asked_status(session: Session, shell: Shell) -> bool:
    return shell.done[-1].endswith("equilibrium status")


def has_only_looked(session: Session, shell: Shell) -> bool:
    return shell.done[-1].endswith("--dry-run")


def has_only_looked_at_a_freeze(session: Session, shell: Shell) -> bool:
    return has_only_looked(session, shell) and not session.cluster.map.upmap_items


def has_written_upmaps(session: Session, shell: Shell) -> bool:
    return (shell.folder / "upmaps.before").exists()


def has_a_short_plan(session: Session, shell: Shell) -> bool:
    assert 0 < len(ask(session, "dump try")["moves"]) <= 20
    return not session.command_log and option(session, "max_backfills_per_osd") == "1"


def executes_it(session: Session, shell: Shell) -> bool:
    return bool(ask(session, "status")["execution"]["plan"] == "try")


def has_evaluated(session: Session, shell: Shell) -> bool:
    return shell.done[-1] == "equilibrium eval first" and not session.command_log


def keeps_data_in_place(session: Session, shell: Shell) -> bool:
    return is_set(session, "norebalance")


def is_frozen(session: Session, shell: Shell) -> bool:
    assert shell.done[-1] == "equilibrium on" and not is_set(session, "norebalance")
    return len(session.cluster.map.upmap_items) > 100


def is_switched_off_for_good(session: Session, shell: Shell) -> bool:
    return option(session, "active") == "false" and "module disable" in shell.done[-1]


def goes_back(session: Session, shell: Shell) -> bool:
    before = Path(shell.folder / "upmaps.before").read_text()
    assert shell.paste("sh back.sh") == 0 and before == ""
    shell.paste("ceph osd dump | grep ^pg_upmap_items | sort > upmaps.after")
    return before == Path(shell.folder / "upmaps.after").read_text()


def has_a_window(session: Session, shell: Shell) -> bool:
    return option(session, "end_time") == "0600"


def has_an_address(session: Session, shell: Shell) -> bool:
    return "http" in run(session, "mgr services")


def has_written_a_state(session: Session, shell: Shell) -> bool:
    return bool(list(shell.folder.glob("*.xz"))) or not shutil.which("xz")


class Story(NamedTuple):
    """Functions for the beginning and the end."""

    begins: Act
    ends: Act


#: By words of the block.
STORIES: Dict[str, Story] = {
    "ceph equilibrium on   #": Story(nothing, is_on),
    "sleep 30 && ceph equilibrium status": Story(nothing, has_asked_status),
    "> upmaps.before": Story(nothing, has_written_upmaps),
    "again optimize try": Story(nothing, has_a_short_plan),
    "equilibrium execute try": Story(tried, executes_it),
    _NOREBALANCE: Story(nothing, keeps_data_in_place),
    "again freeze --dry-run": Story(expanded, has_only_looked_at_a_freeze),
    "again freeze && again freeze": Story(expanded, is_frozen),
    "again undo --dry-run": Story(balanced, has_only_looked),
    "ceph equilibrium off\n": Story(balanced, is_off),
    "active false\n": Story(nothing, is_switched_off_for_good),
    "optimize first": Story(nothing, has_evaluated),
    "comm -13": Story(kept_and_balanced, goes_back),
    "begin_time 2200": Story(nothing, has_a_window),
    "metrics_port": Story(nothing, has_an_address),
    "dump-state --anonymous >": Story(looked, has_written_a_state)}
#: Tried in a full run alone.
_LONG = ("comm -13", "again undo --dry-run", "again freeze && again freeze")
#: What has just happened as the block is pasted.
MOMENTS: Dict[str, str] = {
    "new": "",
    "old": "equilibrium status, sim run 20m, sim flag set noout, sim run 20m",
    "changed": "equilibrium status, sim run 5m, sim host add more0 1 2T, sim run 2s",
    "failover": "equilibrium status, sim run 5m, sim failover"}


def moments() -> Iterator[Any]:
    """Each block at the usual moment; those that try again, at the others too, in a full run."""
    for words in STORIES:
        is_repeated = re.search(r"^again ", block(words), re.MULTILINE)
        for moment in MOMENTS:
            if moment == "old" and words not in _LONG:
                yield words, moment
            elif moment == "old" or is_repeated:
                yield pytest.param(words, moment, marks=pytest.mark.full)


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session.from_state(None, release=RELEASE)
    run(opened, "config set mgr mgr/equilibrium/start_delay 0")
    yield opened
    opened.close()


@pytest.mark.parametrize("words, moment", list(moments()))
def test_it_does_what_it_says(session: Session, tmp_path: Path, words: str, moment: str) -> None:
    shell, story = Shell(session, tmp_path), STORIES[words]
    story.begins(session, shell)
    if MOMENTS[moment]:
        run(session, *MOMENTS[moment].split(", "))
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
    ("again optimize try", 3), ("again freeze && again freeze", 1),
    ("again freeze && again freeze", 4)])
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
    told = {one for one in BLOCKS for words in STORIES if words in one}
    assert told == set(BLOCKS)
