"""Records tests/support/crush_golden.json with the installed crushtool and osdmaptool.

python3 -m tests.oracle.record_crush_golden
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, List

from tests.support.clusters import crush_cases

from .ceph_tools import compile_crush, crush_mappings, map_pgs
from .maps.crush_osdmap import CrushPool, make_osdmap

_TUNABLES = {"choose_local_tries": 0, "choose_local_fallback_tries": 0, "choose_total_tries": 50,
             "chooseleaf_descend_once": 1, "chooseleaf_vary_r": 1, "chooseleaf_stable": 1,
             "straw_calc_version": 1, "allowed_bucket_algs": 54}


def main() -> None:
    """Writes the file."""
    recorded: Dict[str, Any] = {"mappings": {}, "pools": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, (dump, reweights) in crush_cases.cases().items():
            binary = compile_crush(_text(dump), Path(folder))
            recorded["mappings"][name] = {
                str(rule): [list(osds) for osds in crush_mappings(
                    binary, rule, count, crush_cases.COUNT_OF_X, reweights).values()]
                for rule, count in crush_cases.COUNTS.items()}
        recorded["pools"] = _pools(Path(folder))
    lines = json.dumps(recorded, indent=1)
    crush_cases.GOLDEN.write_text(re.sub(r"\[\s+([-\d,\s]+?)\s+\]", _one_line, lines) + "\n")


def _one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found.group(1).split())}]"


def _pools(folder: Path) -> Dict[str, List[int]]:
    dump, reweights = crush_cases.cases()["reweighted"]
    pools = [CrushPool(pool["crush_rule"], pool["type"], pool["size"], pool["pg_num"],
                       pool["pg_placement_num"], bool(pool["flags"])) for pool in crush_cases.POOLS]
    path = make_osdmap(pools, compile_crush(_text(dump), folder), list(reweights.values()),
                       {crush_cases.MISSING}, folder)
    return {pgid: list(mapping.raw) for pgid, mapping in map_pgs(path).items()}


def _text(dump: Dict[str, Any]) -> str:
    """The text format of a dump; shadow buckets stand with the ones that they shadow."""
    tunables = {**_TUNABLES, **dump.get("tunables", {})}
    lines = [f"tunable {name} {value}" for name, value in tunables.items()]
    lines += [f"device {device['id']} osd.{device['id']} class {device['class']}"
              for device in dump["devices"]]
    lines += [f"type {entry['type_id']} {entry['name']}" for entry in dump["types"]]
    names = {bucket["id"]: bucket["name"] for bucket in dump["buckets"]}
    for bucket in reversed(dump["buckets"]):  # numbered from the root down
        if "~" not in bucket["name"]:
            lines += _bucket(bucket, names)
    for rule in dump["rules"]:
        kind = "erasure" if "indep" in str(rule["steps"]) else "replicated"
        number = rule["rule_id"]
        lines.append(f"rule r{number} {{\n id {number}\n type {kind}\n"
                     " min_size 1\n max_size 20")
        lines += [" step " + _step(step) for step in rule["steps"]] + ["}"]
    for key, entries in dump["choose_args"].items():
        lines.append(f"choose_args {int(key) % 2 ** 64} {{")
        lines += [_arguments(entry) for entry in entries] + ["}"]
    return "\n".join(lines) + "\n"


def _bucket(bucket: Dict[str, Any], names: Dict[int, str]) -> List[str]:
    lines = [f"{bucket['type_name']} {bucket['name']} {{\n id {bucket['id']}"]
    lines += [f" id {number} class {name.partition('~')[2]}"
              for number, name in names.items() if name.startswith(bucket["name"] + "~")]
    lines.append(" alg straw2\n hash 0")
    for item in bucket["items"]:
        name = names.get(item["id"], f"osd.{item['id']}")
        lines.append(f" item {name} weight {item['weight'] / 0x10000:.5f}")
    return lines + ["}"]


def _step(step: Dict[str, Any]) -> str:
    if step["op"] == "take":
        name, _, device_class = step["item_name"].partition("~")
        return f"take {name}{' class ' + device_class if device_class else ''}"
    if step["op"].startswith("choose"):
        return f"{step['op'].replace('_', ' ')} {step['num']} type {step['type']}"
    return f"{step['op']} {step.get('num', '')}"


def _arguments(entry: Dict[str, Any]) -> str:
    rows = [" ".join(f"{weight:.5f}" for weight in row) for row in entry["weight_set"]]
    weight_set = " ".join(f"[ {row} ]" for row in rows)
    text = f"{{ bucket_id {entry['bucket_id']} weight_set [ {weight_set} ]"
    if "ids" in entry:
        text += f" ids [ {' '.join(map(str, entry['ids']))} ]"
    return text + " }"


if __name__ == "__main__":
    main()
