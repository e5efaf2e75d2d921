"""Mutation runner: `python3 -m tests.mutations [--only NAME…] [--jobs N] [--list] [PYTEST ARG…]`.

Each mutation is made in a copy of the project of its own, the tests named run there until the first
fails, and a line of a Markdown table says which, and what it says. Without arguments those that the
catalogue calls likely run first, and all scenarios and streams of events (an hour of processor)
only where these notice nothing and `--all` is given. A rule that only its own unit test knows of is
not noticed, nor is one without which nothing but recorded figures changes: scenarios run with
`--rewrite-scenarios`, so that only rules of safety, truth and intent, and what a scenario `must`
come to, count. Exit code 1 where a mutation goes unnoticed, 2 where one cannot be made as the code
has changed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, NamedTuple, Sequence

from tests.mutations.mutation import MUTATIONS, Mutation
from tests.mutations import mutation as mutations

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("equilibrium_mgr", "mgr_stub", "tests", "pyproject.toml")
TARGETS = ("tests/scenarios", "tests/threads")
RULES_ALONE = ("--full", "--rewrite-scenarios")
SECONDS = 3600
#: What a broken rule says in pytest's output, and a line of an outcome that a scenario must have.
SAID = (r"([A-Z]\d+(?: \w+)?: [^'\"\n]{1,110})", r"AssertionError: ([^\n]{1,110})",
        r"^E +(\S[^\n]{1,110})")
NOTICED, UNNOTICED, STALE = "noticed", "UNNOTICED", "STALE"


class Outcome(NamedTuple):
    """What became of one mutation."""

    mutation: Mutation
    verdict: str
    by: str        # the first test that failed, or why it could not be made


def main() -> int:
    options = _options()
    chosen = [m for m in MUTATIONS if not options.only or m.name in options.only]
    if options.list:
        for mutation in chosen:
            files = ", ".join(sorted({edit.file for edit in mutation.edits}))
            print(f"{mutation.name}: {mutation.rule} ({files})")
        return 0
    print("| rule | mutation | noticed by |\n|---|---|---|", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda m: _told(_try(m, _runs(m, options))), chosen))
    verdicts = {outcome.verdict for outcome in outcomes}
    noticed = sum(outcome.verdict == NOTICED for outcome in outcomes)
    print(f"\n{noticed} of {len(outcomes)} noticed")
    return 2 if STALE in verdicts else 1 if UNNOTICED in verdicts else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/mutations", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="mutations tried at once")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--all", action="store_true",
                        help="run everything where what is likely to notice does not")
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT",
                        help="what pytest is told instead of what the catalogue names")
    return parser.parse_args()


def _runs(mutation: Mutation, options: argparse.Namespace) -> List[List[str]]:
    """What pytest is told, one run after the other until one notices."""
    if options.pytest:
        return [options.pytest]
    runs = [[*RULES_ALONE, *likely] for likely in mutations.runs(mutation)]
    if options.all:
        runs.append([*RULES_ALONE, *TARGETS])
    return runs


def _told(outcome: Outcome) -> Outcome:
    mutation = outcome.mutation
    said = outcome.by if outcome.verdict == NOTICED else f"**{outcome.verdict}** {outcome.by}"
    print(f"| {mutation.rule} | {mutation.name} | {said} |", flush=True)
    return outcome


def _try(mutation: Mutation, runs: Sequence[List[str]]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name,
                                ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
        for edit in mutation.edits:
            path = copy / edit.file
            text = path.read_text() if path.exists() else ""
            if text.count(edit.old) != 1:
                return Outcome(mutation, STALE, f"its text stands {text.count(edit.old)} times in "
                                                f"{edit.file}")
            path.write_text(text.replace(edit.old, edit.new))
        for told in runs:
            outcome = _run(mutation, copy, told)
            if outcome.verdict != UNNOTICED:
                break
        return outcome


def _run(mutation: Mutation, copy: Path, told: List[str]) -> Outcome:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *told]
    try:
        run = subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Outcome(mutation, NOTICED, f"no end within {SECONDS} s")
    if run.returncode == 0:
        return Outcome(mutation, UNNOTICED, run.stdout.strip().split("\n")[-1])
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    said = [m.group(1) for m in (re.search(p, run.stdout, re.MULTILINE) for p in SAID) if m]
    if run.returncode != 1 or not failed:
        return Outcome(mutation, STALE, run.stdout.strip()[-200:])
    test = failed[0].replace("tests/", "", 1)
    return Outcome(mutation, NOTICED, f"`{test}`" + (f" {said[0]}" if said else ""))


if __name__ == "__main__":
    sys.exit(main())
