"""The figures of a device class are the same on every screen, and of OSDs that are up."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List

from mgr_stub.console.session import Session
from tests.commands.asking import ask

_SAMPLE = re.compile(r'^ceph_equilibrium_(utilization_max|bound)_ratio{device_class="(.*)"} (.*)$',
                     re.MULTILINE)
_FULLEST = re.compile(r"(osd\.\d+), the fullest of class")


def differing(session: Session) -> List[str]:
    """What `eval`, `metrics` and `explain` say otherwise than `status` of one look: a question may
    have started another, after which all are asked again."""
    for _ in range(3):
        view, found = session.module.balancer.status.view, list(_differing(session))
        now = session.module.balancer.status.view
        if view is not None and now is not None and view.snapshot is now.snapshot:
            return found
    raise AssertionError("there is a look at each question")


def _differing(session: Session) -> Iterator[str]:
    status, explained = ask(session, "status"), ask(session, "explain")
    classes = {row["device_class"]: row for row in status["classes"]}
    named = _FULLEST.search(status["reason"])
    if named and status["state"] == "balanced" and f"{named[1]} is at" not in explained["what"]:
        yield f"status names {named[1]}, explain: {explained['what']}"
    for row in ask(session, "eval")["classes"]:
        for key in ("max_utilization", "fullest_osd", "bound_utilization"):
            if row[key] != classes[row["device_class"]][key]:
                yield f"eval has {key} {row[key]} of class {row['device_class']}"
    metrics = session.command("equilibrium metrics")[1]
    for what, name, value in _SAMPLE.findall(metrics):
        key = {"utilization_max": "max_utilization", "bound": "bound_utilization"}[what]
        if float(value) != classes[name][key]:
            yield f"metrics have {key} {value} of class {name}"
    for entry in explained["sets"]:
        yield from _of_set(session, entry, classes.get(entry["device_class"]))


def _of_set(session: Session, entry: Dict[str, Any], row: Any) -> Iterator[str]:
    """Of a set that is all of its class: that of several classes or with others is its own."""
    osd_map, alive = session.cluster.map, []
    for osd, name in session.cluster.crush.classes.items():
        if name == entry["device_class"] and osd_map.exists(osd):
            if osd_map.is_up(osd) and osd_map.reweight(osd) > 0.0:
                alive.append(osd)
    if row is None or sorted(alive) != sorted(entry["osds"]):
        return
    for key, own in (("max_utilization", "max"), ("fullest_osd", "fullest_osd"),
                     ("bound_utilization", "bound")):
        if row[key] != entry[own]:
            yield (f"status has {key} {row[key]} of class {row['device_class']},"
                   f" explain {entry[own]}")
