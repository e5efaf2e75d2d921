"""Metric families, and the text format in which Prometheus reads them (version 0.0.4)."""
from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

GAUGE, COUNTER = "gauge", "counter"
#: Of every family's name, as Ceph's own begin with `ceph_`.
PREFIX = "ceph_equilibrium_"


class Sample(NamedTuple):
    """One value of a family, with the labels that tell it from the others."""

    value: float
    labels: Tuple[Tuple[str, str], ...] = ()


class Family(NamedTuple):
    """A metric. Without samples it is not shown at all."""

    name: str
    help: str
    samples: Sequence[Sample]
    type: str = GAUGE

    def to_json(self) -> Dict[str, Any]:
        """For `metrics --format json`."""
        return {"name": self.name, "type": self.type, "help": self.help,
                "samples": [{"labels": dict(sample.labels), "value": sample.value}
                            for sample in self.samples]}


def single(name: str, text: str, value: Optional[float], kind: str = GAUGE) -> Family:
    """A family of one value without labels; without a sample where that is not known."""
    return Family(PREFIX + name, text, _known([Sample(value)] if value is not None else []), kind)


def labelled(name: str, text: str, label: str, values: Mapping[str, Optional[float]],
             kind: str = GAUGE) -> Family:
    """A family of one value for each value of a label; those that are not known are left out."""
    return Family(PREFIX + name, text, _known(
        Sample(value, ((label, str(key)),)) for key, value in values.items()
        if value is not None), kind)


def _known(samples: Iterable[Sample]) -> List[Sample]:
    return [sample for sample in samples if math.isfinite(sample.value)]


def exposition(families: Iterable[Family]) -> str:
    """The families as text; its last line has no end."""
    lines: List[str] = []
    for family in families:
        if family.samples:
            lines.append(f"# HELP {family.name} {_escaped(family.help)}")
            lines.append(f"# TYPE {family.name} {family.type}")
            lines += [f"{family.name}{_labels(sample)} {_number(sample.value)}"
                      for sample in family.samples]
    return "\n".join(lines)


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    pairs = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample.labels)
    return f"{{{pairs}}}"


def _number(value: float) -> str:
    """Whole numbers without a fraction, others with all their digits."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
