"""What operators are told to do."""

from __future__ import annotations

from typing import Tuple

from .mutation import Edit, Mutation

_OUTAGE = "equilibrium_mgr/report/explain/advice.py"
_TOO_FULL = "equilibrium_mgr/observation/cluster_view.py"
_VIEW = "equilibrium_mgr/observation/cluster_view.py"

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "outage-unsaid",
        "OSDs that are down are said before all else", (
            Edit(_VIEW,
                 "        if not (osd.destroyed or (osd if reported is None else reported).up):\n",
                 "        if False:\n"),),
        ("scenario:host_loss",)),
    Mutation(
        "stopped-writes-unsaid",
        "an OSD above full_ratio is said before all else", (
            Edit(_VIEW,
                 "FULL: [osd.id for osd in osds if osd.up and osd.is_in and",
                 "FULL: [osd.id for osd in osds if False and"),),
        ("explain/test_followed.py",)),
    Mutation(
        "waits-where-nobody-ends-it",
        "what is held by OSDs that are down does not end by itself", (
            Edit(_OUTAGE,
                 "helps = (_start(down, snapshot) if down else",
                 'helps = ("nothing; it ends by itself" if down else'),),
        ("scenario:host_loss",)),
    Mutation(
        "ratio-up-to-full",
        "no command lets backfill fill an OSD to full_ratio", (
            Edit(_TOO_FULL, "else full_ratio - _MARGIN\n", "else full_ratio\n"),),
        ("observation/test_too_full.py",)),
)
