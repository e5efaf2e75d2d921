"""Runs crushtool and osdmaptool, the real ones, and reads what they print."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

Pairs = Dict[str, List[Tuple[int, int]]]  # pgid -> (from, to), against the raw mapping

ITEM_NONE = 0x7FFFFFFF  # CRUSH_ITEM_NONE: a position of an up set that nobody holds

_LINE = re.compile(
    r"^(?P<pgid>\d+\.[0-9a-f]+)"
    r" raw \(\[(?P<raw>[^\]]*)\], p-?\d+\)"
    r" up \(\[(?P<up>[^\]]*)\], p-?\d+\)"
    r" acting \(\[(?P<acting>[^\]]*)\], p-?\d+\)", re.M)


class ToolFailed(RuntimeError):
    """crushtool or osdmaptool ended with an error; the text is what it printed."""


@dataclass(frozen=True)
class PGMapping:
    """One PG as osdmaptool maps it: OSD ids, ITEM_NONE where a position is empty.

    `raw` is what CRUSH gives, `up` what remains after upmap items and down OSDs.
    """

    raw: Tuple[int, ...]
    up: Tuple[int, ...]
    acting: Tuple[int, ...]


def missing_tools() -> List[str]:
    """The names of the Ceph tools that are not on the PATH."""
    return [tool for tool in ("crushtool", "osdmaptool") if shutil.which(tool) is None]


def run_tool(tool: str, *arguments: object, check: bool = True) -> str:
    """Standard output of a Ceph tool. Raises ToolFailed where it ends with an error."""
    command = [tool] + [str(argument) for argument in arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if check and done.returncode != 0:
        raise ToolFailed(f"{' '.join(command)}: rc {done.returncode}:"
                         f" {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def version() -> str:
    """The release of the installed osdmaptool, for example 16.2.15."""
    found = re.search(r"ceph version (\S+)", run_tool("osdmaptool", "--version", check=False))
    return found.group(1) if found else "unknown"


def compile_crush(text: str, folder: Path) -> Path:
    """Compiles a text CRUSH map; the path of the binary one."""
    source, binary = folder / "crush.txt", folder / "crush.bin"
    source.write_text(text)
    run_tool("crushtool", "-c", source, "-o", binary)
    return binary


def dump_crush(binary: Path) -> Dict[str, Any]:
    """`ceph osd crush dump` of a binary CRUSH map: shadow buckets, rules, choose_args."""
    dump: Dict[str, Any] = json.loads(run_tool("crushtool", "-i", binary, "--dump"))
    return dump


def dump_osdmap(path: Path) -> Dict[str, Any]:
    """`ceph osd dump --format json` of a binary OSDMap."""
    dump: Dict[str, Any] = json.loads(run_tool("osdmaptool", path, "--dump", "json"))
    return dump


_CRUSHED = re.compile(r"^CRUSH rule \d+ x (\d+) \[([^\]]*)\]", re.M)


def crush_mappings(binary: Path, rule: int, count: int, inputs: int,
                   reweights: Mapping[int, int]) -> Dict[int, Tuple[int, ...]]:
    """Input → what a rule gives for it, of a compiled CRUSH map; reweights are 16.16."""
    options: List[object] = []
    for osd, weight in reweights.items():
        options += ["--weight", osd, f"{weight / 65536:.6f}"]
    shown = run_tool("crushtool", "-i", binary, "--test", "--show-mappings", "--rule", rule,
                     "--num-rep", count, "--min-x", 0, "--max-x", inputs - 1, *options)
    return {int(x): tuple(int(item) for item in items.split(",") if item)
            for x, items in _CRUSHED.findall(shown)}


def _osds(text: str) -> Tuple[int, ...]:
    return tuple(ITEM_NONE if word in ("NONE", str(ITEM_NONE)) else int(word)
                 for word in text.split(",") if word)


def map_pgs(path: Path) -> Dict[str, PGMapping]:
    """Every PG of the map as osdmaptool maps it now, upmap items applied."""
    return read_mappings(run_tool("osdmaptool", path, "--test-map-pgs-dump-all"))


def read_mappings(text: str) -> Dict[str, PGMapping]:
    """What osdmaptool has printed of every PG."""
    return {found["pgid"]: PGMapping(_osds(found["raw"]), _osds(found["up"]),
                                     _osds(found["acting"]))
            for found in _LINE.finditer(text)}


def upmap_cleanup(path: Path) -> Pairs:
    """What a monitor would change at its next epoch: pgid to what is left of its items.

    An empty list where the whole entry is cancelled.
    """
    commands = path.with_name(path.name + ".cleanup")
    run_tool("osdmaptool", path, "--upmap-cleanup", commands)
    return read_commands(commands)


def calc_pg_upmaps(path: Path, pool: str, limit: int) -> Pairs:
    """The items that the built-in balancer would set for a pool; an empty list takes them away.

    One pool at a time and without its aggressive way: it draws lots there and for the order of
    pools, and a case here must always be the same cluster.
    """
    commands = path.with_name(path.name + ".upmap")
    run_tool("osdmaptool", path, "--upmap", commands, "--upmap-max", limit, "--upmap-pool", pool,
             "--upmap-deviation", 1, "--osd_calc_pg_upmaps_aggressively=false")
    return read_commands(commands)


def read_commands(path: Path) -> Pairs:
    """pgid to pairs from `ceph osd pg-upmap-items ...` and `rm-pg-upmap-items ...` lines."""
    found: Pairs = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split()
        if "pg-upmap-items" in words:
            start = words.index("pg-upmap-items") + 1
            flat = [int(word) for word in words[start + 1:]]
            found[words[start]] = list(zip(flat[::2], flat[1::2]))
        elif "rm-pg-upmap-items" in words:
            found[words[words.index("rm-pg-upmap-items") + 1]] = []
        elif words:
            raise ToolFailed(f"unexpected line from osdmaptool: {line!r}")
    return found
