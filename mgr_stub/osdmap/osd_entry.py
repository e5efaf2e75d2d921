"""Entries of `osds` in the osdmap dump, changed for an OSD that goes out, in, down or up."""

from __future__ import annotations

from typing import Any, Dict

#: State of an OSD that the monitor has marked out automatically.
AUTO_OUT = "autoout"


def marked_out(entry: Dict[str, Any], automatically: bool = False) -> Dict[str, Any]:
    """The entry of an OSD marked out; its reweight is kept for its return.

    `automatically` means by the monitor: the OSD is marked in again as soon as it is up.
    """
    if float(entry["weight"]) <= 0:
        return entry
    state = sorted({*entry["state"], AUTO_OUT}) if automatically else entry["state"]
    return {**entry, "in": 0, "weight": 0.0, "old_weight": float(entry["weight"]), "state": state}


def marked_in(entry: Dict[str, Any]) -> Dict[str, Any]:
    """The entry of an OSD marked in, with its previous reweight."""
    if float(entry["weight"]) > 0:
        return entry
    return reweighted(entry, entry.get("old_weight", 0.0) or 1.0)


def reweighted(entry: Dict[str, Any], weight: float) -> Dict[str, Any]:
    """The entry of an OSD with a reweight 0..1; above 0 the previous one is dropped."""
    if weight <= 0:
        return {**entry, "in": 0, "weight": 0.0}
    return {**entry, "in": 1, "weight": float(weight), "old_weight": 0.0,
            "state": [word for word in entry["state"] if word != AUTO_OUT]}


def marked_down(entry: Dict[str, Any]) -> Dict[str, Any]:
    """The entry of an OSD marked down."""
    return {**entry, "up": 0, "state": [word for word in entry["state"] if word != "up"]}


def marked_up(entry: Dict[str, Any], comes_in: bool, epoch: int) -> Dict[str, Any]:
    """The entry of an OSD marked up; with `comes_in` it is marked in if the monitor marked it out.

    `epoch` is the first one with the OSD up; it becomes `up_from` of an OSD that was down.
    """
    if entry["up"]:
        started = entry
    else:
        down = marked_down(entry)
        started = {**down, "up": 1, "up_from": epoch, "state": down["state"] + ["up"]}
    return marked_in(started) if comes_in and AUTO_OUT in entry["state"] else started
