"""What operators are told to do."""

from __future__ import annotations

from typing import Tuple

from .mutation import Edit, Mutation

_OUTAGE = "equilibrium_mgr/report/explain/outage.py"
_ADVICE = "equilibrium_mgr/report/explain/advice.py"
_TOO_FULL = "equilibrium_mgr/observation/cluster_view.py"
_VIEW = "equilibrium_mgr/observation/cluster_view.py"

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "outage-unsaid",
        "OSDs that are down are said before all else", (
            Edit(_VIEW,
                 "        if not osd.up and not osd.destroyed:\n",
                 "        if False:\n"),),
        "scenario:host_loss"),
    Mutation(
        "stopped-writes-unsaid",
        "an OSD above full_ratio is said before all else", (
            Edit(_VIEW,
                 "        if osd.up and osd.is_in and osd.exceeds(snapshot.full_ratio):\n",
                 "        if False:\n"),),
        "explain/test_followed.py"),
    Mutation(
        "waits-where-nobody-ends-it",
        "what is held by OSDs that are down does not end by itself", (
            Edit(_OUTAGE,
                 "        return _start(found.down, snapshot)\n",
                 '        return "nothing; it ends by itself"\n'),),
        "scenario:host_loss"),
    Mutation(
        "ratio-up-to-full",
        "no command lets backfill fill an OSD to full_ratio", (
            Edit(_TOO_FULL, "else full_ratio - _MARGIN\n", "else full_ratio\n"),),
        "observation/test_too_full.py"),
    Mutation(
        "slow-osd-unsaid",
        "an OSD that holds up what is copied is named with what tells why", (
            Edit(_ADVICE, """return (f"'ceph config show {name} osd_mclock""",
                 """return (f"nothing; 'ceph config show {name} osd_mclock"""),),
        "commands/test_slow_osds.py"),
)
