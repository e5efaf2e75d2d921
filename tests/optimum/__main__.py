"""How far plans of random small clusters are from the true optima.

Usage: python3 -m tests.optimum [--clusters 300] [--first 0] [--worst 10] [--aims space,even]
"""
from __future__ import annotations

import argparse
import sys
from typing import List

from mgr_stub.mgr.install import install

install(18)

from tests.optimum.comparison import PartResult, compared  # noqa: E402
from tests.optimum.report import table, worst  # noqa: E402

from equilibrium_mgr.plan.options import AIMS  # noqa: E402


def main() -> int:
    """Reads the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.optimum")
    parser.add_argument("--clusters", type=int, default=300, help="how many random clusters")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst are listed")
    parser.add_argument("--aims", default="space,even", help=f"of {', '.join(AIMS)}")
    options = parser.parse_args()
    return compare(options.first, options.clusters, options.worst, options.aims.split(","))


def compare(first: int, clusters: int, listed: int, aims: List[str]) -> int:
    """Prints a table per aim; returns 1 where something contradicts an optimum."""
    results: List[PartResult] = []
    for seed in range(first, first + clusters):
        results += compared(seed, aims)
    for aim in aims:
        mine = [one for one in results if one.aim == aim]
        print(f"aim {aim}: {clusters} clusters, {len(mine)} sets of OSDs")
        print("\n".join(table(mine) + worst(mine, listed)) + "\n")
    wrong = [f"seed {one.seed}: {one.contradiction}" for one in results if one.contradiction]
    print("\n".join(wrong) or "no plan is better than its optimum, no bound is passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
