"""How long commands take on a large cluster, whatever the module's loop does meanwhile.

    python3 -m tests.benchmark.command_latency [--hosts 100] [--times 40]

A simulated mgr whose module runs in its own threads, as in a mgr, on a made cluster of 10 OSDs a
host. Each command is asked `--times` times in each situation, through the thread of the commands:

rest        the loop waits
observing   the loop reads the cluster and makes its view, without a break
planning    a plan is being made, without a break
both        all of that at once
executing   a plan is carried out: batches are sent, and observed

Prints a Markdown table: the 95th percentile and the longest, in milliseconds. What the simulated
mgr computes for a call is Python, too, and in these figures, so a real mgr is faster.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from mgr_stub.mgr.install import install

install(18)

from mgr_stub.console.threaded_session import ThreadedSession  # noqa: E402

from tests.scenarios.clusters import crush_places  # noqa: E402

from .clusters import state_of  # noqa: E402
from .made.shapes import SEED, fill  # noqa: E402
from .week import _layout as layout_of  # noqa: E402

#: {plan} is a kept plan, {pg} a PG.
COMMANDS = (
    "status", "eval", "eval {plan}", "eval rbd", "df", "df {plan}", "osds", "moves", "history",
    "ls", "pool ls", "metrics", "show {plan}", "explain", "explain osd.3", "explain rbd",
    "explain {pg}", "report", "report {plan}")
FORMATS = ("plain", "json")
PLAN, PG = "kept", "1.0"
_PAUSE_SECONDS = 0.01


class Bench:
    """The session, and work for its loop in a thread of its own."""

    def __init__(self, hosts: int, folder: Path) -> None:
        rng = random.Random(f"latency/{SEED}")
        path = folder / "state.json"
        path.write_text(json.dumps(state_of(fill(layout_of(rng, hosts), rng, crush_places))))
        self.session: Any = ThreadedSession.from_state(str(path), release=18, seed=SEED)
        self._plans = 0

    def make_plan(self, name: str) -> None:
        """Has a plan made and waits for it."""
        self.session.dispatch(["equilibrium", "optimize", name])
        while name in self.session.module.plan_service.plans_in_progress():
            time.sleep(0.01)

    def observe(self) -> None:
        """One observation of the serve thread."""
        self.session.module.balancer.require_observation()
        self.session.host.run_round()

    def plan(self) -> None:
        """One plan, forgotten again."""
        self._plans += 1
        name = f"p{self._plans}"
        self.make_plan(name)
        self.session.dispatch(["equilibrium", "rm", name])

    def execute(self) -> None:
        """A minute of the execution, with the rounds in it."""
        self.session.host.run_for(60.0)

    @contextlib.contextmanager
    def doing(self, *work: Callable[[], None]) -> Iterator[None]:
        """Repeats each of these in a thread of its own meanwhile."""
        over = threading.Event()

        def repeat(one: Callable[[], None]) -> None:
            while not over.is_set():
                one()
        threads = [threading.Thread(target=repeat, args=(one,), daemon=True) for one in work]
        for thread in threads:
            thread.start()
        yield
        over.set()
        for thread in threads:
            thread.join()

    def seconds(self, command: str, times: int) -> Optional[List[float]]:
        """Seconds of each answer; None where the module has no such command."""
        found: List[float] = []
        for _ in range(times):
            time.sleep(_PAUSE_SECONDS)
            started = time.perf_counter()
            answer = self.session.post(f"equilibrium {command}").result(60.0)
            found.append(time.perf_counter() - started)
            if answer[0] not in (0, -11):
                return None
        return found


def situations(bench: Bench) -> Dict[str, Callable[[], Any]]:
    """Name → context in which it holds."""
    return {"rest": bench.doing, "observing": lambda: bench.doing(bench.observe),
            "planning": lambda: bench.doing(bench.plan),
            "both": lambda: bench.doing(bench.observe, bench.plan),
            "executing": lambda: bench.doing(bench.execute)}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[], help="situations")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.hosts, Path(folder))
        bench.observe()
        bench.make_plan(PLAN)
        rows: Dict[str, List[str]] = {}
        names = options.only or list(situations(bench))
        for name in names:
            if name == "executing":
                bench.session.dispatch(["equilibrium", "execute", PLAN])
            with situations(bench)[name]():
                for command in COMMANDS:
                    for form in FORMATS:
                        line = f"{command.format(plan=PLAN, pg=PG)} --format {form}"
                        found = bench.seconds(line, options.times)
                        rows.setdefault(line, []).append(_cell(found))
                        print(name, line, rows[line][-1], file=sys.stderr)
        bench.session.close()
    print("| command | " + " | ".join(names) + " |\n|---|" + "--:|" * len(names))
    for line, cells in rows.items():
        print(f"| `{line}` | " + " | ".join(cells) + " |")
    return 0


def _cell(seconds: Optional[List[float]]) -> str:
    if not seconds:
        return ""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"{1000 * p95:.0f} ({1000 * ordered[-1]:.0f})"


if __name__ == "__main__":
    sys.exit(main())
