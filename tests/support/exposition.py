"""Reads the text format of Prometheus, and refuses what Prometheus would refuse or misread."""
from __future__ import annotations

import math
import re
from typing import Dict, FrozenSet, NamedTuple, Optional, Tuple

Labels = FrozenSet[Tuple[str, str]]
_SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)')
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')

#: Every family of the module, without its prefix → its label.
_FAMILIES = """
utilization_max_ratio device_class
bound_ratio device_class
load_max_ratio device_class
threshold_ratio threshold
state state
active
misplaced_ratio
misplaced_limit_ratio
waiting_shards reason
moving_shards origin
moving_bytes origin
steered_shards fate
client_op_seconds period
toofull_pgs state
remaining_seconds
drained_osds
drain_shards
drain_stuck_shards
drain_safe_to_stop
room_bytes
pool_free_bytes pool_id
rejected_upmaps
statistics_age_seconds
last_round_timestamp_seconds
moved_bytes_total
moves_total
info version
"""
FAMILIES: Dict[str, Optional[str]] = {
    name: label or None for name, label in re.findall(r"(\w+) ?(\w*)\n", _FAMILIES)}
PREFIX = "ceph_equilibrium_"


class Parsed(NamedTuple):
    """The samples of a text."""

    types: Dict[str, str]
    samples: Dict[str, Dict[Labels, float]]

    def one(self, name: str) -> Optional[float]:
        """The value of a family without labels; None where it is absent."""
        found = self.samples.get(PREFIX + name)
        return None if found is None else found[frozenset()]

    def by(self, name: str) -> Dict[str, float]:
        """Value of the family's label → its value."""
        return {dict(labels)[str(FAMILIES[name])]: value
                for labels, value in self.samples.get(PREFIX + name, {}).items()}


def parse(text: str) -> Parsed:
    """AssertionError for a text that is not in the format, or not of FAMILIES."""
    assert text.endswith("\n") and "\n\n" not in text
    parsed = Parsed({}, {})
    told = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            told, _, words = line[len("# HELP "):].partition(" ")
            assert words and told not in parsed.types, line
        elif line.startswith("# TYPE "):
            name, kind = line[len("# TYPE "):].split(" ")
            assert name == told and kind in ("gauge", "counter"), line
            assert (kind == "counter") == name.endswith("_total"), line
            parsed.types[name] = kind
        else:
            _read_sample(line, told, parsed)
    assert set(parsed.samples) == set(parsed.types), "a family without a sample"
    return parsed


def _read_sample(line: str, told: str, parsed: Parsed) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match and match.group(1) == told, line
    labels = frozenset(_LABEL.findall(match.group(2) or ""))
    value = float(match.group(3))
    assert math.isfinite(value), line
    wanted = FAMILIES[told[len(PREFIX):]]
    assert [name for name, _ in labels] == ([wanted] if wanted else []), line
    samples = parsed.samples.setdefault(told, {})
    assert labels not in samples, line
    samples[labels] = value
