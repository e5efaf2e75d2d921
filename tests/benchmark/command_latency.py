"""How long commands take on a large cluster, whatever the module's loop does meanwhile.

    python3 -m tests.benchmark.command_latency [--hosts 100] [--times 40]

A simulated mgr whose module runs in its own threads, as in a mgr, on a made cluster of 10 OSDs a
host. Each command is asked `--times` times in each situation, through the thread of the commands:

rest        the loop waits
observing   the loop reads the cluster and makes its view, without a break
planning    a plan is being made, without a break
both        all of that at once
executing   a plan is carried out: batches are sent, and observed

Prints a Markdown table: the 95th percentile and the longest in milliseconds, and the processor time
of the command's thread without what the simulated mgr itself computes for its calls (median). That
is Python here and C++ in a real mgr, so the first figures are longer than there.
"""
from __future__ import annotations

import argparse
import contextlib
import errno
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from mgr_stub.mgr.install import install

install(18)

from mgr_stub.console.threaded_session import ThreadedSession  # noqa: E402

from tests.scenarios.clusters import crush_places  # noqa: E402

from .clusters import state_of  # noqa: E402
from .made.shapes import SEED, fill  # noqa: E402
from .week.week import _layout as layout_of  # noqa: E402

#: {plan} is a kept plan, {pg} a PG.
COMMANDS = (
    "status", "eval", "eval {plan}", "eval rbd", "df", "df {plan}",
    "osds", "moves", "history",
    "ls", "pool ls", "metrics", "show {plan}", "explain", "explain osd.3", "explain rbd",
    "explain {pg}", "report", "report {plan}")
FORMATS = ("plain", "json")
PLAN, PG = "kept", "1.0"
_PAUSE_SECONDS = 0.01


class CommandClock:
    """Processor seconds of the commands' thread, without those of the simulated mgr's calls."""

    def __init__(self, mgr: Any) -> None:
        self._in_calls = 0.0
        self._thread: Optional[int] = None
        self._entered = 0.0
        mgr.listener = self._on_call

    def _on_call(self, _name: str, has_ended: bool) -> None:
        if threading.get_ident() != self._thread:
            return
        if has_ended:
            self._in_calls += time.thread_time() - self._entered
        else:
            self._entered = time.thread_time()

    def measure(self, answer: Callable[[], Any]) -> Tuple[Any, float, float]:
        """(the answer, seconds, processor seconds)."""
        self._thread, self._in_calls = threading.get_ident(), 0.0
        started, cpu_started = time.perf_counter(), time.thread_time()
        found = answer()
        return (found, time.perf_counter() - started,
                time.thread_time() - cpu_started - self._in_calls)


class Bench:
    """The session, and work for its loop in a thread of its own."""

    def __init__(self, hosts: int, folder: Path) -> None:
        rng = random.Random(f"latency/{SEED}")
        path = folder / "state.json"
        path.write_text(json.dumps(state_of(fill(layout_of(rng, hosts), rng, crush_places))))
        self.session: Any = ThreadedSession.from_state(str(path), release=18, seed=SEED)
        self._plans = 0
        self._clock = CommandClock(self.session.mgr)

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

    def seconds(self, command: str, times: int) -> Optional[List[Tuple[float, float]]]:
        """(seconds, processor seconds) of each answer; None where the module refuses."""
        found: List[Tuple[float, float]] = []
        words = ["equilibrium", *command.split()]
        for _ in range(times):
            time.sleep(_PAUSE_SECONDS)
            answer, seconds, cpu = self.session._commands.submit(
                self._clock.measure,
                lambda: self.session._locked_dispatch(words)).result(60.0)
            if answer[0] not in (0, -errno.EAGAIN):
                return None
            found.append((seconds, cpu))
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


def _cell(found: Optional[List[Tuple[float, float]]]) -> str:
    if not found:
        return ""
    ordered = sorted(seconds for seconds, _ in found)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    cpu = median(cpu for _, cpu in found)
    return f"{1000 * p95:.0f} ({1000 * ordered[-1]:.0f}), {1000 * cpu:.1f}"


if __name__ == "__main__":
    sys.exit(main())
