"""Reads the situations of tests/explain/followed.py from `situations.txt`, or from such a file."""
from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List

from tests.explain.followed import Situation


def _situation(text: str) -> Situation:
    found: Dict[str, List[str]] = defaultdict(list)
    for line in text.splitlines():
        key, _, rest = line.partition(" ")
        found[key].append(rest)
    [name] = found.pop("situation")
    [cluster] = found.pop("cluster", ["random 20"])
    shape, seed = cluster.split()
    lists = {key: tuple(found.pop(key, ())) for key in ("setup", "follow")}
    flags = {f"is_{key}": found.pop(key, None) is not None for key in ("outage", "better")}
    [screens] = found.pop("screens", ["1"])
    texts = {key: one for key, [one] in found.items()}
    others: Dict[str, Any] = {**lists, **flags, **texts}
    return Situation(name, cluster=(shape, int(seed)), screens=int(screens), **others)


def read_situations(path: Path) -> List[Situation]:
    _comment, *texts = path.read_text().split("\n\n")
    return list(map(_situation, texts))


SITUATIONS = read_situations(Path(__file__).with_suffix(".txt"))
