"""The command: which clusters, how often, and what is printed."""
from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from equilibrium_mgr.plan.options import AIMS, PlanOptions

from . import osdmaptool, report
from .clusters import Source, find_sources
from .made.scale import OSDS
from .measure import Job, measure
from .scaling import Form, both_forms, measure_scale

_HERE = Path(__file__).resolve().parent


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.benchmark",
        description="Plans on clusters of many shapes and judges the plans: the demo cluster, "
                    "made ones, and those in given folders. Beside it, where osdmaptool is "
                    "installed and a folder has an osdmap, the built-in balancer.")
    parser.add_argument("--clusters", metavar="DIR", nargs="+", default=[],
                        help="folders with state.json.xz, and osdmap if there is one")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[],
                        help="only these clusters; * and ? allowed, also: demo, made, given")
    parser.add_argument("--aim", default=PlanOptions().aim, choices=AIMS, help="the plan's aim")
    parser.add_argument("--osdmaptool-seconds", type=float, default=120.0, metavar="S",
                        help="kill osdmaptool after this long (default: 120; 0: do not run it)")
    parser.add_argument("--scale", action="store_true",
                        help="only two made clusters of 10,000 OSDs: 160,000 PGs of three "
                             "replicas in 4 pools, and 1,000,000 shards in 100 pools")
    parser.add_argument("--scale-osds", type=int, metavar="N",
                        help="the same with N OSDs, and PGs in proportion")
    parser.add_argument("--scale-seconds", type=float, default=600.0, metavar="S",
                        help="end a plan of these after so many processor seconds (default: 600)")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to a file")
    parser.add_argument("--job", help=argparse.SUPPRESS)  # how it calls itself for one cluster
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the benchmark; 1 where a cluster could not be measured, 2 for wrong arguments."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.job:
        print(json.dumps(_do(json.loads(options.job))))
        return 0
    try:
        sources = find_sources(options.clusters, options.only)
    except ValueError as error:
        parser.error(str(error))
    found = versions()
    print(f"equilibrium {found['commit']}, Python {found['python']}, "
          f"osdmaptool {found['osdmaptool']}, {found['date']}")
    failures: Dict[str, str] = {}
    scale = _scale(options, failures)
    results = [] if _is_large(options) else _clusters(options, sources, failures)
    if options.json:
        everything = {"versions": found, "arguments": vars(options), "clusters": results,
                      "scale": scale, "failures": failures}
        Path(options.json).write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if failures else 0


def _is_large(options: argparse.Namespace) -> bool:
    """True where the large clusters are asked for, and no others."""
    return bool(options.scale or options.scale_osds)


def _scale(options: argparse.Namespace, failures: Dict[str, str]) -> List[Dict[str, Any]]:
    """Measures and prints the large cluster in both forms where that is asked for."""
    if not _is_large(options):
        return []
    results: List[Dict[str, Any]] = []
    for form in both_forms(options.scale_osds or OSDS):
        job = {"scale": form._asdict(), "limit": options.scale_seconds, "aim": options.aim}
        result = _in_process(job, f"{form.osds} OSDs", failures)
        if result is not None:
            results.append(result)
            print("\n" + report.scale_table(result), flush=True)
    return results


def _clusters(options: argparse.Namespace, sources: Sequence[Source],
              failures: Dict[str, str]) -> List[Dict[str, Any]]:
    """Measures and prints one cluster after the other."""
    results: List[Dict[str, Any]] = []
    for source in sources:
        job = Job(source.name, source.kind, source.folder, options.aim,
                  options.osdmaptool_seconds)
        result = _in_process(job.to_dict(), source.name, failures)
        if result is not None:
            results.append(result)
            print("\n" + report.cluster_table(result), flush=True)
    return results


def _do(job: Dict[str, Any]) -> Dict[str, Any]:
    """One job, in the process that was started for it."""
    if "scale" in job:
        return measure_scale(Form(**job["scale"]), job["limit"], job["aim"])
    return measure(Job(**job))


def _in_process(job: Dict[str, Any], name: str,
                failures: Dict[str, str]) -> Optional[Dict[str, Any]]:
    """The job's result from a new process; a failure is printed and noted."""
    done = subprocess.run([sys.executable, "-m", "tests.benchmark", "--job", json.dumps(job)],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        result: Dict[str, Any] = json.loads(done.stdout)
        return result
    reason = (done.stderr.strip() or f"ended with code {done.returncode}")
    failures[name] = reason
    print(f"\n{name}: FAILED: {reason.splitlines()[-1]}", file=sys.stderr, flush=True)
    return None


def versions() -> Dict[str, Any]:
    """What was measured with what, and when."""
    return {"commit": _commit(), "python": platform.python_version(),
            "implementation": platform.python_implementation(), "system": platform.platform(),
            "processors": os.cpu_count(), "osdmaptool": osdmaptool.release(),
            "date": datetime.date.today().isoformat()}


def _commit() -> Optional[str]:
    """The commit that is checked out, with a + where files differ from it."""
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty=+", "--abbrev=12"],
                              cwd=str(_HERE), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
