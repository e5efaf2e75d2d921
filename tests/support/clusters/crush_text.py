"""CRUSH maps in the text format of crushtool."""
from __future__ import annotations

from typing import Iterable, Mapping, Optional, Tuple

#: As Ceph sets them by default.
TUNABLES = {
    "choose_local_tries": 0, "choose_local_fallback_tries": 0, "choose_total_tries": 50,
    "chooseleaf_descend_once": 1, "chooseleaf_vary_r": 1, "chooseleaf_stable": 1,
    "straw_calc_version": 1, "allowed_bucket_algs": 54}
#: Title and lines of a bucket, a rule or choose_args.
Block = Tuple[str, Iterable[str]]


def crush_text(classes: Mapping[int, Optional[str]], types: Mapping[int, str],
               blocks: Iterable[Block], tunables: Mapping[str, int] = TUNABLES) -> str:
    """A whole map; `classes` by OSD."""
    lines = [f"tunable {name} {value}" for name, value in tunables.items()]
    for osd, device_class in classes.items():
        suffix = f" class {device_class}" if device_class else ""
        lines.append(f"device {osd} osd.{osd}{suffix}")
    lines += [f"type {number} {name}" for number, name in types.items()]
    for title, within in blocks:
        lines += [title + " {", *within, "}"]
    return "\n".join(lines) + "\n"


def bucket_block(title: str, ids: Iterable[str], items: Iterable[Tuple[str, float]]) -> Block:
    lines = [f"id {bucket_id}" for bucket_id in ids]
    lines += ["alg straw2", "hash 0"]
    lines += [f"item {name} weight {weight:.5f}" for name, weight in items]
    return title, lines


def rule_block(name: str, number: int, kind: str, steps: Iterable[str]) -> Block:
    lines = [f"id {number}", f"type {kind}", "min_size 1", "max_size 20"]
    return f"rule {name}", lines + [f"step {step}" for step in steps]
